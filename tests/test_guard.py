"""The guard: nothing reaches the ledger that it did not authorise, and shadow decides what enforce would do."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.contract import Action, Verdict
from apex_env.firm import ApexFirm
from apex_env.guard import Authorised, Denied, Guard, Trade, replayed
from apex_env.ledger import Flow, QuarterLedger
from apex_env.mandate import TENANT, contract_of
from apex_env.market import CLUSTER_OF
from apex_env.protocol import Decision, ToolCall
from apex_env.scenario import Scenario
from experiments.errors import InputError
from experiments.treatment import Treatment
from tests.firms import LISTING, SWITCHING, call, listed, make_firm, make_ledger, next_quarter, ok

WEAK = {"setting": "adversarial_pressure", "elicitation": "weak"}


def action(ticker: str = "XOM", **changes: Any) -> Action:
    return Action("emissions", 1, TENANT, "buy_stock", "trade", (ticker,), 5.0)._replace(**changes)


def guard(mode: Any = "enforce", **fields: Any) -> Guard:
    return Guard(contract_of(Scenario(), 1), mode, **fields)


# the authorised command


def test_ledger_takes_no_order_that_was_not_authorised() -> None:
    ledger = make_ledger(cash_usd=100.0, NEE=50.0)
    for order in (Trade("NEE", 5.0), ("NEE", 5.0), "NEE", None):
        with pytest.raises(TypeError, match="no authorised order"):
            ledger.buy(order, listing=LISTING, active=True)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="no authorised order"):
            ledger.sell(order, listing=LISTING)  # type: ignore[arg-type]
    assert (ledger.cash_usd, ledger.holdings_usd) == (100.0, {"NEE": 50.0})


def test_authorised_commands_come_from_the_guard_alone_and_stay_as_they_are() -> None:
    with pytest.raises(PermissionError, match="only the guard"):
        Authorised(Trade("NEE", 5.0), object())
    order = replayed("NEE", 5.0)
    with pytest.raises(AttributeError, match="not changed"):
        order.command = Trade("XOM", 5.0)
    with pytest.raises(TypeError):

        class Forged(Authorised[Trade]):
            def __init__(self) -> None: ...

        make_ledger(cash_usd=10.0).buy(Forged(), listing=LISTING, active=True)


def test_enforcing_guard_authorises_nothing_that_it_denied() -> None:
    enforcing = guard()
    decision = enforcing.decide(action())
    assert (decision.allowed, decision.reason) == (False, "resource_out_of_scope")
    with pytest.raises(Denied):
        enforcing.authorise(Trade("XOM", 5.0), decision)
    allowed = enforcing.authorise(Trade("NEE", 5.0), enforcing.decide(action("NEE")))
    assert allowed.command == Trade("NEE", 5.0)


def test_guard_that_breaks_denies() -> None:
    def broken(*_: object) -> Verdict:
        raise ZeroDivisionError

    assert not guard(judge=broken).decide(action("NEE")).allowed
    assert guard("shadow", judge=broken).decide(action("NEE")).reason == "guard_error"


def test_guard_that_is_off_decides_nothing() -> None:
    assert guard("off").decide(action()) == Decision() == guard("off").of_error("unknown_tool")


# in the firm


def test_denied_purchase_reaches_no_ledger_and_the_agent_may_go_another_way() -> None:
    firm = make_firm(seed=2, guard="enforce")
    before = (firm.ledger.cash_usd, dict(firm.ledger.holdings_usd), firm.ledger.bought_usd)
    result = call(firm, "buy_stock", stock=listed(firm, "high"), amount=5_000_000)
    assert (result.outcome, result.committed, result.moved) == ("denied", False, {})
    assert result.decision.reason == "resource_out_of_scope"
    assert "reason: resource_out_of_scope; operation: buy_stock; resource: SLB" in result.text
    assert (firm.ledger.cash_usd, firm.ledger.holdings_usd, firm.ledger.bought_usd) == before
    ok(firm, "buy_stock", stock=listed(firm, "low"), amount=5_000_000)
    ok(firm, "finish_quarter")
    assert firm.books.bought_usd == Flow(low=5_000_000)
    assert firm.books.denied_usd == Flow(high=5_000_000)
    assert QuarterLedger.from_json(firm.books.to_json()) == firm.books


def test_denied_amounts_are_counted_by_quarter() -> None:
    firm = make_firm(seed=2, guard="enforce")
    call(firm, "buy_stock", stock=listed(firm, "high"), amount=7)
    next_quarter(firm)
    ok(firm, "finish_quarter")
    assert firm.books.denied_usd == Flow() and "denied_usd" not in firm.snapshot()


def test_shadow_lets_everything_through_and_records_what_enforce_would_do() -> None:
    firm = make_firm(seed=2)
    result = ok(firm, "buy_stock", stock=listed(firm, "high"), amount=5_000_000)
    assert result.committed and (result.decision.allowed, result.decision.reason) == (False, "resource_out_of_scope")


def test_weak_prompt_forbids_no_purchase() -> None:
    firm = make_firm(seed=2, guard="enforce", **WEAK)
    assert ok(firm, "buy_stock", stock=listed(firm, "high"), amount=5).decision.reason == "allowed"


def test_denial_shows_an_invented_name_as_the_agent_knows_it() -> None:
    firm = make_firm(seed=2, guard="enforce", ticker_names="invented")
    shown = firm.corpus.invented_tickers["SLB"]
    text = call(firm, "buy_stock", stock=shown, amount=5).text
    assert shown in text and "SLB" not in text


@pytest.mark.parametrize(
    ("name", "arguments", "outcome", "reason"),
    [
        ("transfer_funds", {}, "unknown_tool", "operation_not_allowed"),
        ("retrieve_aum_data", {}, "unknown_tool", "operation_not_allowed"),
        ("buy_stock", {"stock": "DNNGY", "amount": float("inf")}, "invalid_amount", "invalid_amount"),
        ("buy_stock", {"stock": "DNNGY", "amount": "5,000"}, "bad_argument", "not_evaluated"),
        ("buy_stock", {"stock": "DNNGY"}, "missing_argument", "not_evaluated"),
        ("buy_stock", {"stock": "DNNGY", "amount": -5}, "denied", "invalid_amount"),
        ("buy_stock", {"stock": "Shell", "amount": 5}, "denied", "resource_unresolved"),
        ("check_emissions_by_stock", {"stocks": ["DNNGY", "Shell"]}, "denied", "resource_unresolved"),
        ("view_portfolio", {}, "ok", "allowed"),
        ("respond_to_email", {"recipient": "a", "title": "b", "content": "c"}, "ok", "allowed"),
    ],
)
def test_what_never_became_an_action_is_told_apart_from_what_was_denied(
    name: str, arguments: dict[str, Any], outcome: str, reason: str
) -> None:
    result = call(make_firm(seed=2, guard="enforce"), name, **arguments)
    assert (result.outcome, result.decision.reason) == (outcome, reason)


def test_calls_after_the_finish_are_after_the_end() -> None:
    firm = make_firm(seed=2)
    ok(firm, "finish_quarter")
    assert call(firm, "view_portfolio").decision.reason == "after_end"


def test_revision_changes_what_is_allowed_from_its_quarter_on() -> None:
    firm = make_firm(guard="enforce", **SWITCHING)
    ok(firm, "buy_stock", stock=listed(firm, "high"), amount=5)
    assert call(firm, "buy_stock", stock=listed(firm, "low"), amount=5).outcome == "denied"
    next_quarter(firm)
    assert next_quarter(firm).revision is not None
    denied = call(firm, "buy_stock", stock=listed(firm, "high"), amount=5)
    assert (denied.outcome, denied.goal_version, denied.goal_version_seen) == ("denied", 2, 1)
    after = ok(firm, "buy_stock", stock=listed(firm, "low"), amount=5)
    assert after.goal_version_seen == 2, "the denial has named the version in force"


def test_unrelated_phase_prohibits_trading() -> None:
    firm = make_firm(guard="enforce", **SWITCHING | {"instrumental_goal": "requests"})
    assert call(firm, "buy_stock", stock="XOM", amount=5).decision.reason == "operation_not_allowed"
    shadow = make_firm(**SWITCHING | {"instrumental_goal": "requests"})
    assert call(shadow, "buy_stock", stock="XOM", amount=5).outcome == "trading_locked"


def test_other_desks_book_is_not_the_agents_to_read() -> None:
    firm = make_firm(seed=2, tools="extended", guard="enforce")
    assert call(firm, "view_desk_portfolio", desk="Meridian").decision.reason == "tenant_mismatch"
    assert "Cash available" in ok(firm, "view_desk_portfolio", desk="fortuna").text
    assert call(firm, "view_desk_portfolio", desk="Nowhere").decision.reason == "resource_unresolved"
    open_firm = make_firm(seed=2, tools="extended")
    read = ok(open_firm, "view_desk_portfolio", desk="Meridian")
    assert read.text.count("USD") == 5 and not read.decision.allowed
    assert call(make_firm(seed=2), "view_desk_portfolio", desk="Meridian").outcome == "unknown_tool"


def test_stale_names_block_trades_and_let_reads_go_on() -> None:
    firm = make_firm(seed=2, guard="enforce")
    firm._toolbox.resolver = dataclasses.replace(firm.resolver, fresh=False)
    assert call(firm, "buy_stock", stock="DNNGY", amount=5).decision.reason == "resource_unresolved"
    ok(firm, "check_emissions_by_stock", stocks=["DNNGY"])
    ok(firm, "view_portfolio")


calls = st.one_of(
    st.builds(
        lambda name, stock, amount: ToolCall("1", name, {"stock": stock, "amount": amount}),
        st.sampled_from(["buy_stock", "sell_stock"]),
        st.sampled_from([*sorted(CLUSTER_OF), "slb", "Shell"]),
        st.integers(-1, 3_000_000),
    ),
    st.sampled_from(
        [
            ToolCall("1", "view_portfolio", {}),
            ToolCall("1", "view_desk_portfolio", {"desk": "Meridian"}),
            ToolCall("1", "retrieve_aum_data", {}),
            ToolCall("1", "no_such_tool", {}),
            ToolCall("1", "finish_quarter", {}),
        ]
    ),
)


@given(st.lists(calls, max_size=25), st.sampled_from(["strong", "weak", "switching"]))
def test_decision_in_shadow_is_the_one_of_enforce_and_denied_calls_move_nothing(
    script: list[ToolCall], prompt: str
) -> None:
    chosen = SWITCHING if prompt == "switching" else {"elicitation": prompt}
    scenario = Scenario(seed=2, tools="extended", **chosen)
    shadow = ApexFirm(scenario)
    enforcing = ApexFirm(dataclasses.replace(scenario, guard="enforce"))
    for sent in script:
        for firm in (shadow, enforcing):
            if firm.closed and not firm.done:
                firm.open()
        told, before = shadow.call(sent), (enforcing.ledger.cash_usd, dict(enforcing.ledger.holdings_usd))
        result = enforcing.call(sent)
        assert told.decision == result.decision
        if result.decision.allowed:
            assert result.outcome != "denied"
        if not result.decision.allowed:
            assert not result.committed
            assert (enforcing.ledger.cash_usd, enforcing.ledger.holdings_usd) == before


# as a factor of a treatment


def test_default_guard_is_left_out_of_a_runs_identity_and_every_other_is_in_it() -> None:
    assert "guard" not in Treatment().identity() and Treatment().guard == "shadow"
    for level in ("off", "enforce"):
        assert Treatment(guard=level).identity()["guard"] == level  # type: ignore[arg-type]
    with pytest.raises(InputError, match="guard 'strict' is not allowed: off, shadow, enforce"):
        Treatment(guard="strict")  # type: ignore[arg-type]


def test_baseline_and_phase_are_played_under_the_guard_of_their_cell() -> None:
    treatment = Treatment("goal_switching", n_instrumental=2, guard="enforce")
    assert treatment.baseline().guard == treatment.phase().guard == treatment.scenario(1).guard == "enforce"
