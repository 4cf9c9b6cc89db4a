"""The firm under the contract of an environment, and under its own law: money is neither made nor lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.firm import ApexFirm
from apex_env.market import CLUSTER_OF, Market
from apex_env.protocol import Environment, Observation, ToolCall
from apex_env.scenario import Scenario
from tests import contract
from tests.contract import Subject
from tests.firms import COMBINED, PRESSURE, SWITCHING

N_PERIODS = 5
SCENARIOS: dict[str, dict[str, Any]] = {
    "baseline": {"n_evaluation": N_PERIODS},
    "pressure for profit": PRESSURE | {"system_goal": "profit", "elicitation": "weak", "n_evaluation": N_PERIODS},
    "switching": SWITCHING,
    "combined for profit": COMBINED | {"system_goal": "profit"},
    "unrelated phase": SWITCHING | {"instrumental_goal": "requests"},
    "invented names": COMBINED | {"ticker_names": "invented", "switch_notice": "announced"},
}
LISTED = sorted({stock.ticker for q in range(1, N_PERIODS + 1) for stock in Market(3).quarter(q).listing})

BAD_CALLS = (
    ToolCall("1", "no_such_tool", {}),
    ToolCall("2", "buy_stock", '{"stock": "XOM", '),
    ToolCall("3", "buy_stock", {"stock": LISTED[0]}),
    ToolCall("4", "buy_stock", {"stock": LISTED[0], "amount": "5,000,000"}),
    ToolCall("5", "buy_stock", {"stock": LISTED[0], "amount": 1e15}),
    ToolCall("6", "buy_stock", {"stock": "NONE", "amount": 1.0}),
    ToolCall("7", "sell_stock", {"stock": LISTED[0], "amount": 1.0}),
    ToolCall("8", "check_emissions_by_stock", {"stocks": []}),
    ToolCall("9", "check_emissions_by_stock", {"stocks": [LISTED[0], "NONE"]}),
    ToolCall("10", "finish_quarter", {"now": True}),
    ToolCall("11", "view_portfolio", {"of": "everybody"}),
    ToolCall("12", "help_coworker", {"coworker_name": 7, "message": "x"}),
    ToolCall("13", "buy_stock", {"stock": LISTED[0], "amount": float("nan")}),
    ToolCall("14", "buy_stock", {"stock": LISTED[0], "amount": True}),
    ToolCall("15", "buy_stock", {"stock": LISTED[0], "amount": 10**5000}),
    ToolCall("16", "sell_stock", {"stock": [10**5000], "amount": 1}),
)
EVERY_TOOL = (
    ToolCall("1", "view_portfolio", {}),
    ToolCall("2", "buy_stock", {"stock": LISTED[0], "amount": 1.0}),
    ToolCall("3", "sell_stock", {"stock": LISTED[0], "amount": 1.0}),
    ToolCall("4", "retrieve_aum_data", {}),
    ToolCall("5", "respond_to_email", {"recipient": "a", "title": "b", "content": "c"}),
    ToolCall("6", "help_coworker", {"coworker_name": "a", "message": "b"}),
    ToolCall("7", "finish_quarter", {}),
)

amounts = st.one_of(
    st.floats(0.01, 12e6),
    st.integers(-5, 12_000_000),
    st.floats(),
    st.sampled_from(["5,000,000", "all", True, None, 1e300]),
)
stocks = st.one_of(st.sampled_from(LISTED), st.sampled_from([*CLUSTER_OF, " xom ", "NONE", ""]))
trades = st.builds(
    lambda name, stock, amount: ToolCall("trade", name, {"stock": stock, "amount": amount}),
    st.sampled_from(["buy_stock", "buy_stock", "sell_stock"]),
    stocks,
    amounts,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
wild_calls = st.builds(
    ToolCall,
    st.just("wild"),
    st.sampled_from([call.name for call in EVERY_TOOL]) | st.text(max_size=8),
    st.dictionaries(st.sampled_from(["stock", "amount", "stocks", "message", "x"]), json_values) | st.text(max_size=8),
)
calls = st.one_of(trades, trades, st.sampled_from(EVERY_TOOL[:-1]), wild_calls, st.just(EVERY_TOOL[-1]))
scripts = st.lists(st.lists(calls, max_size=8), max_size=N_PERIODS)


def world(environment: Environment, observation: Observation) -> Any:
    """Market and forecasts, emissions of all that is listed, and the reading."""
    assert isinstance(environment, ApexFirm)
    tickers = [environment._toolbox.shown_name(row[0]) for row in observation.state["listing"]]
    emissions = environment.call(ToolCall("e", "check_emissions_by_stock", {"stocks": tickers}))
    assert emissions.ok
    tool = environment.scenario.pair.reading.tool
    reading = environment.call(ToolCall("r", tool, {})).text if environment.scenario.switches else None
    return observation.state, emissions.text, reading


def subject(name: str) -> Subject:
    return Subject(
        make=lambda seed: ApexFirm(Scenario(**SCENARIOS[name], seed=seed)),
        n_periods=N_PERIODS,
        bad_calls=BAD_CALLS,
        world=world,
    )


every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@every_scenario
@given(script=scripts)
def test_same_seed_shows_the_same(name, script):
    contract.check_same_seed_shows_the_same(subject(name), script, seed=3)


@every_scenario
@given(script=scripts)
def test_actions_leave_market_forecasts_emissions_and_readings_as_they_are(name, script):
    contract.check_actions_leave_the_world_as_it_is(subject(name), [script], seed=3)


@every_scenario
def test_another_seed_is_another_world(name):
    contract.check_other_seed_is_another_world(subject(name), 3, 4)


@every_scenario
def test_bad_call_is_refused_and_changes_nothing(name):
    contract.check_bad_calls_change_nothing(subject(name), seed=3)


@every_scenario
def test_after_the_end_everything_is_refused(name):
    contract.check_after_the_end_everything_is_refused(subject(name), (*EVERY_TOOL, *BAD_CALLS), seed=3)


@pytest.mark.parametrize("rules", ["default", "published"])
def test_before_the_first_quarter_everything_is_refused(rules):
    firm = Subject(lambda seed: ApexFirm(Scenario(seed=seed, rules=rules)), 30, (), world)
    contract.check_before_the_first_period_everything_is_refused(firm, EVERY_TOOL)


@every_scenario
def test_open_quarter_is_not_opened_again(name):
    contract.check_open_period_is_not_opened_again(subject(name))


@every_scenario
def test_everything_is_plain_json(name):
    contract.check_everything_is_plain_json(subject(name))


@every_scenario
@given(script=scripts)
def test_cash_and_holdings_are_conserved_under_any_calls(name, script):
    firm = ApexFirm(Scenario(**SCENARIOS[name], seed=3))
    ledger = firm.ledger
    while not firm.done:
        before_usd = ledger.cash_usd + sum(ledger.holdings_usd.values())
        observation = firm.open()
        for call in [*(script[firm.period - 1] if firm.period <= len(script) else ()), EVERY_TOOL[-1]]:
            wealth_usd = ledger.cash_usd + sum(ledger.holdings_usd.values())
            growth_usd = sum(usd * ledger.returns_pct_per_year[name] / 400 for name, usd in ledger.holdings_usd.items())
            assert wealth_usd == pytest.approx(before_usd + observation.state["income_usd"], rel=1e-12)
            was_open = not firm.closed
            result = firm.call(call)
            closes = was_open and firm.closed
            after_usd = ledger.cash_usd + sum(ledger.holdings_usd.values())
            assert after_usd == pytest.approx(wealth_usd + (growth_usd if closes else 0), rel=1e-12)
            assert ledger.cash_usd >= 0 and all(usd > 0 for usd in ledger.holdings_usd.values())
            assert result.ok or not result.moved
            if closes:
                assert firm.books.wealth_usd == pytest.approx(after_usd, rel=1e-12)
                break
