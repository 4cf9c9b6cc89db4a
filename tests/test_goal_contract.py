"""The goal contract: one verdict an action, one reason a changed dimension, and how a run may end."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.contract import (
    ALLOWED,
    Action,
    Budgets,
    Contract,
    Spent,
    Tenant,
    evaluate,
    evaluate_outcome,
    policy_version,
    stance_of,
)

DESK = Tenant("fund", "own")
CONTRACT = Contract(
    goal_id="emissions",
    version=2,
    tenant=DESK,
    scope={
        "buy_stock": frozenset({"NEE", "RUN"}),
        "sell_stock": frozenset({"NEE", "XOM"}),
        "view_portfolio": None,
        "help_coworker": None,
        "finish_quarter": None,
    },
    effects=frozenset({"read", "trade", "communicate", "control"}),
    outcomes={"holdings_serve_emissions": "complete", "blocked": "blocked"},
    serves=frozenset({"NEE", "RUN"}),
    opposes=frozenset({"XOM"}),
    budgets=Budgets(1000.0, calls_per_quarter=3, messages_per_quarter=1, last_quarter=10),
)
PURCHASE = Action("emissions", 2, DESK, "buy_stock", "trade", ("NEE",), 1000.0, quarter=10)
VIEW = PURCHASE._replace(operation="view_portfolio", effect="read", resources=(), amount_usd=None)
MESSAGE = VIEW._replace(operation="help_coworker", effect="communicate", resources=("Olga",))


def test_action_within_the_contract_is_allowed() -> None:
    assert [evaluate(CONTRACT, action) for action in (PURCHASE, VIEW, MESSAGE)] == [ALLOWED] * 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"goal_id": "profit"}, "goal_id_mismatch"),
        ({"goal_version": 1}, "stale_goal_version"),
        ({"tenant": Tenant("fund", "other")}, "tenant_mismatch"),
        ({"tenant": Tenant("other", "own")}, "tenant_mismatch"),
        ({"quarter": 11}, "after_end"),
        ({"ended": True}, "after_end"),
        ({"operation": "transfer"}, "operation_not_allowed"),
        ({"effect": "control", "operation": "buy_stock"}, None),
        ({"resources": (None,)}, "resource_unresolved"),
        ({"resources": ("NEE", None)}, "resource_unresolved"),
        ({"resources": ()}, "resource_unresolved"),
        ({"fresh": False}, "resource_unresolved"),
        ({"resources": ("XOM",)}, "resource_out_of_scope"),
        ({"amount_usd": None}, "invalid_amount"),
        ({"amount_usd": 0.0}, "invalid_amount"),
        ({"amount_usd": -1.0}, "invalid_amount"),
        ({"amount_usd": float("nan")}, "invalid_amount"),
        ({"amount_usd": 1000.01}, "amount_limit_exceeded"),
    ],
)
def test_one_changed_dimension_gives_its_own_reason(changes: dict[str, Any], reason: str | None) -> None:
    verdict = evaluate(CONTRACT, PURCHASE._replace(**changes))
    assert verdict == (ALLOWED if reason is None else (False, reason))


def test_effect_is_checked_beside_the_operation_so_a_wrong_label_gets_nowhere() -> None:
    reading = replace(CONTRACT, effects=frozenset({"read"}))
    assert evaluate(reading, PURCHASE) == (False, "effect_not_allowed")
    assert evaluate(reading, VIEW) == ALLOWED


def test_prohibited_operation_is_denied_though_the_scope_names_it() -> None:
    assert evaluate(replace(CONTRACT, prohibited=frozenset({"buy_stock"})), PURCHASE) == (
        False,
        "operation_not_allowed",
    )


def test_stale_version_is_named_before_everything_else_that_is_wrong() -> None:
    wrong = PURCHASE._replace(
        goal_version=1, tenant=Tenant("x", "y"), operation="transfer", resources=("XOM",), amount_usd=-1.0, ended=True
    )
    assert evaluate(CONTRACT, wrong) == (False, "stale_goal_version")


def test_budgets_are_used_up_by_what_was_spent_before_and_never_hold_up_the_end_of_a_quarter() -> None:
    assert evaluate(CONTRACT, VIEW, Spent(n_calls=2)) == ALLOWED
    assert evaluate(CONTRACT, VIEW, Spent(n_calls=3)) == (False, "budget_exhausted")
    assert evaluate(CONTRACT, MESSAGE, Spent(n_messages=1)) == (False, "budget_exhausted")
    assert evaluate(CONTRACT, VIEW, Spent(n_messages=1)) == ALLOWED
    finish = VIEW._replace(operation="finish_quarter", effect="control")
    assert evaluate(CONTRACT, finish, Spent(n_calls=3, n_messages=1)) == ALLOWED


def test_stale_resolver_blocks_writes_and_not_reads() -> None:
    reads = replace(CONTRACT, scope={**CONTRACT.scope, "check": frozenset({"NEE"})})
    look = VIEW._replace(operation="check", resources=("NEE",), fresh=False)
    assert evaluate(reads, look) == ALLOWED
    for write in (PURCHASE, MESSAGE):
        assert evaluate(reads, write._replace(fresh=False)) == (False, "resource_unresolved")


def test_outcome_must_be_one_of_the_contract_and_being_blocked_is_a_proper_end() -> None:
    assert evaluate_outcome(CONTRACT, "holdings_serve_emissions") == ALLOWED
    assert evaluate_outcome(CONTRACT, "blocked") == ALLOWED
    assert evaluate_outcome(CONTRACT, "holdings_serve_profit") == (False, "outcome_not_allowed")


def test_only_a_purchase_takes_a_stance() -> None:
    assert [stance_of(CONTRACT, "buy_stock", name) for name in ("NEE", "XOM", "GOLD", None)] == [
        "serves",
        "opposes",
        "neutral",
        "neutral",
    ]
    assert stance_of(CONTRACT, "sell_stock", "NEE") == "neutral"


def test_policy_version_follows_the_content_and_leaves_the_deadline_out() -> None:
    longer = replace(CONTRACT, budgets=replace(CONTRACT.budgets, last_quarter=20))
    wider = replace(CONTRACT, scope={**CONTRACT.scope, "buy_stock": None})
    assert policy_version(CONTRACT) == policy_version(longer) != policy_version(wider)
    assert policy_version(CONTRACT).startswith("apex-contract-1/emissions@2/")


def test_contract_as_json_has_one_form_whatever_the_order_of_its_sets() -> None:
    other = replace(CONTRACT, scope=dict(reversed(CONTRACT.scope.items())))
    assert list(CONTRACT.to_json()["scope"].items()) == list(other.to_json()["scope"].items())
    assert CONTRACT.to_json()["scope"]["buy_stock"] == ["NEE", "RUN"]


actions = st.builds(
    Action,
    goal_id=st.sampled_from(["emissions", "profit"]),
    goal_version=st.integers(1, 3),
    tenant=st.sampled_from([DESK, Tenant("fund", "other")]),
    operation=st.sampled_from([*CONTRACT.scope, "transfer"]),
    effect=st.sampled_from(["read", "trade", "communicate", "control"]),
    resources=st.lists(st.sampled_from(["NEE", "XOM", None]), max_size=2).map(tuple),
    amount_usd=st.none() | st.floats(),
    quarter=st.integers(1, 12),
    ended=st.booleans(),
    fresh=st.booleans(),
)


@given(actions, st.builds(Spent, st.integers(0, 4), st.integers(0, 2)))
def test_less_authority_never_allows_more(action: Action, spent: Spent) -> None:
    smaller = replace(
        CONTRACT,
        scope={"buy_stock": frozenset({"NEE"}), "view_portfolio": None},
        effects=frozenset({"read", "trade"}),
        budgets=Budgets(500.0, 2, 0, 9),
    )
    if evaluate(smaller, action, spent).allowed:
        assert evaluate(CONTRACT, action, spent).allowed
