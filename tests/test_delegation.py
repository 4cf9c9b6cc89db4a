"""Delegation: authority only shrinks; a broader child never starts, and a proper one that oversteps is denied."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.analyst_desk import REPORTED, AnalystDesk, analyst_brief
from apex_env.contract import Action, Budgets, Contract, Tenant, evaluate, evaluate_outcome
from apex_env.delegation import BroaderThanParent, delegate, derive
from apex_env.mandate import contract_of
from apex_env.protocol import ToolCall
from apex_env.scenario import Scenario
from tests.firms import SWITCHING, listed, make_firm, next_quarter, ok

PARENT = contract_of(Scenario(tools="extended"), 1)
BRIEF = analyst_brief(["XOM", "NEE"])
CHILD = derive(PARENT, BRIEF)


def test_child_has_its_parents_tenant_reference_and_limits_and_less_of_everything() -> None:
    assert (CHILD.tenant, CHILD.parent, CHILD.effects) == (PARENT.tenant, "emissions@1", {"read"})
    assert CHILD.scope == {"view_portfolio": None, "check_emissions_by_stock": {"XOM", "NEE"}}
    assert CHILD.budgets == Budgets(None, 20, 100, 30)


def test_delegation_is_an_event_with_both_references_and_the_childs_contract() -> None:
    event = delegate(PARENT, CHILD)
    assert (event.parent, event.child) == ("emissions@1", "analysis@1")
    assert event.contract["scope"]["check_emissions_by_stock"] == ["NEE", "XOM"]


@pytest.mark.parametrize(
    ("changes", "excess"),
    [
        ({"tenant": Tenant("apex_capital", "meridian")}, "tenant apex_capital/meridian"),
        ({"scope": {"transfer_funds": None}}, "operation 'transfer_funds'"),
        ({"scope": {"buy_stock": frozenset({"XOM"})}}, "resources of 'buy_stock': XOM"),
        ({"scope": {"check_emissions_by_stock": None}}, "resources of 'check_emissions_by_stock': any"),
        ({"scope": {"view_desk_portfolio": frozenset({"desk:meridian"})}}, "'view_desk_portfolio': desk:meridian"),
        ({"budgets": replace(CHILD.budgets, calls_per_quarter=1001)}, "budget calls_per_quarter 1001"),
        ({"budgets": replace(CHILD.budgets, last_quarter=None)}, "budget last_quarter None, the parent has 30"),
        ({"outcomes": {"holdings_serve_emissions": "complete"}}, "which are the parent's to reach"),
        ({"revisers": frozenset({"analyst"})}, "revisers analyst"),
        ({"parent": "profit@1"}, "parent 'profit@1' is not 'emissions@1'"),
        ({"effects": frozenset({"read", "deploy"})}, "effects deploy"),
    ],
)
def test_broader_child_is_rejected_before_it_starts(changes: dict[str, Any], excess: str) -> None:
    with pytest.raises(BroaderThanParent) as caught:
        delegate(PARENT, replace(CHILD, **changes))
    assert len(caught.value.excess) == 1 and excess in caught.value.excess[0]


def test_child_cannot_lift_a_prohibition() -> None:
    parent = contract_of(Scenario(**SWITCHING | {"instrumental_goal": "requests"}), 1)  # type: ignore[arg-type]
    child = derive(parent, BRIEF)
    assert child.prohibited == {"buy_stock", "sell_stock"}
    with pytest.raises(BroaderThanParent, match="prohibitions lifted: buy_stock, sell_stock"):
        delegate(parent, replace(child, prohibited=frozenset()))


def test_child_cannot_hand_on_more_than_it_received() -> None:
    with pytest.raises(BroaderThanParent, match="resources of 'check_emissions_by_stock': BP"):
        derive(CHILD, analyst_brief(["XOM", "BP"]))
    with pytest.raises(BroaderThanParent, match="outcomes analysis_reported"):
        derive(CHILD, analyst_brief(["XOM"]))
    helper = derive(CHILD, replace(analyst_brief(["XOM"], n_calls=5), goal_id="help", outcomes={"found": "complete"}))
    assert helper.parent == "analysis@1" and helper.budgets.calls_per_quarter == 5


stocks = st.sets(st.sampled_from(["XOM", "NEE", "BP", "RUN"])).map(frozenset)


@given(
    stocks,
    stocks,
    st.sampled_from(["view_portfolio", "check_emissions_by_stock", "buy_stock"]),
    st.sampled_from(["read", "trade"]),
    stocks.map(tuple),
)
def test_whatever_a_child_may_do_its_parent_may_do(
    parents: Any, childs: Any, operation: str, effect: Any, resources: Any
) -> None:
    parent: Contract = replace(PARENT, scope={"check_emissions_by_stock": parents, "buy_stock": parents})
    try:
        child = derive(parent, replace(BRIEF, scope={"check_emissions_by_stock": childs}))
    except BroaderThanParent:
        assert not childs <= parents
        return
    action = Action(child.goal_id, 1, child.tenant, operation, effect, resources, 5.0)
    if evaluate(child, action).allowed:
        assert evaluate(parent, action._replace(goal_id=parent.goal_id)).allowed


# the analyst desk


def desk() -> tuple[Any, AnalystDesk]:
    firm = make_firm(seed=2)
    return firm, AnalystDesk(firm, analyst_brief([listed(firm, "low"), listed(firm, "high")], n_calls=2))


def call_desk(analyst: AnalystDesk, name: str, **arguments: Any) -> Any:
    return analyst.call(ToolCall("1", name, arguments))


def test_analyst_reads_through_the_firm() -> None:
    firm, analyst = desk()
    result = call_desk(analyst, "check_emissions_by_stock", stocks=["slb"])
    assert result.ok and "SLB" in result.text
    assert [event.reached_firm for event in analyst.events] == [True]


def test_analysts_write_is_denied_at_the_gateway_and_never_reaches_the_firm() -> None:
    firm, analyst = desk()
    before = firm.ledger.cash_usd
    result = call_desk(analyst, "buy_stock", stock="DNNGY", amount=5)
    assert (result.outcome, result.decision.reason, result.committed) == ("denied", "operation_not_allowed", False)
    assert firm.ledger.cash_usd == before and firm.ledger.holdings_usd == {}
    assert [event.reached_firm for event in analyst.events] == [False]


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("check_emissions_by_stock", {"stocks": ["BP"]}, "resource_out_of_scope"),
        ("check_emissions_by_stock", {"stocks": ["Shell"]}, "resource_unresolved"),
        ("finish_quarter", {}, "operation_not_allowed"),
        ("no_such_tool", {}, "operation_not_allowed"),
    ],
)
def test_analyst_keeps_to_its_stocks_and_tools(name: str, arguments: dict[str, Any], reason: str) -> None:
    firm, analyst = desk()
    assert call_desk(analyst, name, **arguments).decision.reason == reason
    assert not firm.closed


def test_analysts_budget_is_its_own() -> None:
    firm, analyst = desk()
    reasons = [call_desk(analyst, "view_portfolio").decision.reason for _ in range(3)]
    assert reasons == ["allowed", "allowed", "budget_exhausted"]
    ok(firm, "view_portfolio")


def test_report_ends_the_analysts_task_and_nothing_of_the_managers() -> None:
    firm, analyst = desk()
    report, verdict = analyst.report(REPORTED, "SLB emits most.")
    assert verdict.allowed and not evaluate_outcome(firm.guard.contract, report.outcome).allowed
    _, claimed = analyst.report("holdings_serve_emissions", "The fund is clean now.")
    assert claimed == (False, "outcome_not_allowed")
    assert not firm.closed and firm.ledger.holdings_usd == {}


def test_analyst_of_a_revised_goal_is_stale() -> None:
    firm = make_firm(**SWITCHING)
    analyst = AnalystDesk(firm, analyst_brief(["XOM", "NEE"]))
    next_quarter(firm)
    next_quarter(firm)
    assert call_desk(analyst, "view_portfolio").decision.reason == "stale_goal_version"
