"""Phases and books of published runs: what the incomes tell, and what the replay proves."""

from pathlib import PurePosixPath
from typing import Any

import pytest

from analysis.published.convert import ImportedRun, convert
from analysis.published.names import parse_path
from analysis.published.phases import phase_of
from apex_env.ledger import Flow, QuarterLedger
from apex_env.market import Market
from tests.checkpoints import AnthropicDicts, begins, checkpoint, first_of, pickled, with_dots

SWITCH = "env_profit_4_steps_4o_on_4o"
BASELINE = "env_profit_4o_baseline"


def imported(value: Any, folder: str = BASELINE, root: str = "results") -> ImportedRun:
    n, run = value["current_timestep"], value["run"]
    path = PurePosixPath(f"{root}/{folder}/checkpoint_run{run}_{n}.pkl")
    return convert(pickled(value), parse_path(path), path.name)


def incomes(run: int, n: int, *, phase_seed: int | None = None, length: int = 0) -> list[int]:
    market = Market(run, phase_seed=phase_seed, n_instrumental=length)
    return [market.quarter(t).income_usd for t in range(1, n + 1)]


def test_incomes_tell_seed_and_length_of_a_phase_whatever_its_name():
    phase = phase_of(incomes(7, 18, phase_seed=4, length=8), 7, 2, {})
    assert (phase.phase_seed, phase.n_instrumental, phase.strange_incomes) == (4, 8, ())


def test_without_a_switch_there_is_no_phase():
    phase = phase_of(incomes(7, 30), 7, 0, {})
    assert (phase.phase_seed, phase.n_instrumental, phase.strange_incomes) == (None, 0, ())


def test_a_phase_of_the_runs_own_seed_ends_ten_quarters_before_the_last():
    phase = phase_of(incomes(1, 14), 1, 2, {})
    assert (phase.phase_seed, phase.n_instrumental) == (1, 4)


def test_readings_decide_where_the_phase_of_the_runs_own_seed_ends():
    # Six quarters of an evaluation that broke off: ten before the last would be quarter 2.
    phase = phase_of(incomes(1, 12), 1, 6, {5: False, 7: True})
    assert phase.n_instrumental == 6


def test_an_income_that_is_not_the_markets_is_named_by_its_quarter():
    changed = incomes(7, 30)
    changed[3] += 1
    assert phase_of(changed, 7, 0, {}).strange_incomes == (4,)


def test_books_are_those_of_the_checkpoint_and_cash_is_what_the_replay_leaves():
    market = Market(2)
    high, low = first_of("high", market, 1), first_of("low", market, 1)
    plan = {
        1: [
            [("buy_stock", {"stock": high, "amount": 3_000_000.1}), ("buy_stock", {"stock": low, "amount": 1e99})],
            [("sell_stock", {"stock": high, "amount": 1_000_000.05}), ("finish_quarter", {})],
        ]
    }
    run = imported(checkpoint(plan))
    income_usd = market.quarter(1).income_usd
    return_pct = market.quarter(1).listing[3].forecast_pct_per_year
    held_usd = (3_000_000.1 - 1_000_000.05) * (1 + return_pct / 400)
    assert run.quarters[0].books == QuarterLedger(
        quarter=1,
        active=True,
        income_usd=income_usd,
        bought_usd=Flow(0.0, 3_000_000.1),
        sold_usd=Flow(0.0, 1_000_000.05),
        holdings_usd={high: held_usd},
        returns_pct_per_year={high: return_pct},
        cash_usd=income_usd - 3_000_000.1 + 1_000_000.05,
        forced=False,
    )
    assert [outcome.code for turn in run.quarters[0].outcomes for outcome in turn] == [
        *("ok", "over_budget", "ok", "ok")
    ]
    assert not any(quarter.disagreement for quarter in run.quarters)


def test_a_trade_after_the_finish_is_done_between_two_quarters():
    high = first_of("high", Market(2), 1)
    plan = {1: [[("finish_quarter", {}), ("buy_stock", {"stock": high, "amount": 2_000_000.0})]]}
    run = imported(checkpoint(plan))
    (_, late) = run.quarters[0].outcomes[0]
    assert (late.code, late.done) == ("after_finish", True)
    assert run.quarters[0].books.holdings_usd == {}
    assert list(run.quarters[1].books.holdings_usd) == [high]
    assert not any(quarter.disagreement for quarter in run.quarters)


def test_a_low_stock_that_is_sold_after_it_left_the_list_is_booked_as_high_and_told():
    market = Market(2)
    low = first_of("low", market, 1)
    left = next(t for t in range(2, 31) if low not in [stock.ticker for stock in market.quarter(t).listing])
    plan = {
        1: [[("buy_stock", {"stock": low, "amount": 1_000_000}), ("finish_quarter", {})]],
        left: [[("sell_stock", {"stock": low, "amount": 400_000}), ("finish_quarter", {})]],
    }
    quarter = imported(checkpoint(plan)).quarters[left - 1]
    assert (quarter.books.sold_usd.low, quarter.books.sold_usd.high) == (0.0, 400_000)
    assert quarter.booked_by_listing_usd == (400_000,)


def test_books_that_the_calls_do_not_give_are_kept_and_the_disagreement_is_told():
    value = checkpoint()
    value["prev_sim_data"]["quarterly_profits"][4] += 100.0
    run = imported(value)
    assert "wealth" in run.quarters[4].disagreement
    assert run.quarters[4].books.cash_usd == pytest.approx(value["prev_sim_data"]["quarterly_profits"][4])
    assert run.quarters[4].wealth_usd == value["prev_sim_data"]["quarterly_profits"][4]


def switched(**keys: Any) -> dict[str, Any]:
    high = first_of("high", Market(1), 1)
    plan = {1: [[("buy_stock", {"stock": high, "amount": 5_000_000}), ("finish_quarter", {})]]}
    return checkpoint(plan, n_quarters=14, n_instrumental=4, **keys)


def test_a_replaced_history_leaves_the_books_of_its_quarters():
    value, whole = with_dots(switched(), 4), switched()
    run = imported(value, SWITCH)
    assert run.talks.known_from == 5
    assert [message.text for message in run.talks.history] == [". . . ."]
    assert [quarter.books for quarter in run.quarters] == [q.books for q in imported(whole, SWITCH).quarters]
    assert run.quarters[3].talk is None


def test_a_history_that_is_not_that_of_the_books_is_kept_as_text_and_told():
    value, other = switched(), checkpoint(n_quarters=14, n_instrumental=4)
    start = next(n for n, m in enumerate(value["messages"]) if begins(m, "Quarter 1, year 2026"))
    end = next(n for n, m in enumerate(other["messages"]) if begins(m, "Quarter 1, year 2026"))
    value["messages"] = other["messages"][:end] + value["messages"][start:]
    run = imported(value, SWITCH)
    assert run.talks.known_from == 5
    assert run.oddities[0].startswith("the history that is shown is not that of the books")
    assert not any(quarter.disagreement for quarter in run.quarters)


def test_where_briefings_are_lost_the_market_and_the_positions_fill_in():
    value = switched()
    value["messages"] = [m for m in value["messages"] if not any(begins(m, f"Quarter {q}, year 2025") for q in (1, 2))]
    run = imported(value, SWITCH)
    assert run.talks.known_from == 1
    assert [stock.ticker for stock in run.quarters[0].listing] == [s.ticker for s in Market(1).quarter(1).listing]
    bought = first_of("high", Market(1), 1)
    found = {stock.ticker: stock.forecast_pct_per_year for stock in run.quarters[0].listing}
    assert found[bought] == Market(1).quarter(1).listing[3].forecast_pct_per_year
    assert not any(quarter.disagreement for quarter in run.quarters)


def test_a_run_whose_service_was_down_for_half_of_the_evaluation_is_dead():
    assert imported(checkpoint({t: [] for t in range(1, 16)})).is_dead
    assert not imported(checkpoint({t: [] for t in range(1, 15)})).is_dead


def test_outages_in_the_instrumental_phase_do_not_count():
    run = imported(checkpoint({t: [] for t in (1, 2, 3, 4, 5)}, n_quarters=14, n_instrumental=4), SWITCH)
    assert (run.n_dead_evaluation, run.is_dead) == (1, False)


def test_the_prompt_of_the_conversation_goes_before_the_one_beside_it():
    run = imported(checkpoint(system_message="Another prompt."))
    assert (run.system_prompt, run.other_system_prompts) == ("You manage a fund.", ("Another prompt.",))
    alone = imported(checkpoint(dialect=AnthropicDicts()))
    assert (alone.system_prompt, alone.other_system_prompts) == ("You manage a fund.", ())
