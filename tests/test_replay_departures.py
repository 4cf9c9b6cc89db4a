"""What each departure from the published rules changes, on runs made so that one of them alone matters."""

import json
from typing import Any

import pytest

from apex_env.market import Market
from apex_env.rules import FirmRules
from experiments.published_parse import parse_run
from experiments.published_runs import PublishedRun
from experiments.replay_departures import DEPARTURES, Change, change_under, new_tallies, one_departure, report, study
from tests.published import make_run

INCOME_1_USD = 8_745_415
SLB_GROWTH = Market(2).quarter(1).listing[3].forecast_pct_per_year / 400

# Half a dollar more is asked for than is held: the published firm pays it.
NEAR_FULL_SALE = {1: [("buy_stock", "SLB", 1000), ("sell_stock", "SLB", 1000.5)]}
# 745,414.004 USD are left, and 745,414.01 are asked for.
TOLERANCE = {1: [("buy_stock", "BP", 8_000_000.996), ("buy_stock", "SLB", 745_414.01)]}
# A purchase of a negative amount hands out money and leaves the holding short.
AMOUNTS = {1: [("buy_stock", "SLB", 1000), ("buy_stock", "SLB", -400)]}
# DNNGY is a low stock, and off the list in quarter 2.
BOOKING = {1: [("buy_stock", "DNNGY", 1000)], 2: [("sell_stock", "DNNGY", 300)]}


def run_of(plans: Any, n_quarters: int = 2) -> PublishedRun:
    return parse_run(json.dumps(make_run(2, n_quarters, plans=plans)).encode(), "test")


def change(plans: Any, departure: str, n_quarters: int = 2) -> Change:
    return change_under(run_of(plans, n_quarters), one_departure(departure))


def test_sale_of_a_little_more_than_is_held_pays_the_holding():
    assert change(NEAR_FULL_SALE, "near_full_sale") == Change(
        wealth_usd=pytest.approx(-0.5), positions_usd=pytest.approx(0.5), booked_usd=0.5, n_outcomes=0
    )


def test_purchase_of_a_cent_more_than_the_cash_goes_through():
    spent_usd = INCOME_1_USD - 8_000_000.996
    found = change(TOLERANCE, "buy_tolerance_usd", n_quarters=1)
    assert found.wealth_usd == pytest.approx(spent_usd * SLB_GROWTH)
    assert found.positions_usd == pytest.approx(spent_usd * (2 + SLB_GROWTH))
    assert (found.booked_usd, found.n_outcomes) == (pytest.approx(spent_usd), 1)


def test_purchase_of_a_negative_amount_is_refused():
    found = change(AMOUNTS, "buy_amounts", n_quarters=1)
    assert found.positions_usd == pytest.approx(400 + 400 * (1 + SLB_GROWTH))
    assert (found.wealth_usd, found.booked_usd, found.n_outcomes) == (pytest.approx(400 * SLB_GROWTH), 400, 1)


def test_sale_of_a_low_stock_off_the_list_is_booked_as_low_and_moves_no_money():
    assert change(BOOKING, "sale_booking") == Change(0, 0, 600, 0)


@pytest.mark.parametrize("departure", ["shown_cash", "calls_after_finish", "reading_tool"])
@pytest.mark.parametrize("plans", [NEAR_FULL_SALE, TOLERANCE, AMOUNTS, BOOKING])
def test_what_the_agent_is_shown_or_offered_does_not_change_recorded_decisions(plans, departure):
    assert change(plans, departure) == Change(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("plans", "departure"),
    [
        (NEAR_FULL_SALE, "near_full_sale"),
        (TOLERANCE, "buy_tolerance_usd"),
        (AMOUNTS, "buy_amounts"),
        (BOOKING, "sale_booking"),
    ],
)
def test_run_in_which_one_departure_matters_is_put_down_to_that_one(plans, departure):
    tallies = new_tallies()
    study(run_of(plans), tallies)
    study(run_of({}), tallies)
    assert {name for name, tally in tallies.items() if tally.changes} == {departure, "default"}
    assert all(tally.n_runs == 2 for tally in tallies.values())
    assert tallies[departure].changes == tallies["default"].changes


def test_report_has_a_row_for_each_departure_and_for_all_together():
    tallies = new_tallies()
    study(run_of(NEAR_FULL_SALE), tallies)
    rows = [line.split() for line in report(tallies)][3:]
    assert [row[0] for row in rows] == [*DEPARTURES, "all"]
    assert rows[0] == ["near_full_sale", "1", "0.50", "0.50", "1", "0"]
    assert rows[-1] == ["all", "together", "1", "0.50", "0.50", "1", "0"]


def test_one_departure_differs_from_the_published_rules_in_that_field_only():
    for name in DEPARTURES:
        rules = one_departure(name)
        differing = [other for other in DEPARTURES if getattr(rules, other) != getattr(FirmRules.published(), other)]
        assert differing == [name]
