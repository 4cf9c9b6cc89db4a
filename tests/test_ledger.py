"""The ledger: purchases, sales, growth and bookings, under both sets of rules."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.guard import replayed
from apex_env.ledger import Flow, Ledger, QuarterLedger, TradeRefused
from apex_env.rules import FirmRules
from tests.firms import LISTING, make_ledger

DEFAULT, PUBLISHED = FirmRules.default(), FirmRules.published()
both_rules = pytest.mark.parametrize("rules", [DEFAULT, PUBLISHED], ids=["default", "published"])


def buy(ledger: Ledger, ticker: str, amount_usd: float, *, active: bool = True) -> float:
    return ledger.buy(replayed(ticker, amount_usd), listing=LISTING, active=active)


def sell(ledger: Ledger, ticker: str, amount_usd: float) -> float:
    return ledger.sell(replayed(ticker, amount_usd), listing=LISTING)


def state(ledger: Ledger) -> tuple[object, ...]:
    return ledger.cash_usd, dict(ledger.holdings_usd), dict(ledger.returns_pct_per_year), ledger.bought_usd


def refused(code: str):
    return pytest.raises(TradeRefused, match=f"^{code}$")


@both_rules
def test_buy_moves_money_from_cash_into_the_position(rules):
    ledger = make_ledger(rules=rules, cash_usd=1000.0)
    assert buy(ledger, "XOM", 300.0) == 300.0
    assert (ledger.cash_usd, ledger.holdings_usd, ledger.bought_usd) == (700.0, {"XOM": 300.0}, Flow(0.0, 300.0))


def test_whole_position_takes_the_return_listed_at_its_last_purchase():
    ledger = make_ledger(cash_usd=100.0, XOM=300.0)
    assert ledger.returns_pct_per_year == {"XOM": 8.0}
    buy(ledger, "XOM", 100.0)
    ledger.grow()
    # 400 at 10 per cent a year, the listed return, for a quarter.
    assert ledger.holdings_usd == {"XOM": pytest.approx(410.0)}


@both_rules
def test_buy_is_refused_in_an_inactive_quarter(rules):
    ledger = make_ledger(rules=rules, cash_usd=1000.0)
    with refused("quarter_inactive"):
        buy(ledger, "XOM", 1.0, active=False)
    assert state(ledger) == state(make_ledger(rules=rules, cash_usd=1000.0))


@both_rules
def test_buy_of_a_stock_that_is_not_listed_is_refused(rules):
    ledger = make_ledger(rules=rules, cash_usd=1000.0, CVX=5.0)
    with refused("not_listed"):
        buy(ledger, "CVX", 1.0)
    assert state(ledger) == state(make_ledger(rules=rules, cash_usd=1000.0, CVX=5.0))


@both_rules
def test_buy_of_more_than_the_cash_is_refused(rules):
    ledger = make_ledger(rules=rules, cash_usd=1000.0)
    with refused("over_budget"):
        buy(ledger, "XOM", 1000.02)
    assert state(ledger) == state(make_ledger(rules=rules, cash_usd=1000.0))


@both_rules
def test_buy_of_exactly_the_cash_empties_it(rules):
    ledger = make_ledger(rules=rules, cash_usd=1000.0)
    buy(ledger, "XOM", 1000.0)
    assert ledger.cash_usd == 0.0


def test_buy_of_up_to_a_cent_above_the_cash_spends_exactly_the_cash():
    ledger = make_ledger(cash_usd=999.996)
    assert buy(ledger, "XOM", 1000.0) == 999.996
    assert (ledger.cash_usd, ledger.holdings_usd, ledger.bought_usd.high) == (0.0, {"XOM": 999.996}, 999.996)


def test_published_rules_refuse_a_buy_of_a_fraction_of_a_cent_above_the_cash():
    ledger = make_ledger(rules=PUBLISHED, cash_usd=999.996)
    with refused("over_budget"):
        buy(ledger, "XOM", 1000.0)


def test_buy_of_a_cent_without_any_cash_is_refused():
    with refused("over_budget"):
        buy(make_ledger(), "XOM", 0.01)


@pytest.mark.parametrize("amount_usd", [0, 0.0, -5.0, math.nan, math.inf, -math.inf])
def test_buy_of_an_amount_that_is_not_positive_and_finite_is_refused(amount_usd):
    ledger = make_ledger(cash_usd=1000.0)
    with refused("invalid_amount"):
        buy(ledger, "XOM", amount_usd)
    assert state(ledger) == state(make_ledger(cash_usd=1000.0))


def test_published_rules_take_purchases_of_zero_and_less_as_they_come():
    ledger = make_ledger(rules=PUBLISHED, cash_usd=1000.0, XOM=500.0)
    buy(ledger, "XOM", 0)
    assert (ledger.holdings_usd["XOM"], ledger.returns_pct_per_year["XOM"]) == (500.0, 10.0)
    buy(ledger, "XOM", -200.0)
    assert (ledger.cash_usd, ledger.holdings_usd["XOM"], ledger.bought_usd.high) == (1200.0, 300.0, -200.0)


@pytest.mark.parametrize("amount_usd", [math.nan, math.inf, -math.inf])
def test_published_rules_keep_amounts_that_are_no_numbers_out_of_the_books(amount_usd):
    with refused("invalid_amount"):
        buy(make_ledger(rules=PUBLISHED, cash_usd=1.0), "XOM", amount_usd)


@both_rules
def test_sale_moves_money_from_the_position_into_cash(rules):
    ledger = make_ledger(rules=rules, cash_usd=10.0, XOM=500.0, NEE=50.0)
    assert sell(ledger, "XOM", 200.0) == 200.0
    assert (ledger.cash_usd, ledger.holdings_usd) == (210.0, {"XOM": 300.0, "NEE": 50.0})
    assert ledger.sold_usd == Flow(0.0, 200.0)


@both_rules
def test_sale_of_a_stock_that_is_not_held_is_refused(rules):
    with refused("not_held"):
        sell(make_ledger(rules=rules, XOM=500.0), "BP", 1.0)


@both_rules
@pytest.mark.parametrize("amount_usd", [0, -1.0, math.nan])
def test_sale_of_an_amount_that_is_not_positive_is_refused(rules, amount_usd):
    ledger = make_ledger(rules=rules, XOM=500.0)
    with refused("invalid_amount"):
        sell(ledger, "XOM", amount_usd)
    assert state(ledger) == state(make_ledger(rules=rules, XOM=500.0))


@both_rules
@pytest.mark.parametrize("amount_usd", [501.01, math.inf])
def test_sale_of_over_a_dollar_more_than_the_holding_is_refused(rules, amount_usd):
    ledger = make_ledger(rules=rules, XOM=500.0)
    with refused("over_sell"):
        sell(ledger, "XOM", amount_usd)
    assert state(ledger) == state(make_ledger(rules=rules, XOM=500.0))


@pytest.mark.parametrize("amount_usd", [499.0, 499.5, 500.0, 500.75, 501.0])
def test_sale_within_a_dollar_of_the_holding_sells_all_and_pays_the_holding(amount_usd):
    ledger = make_ledger(cash_usd=1.0, XOM=500.0)
    assert sell(ledger, "XOM", amount_usd) == 500.0
    assert (ledger.cash_usd, ledger.holdings_usd, ledger.returns_pct_per_year) == (501.0, {}, {})
    assert ledger.sold_usd == Flow(0.0, 500.0)


@pytest.mark.parametrize(
    ("amount_usd", "left"), [(499.0, {"XOM": 1.0}), (499.5, {}), (500.0, {}), (500.75, {}), (501.0, {})]
)
def test_published_rules_pay_what_was_asked_and_close_a_position_under_a_dollar(amount_usd, left):
    ledger = make_ledger(rules=PUBLISHED, cash_usd=1.0, XOM=500.0)
    assert sell(ledger, "XOM", amount_usd) == amount_usd
    assert (ledger.cash_usd, ledger.holdings_usd) == (1.0 + amount_usd, left)
    assert ledger.returns_pct_per_year.keys() == left.keys()


@pytest.mark.parametrize(
    ("rules", "booked"), [(DEFAULT, Flow(100.0, 0.0)), (PUBLISHED, Flow(0.0, 100.0))], ids=["default", "published"]
)
def test_sale_of_a_low_stock_that_left_the_list_is_booked_by(rules, booked):
    ledger = make_ledger(rules=rules, TSLA=500.0)
    sell(ledger, "TSLA", 100.0)
    assert ledger.sold_usd == booked


@both_rules
def test_sale_of_a_listed_low_stock_is_booked_as_low_and_of_any_high_stock_as_high(rules):
    ledger = make_ledger(rules=rules, NEE=500.0, XOM=500.0, CVX=500.0)
    for ticker in ("NEE", "XOM", "CVX"):
        sell(ledger, ticker, 100.0)
    assert ledger.sold_usd == Flow(100.0, 200.0)


def test_income_begins_a_quarter_with_empty_flows():
    ledger = make_ledger(cash_usd=1000.0, XOM=10.0)
    buy(ledger, "XOM", 5.0)
    sell(ledger, "XOM", 2.0)
    ledger.receive(8_000_000)
    assert (ledger.cash_usd, ledger.bought_usd, ledger.sold_usd) == (8_000_997.0, Flow(), Flow())


def test_positions_grow_by_a_quarter_of_their_return_and_cash_earns_nothing():
    ledger = make_ledger(cash_usd=1000.0, XOM=400.0, NEE=100.0)
    ledger.returns_pct_per_year["NEE"] = 1.0
    ledger.grow()
    assert ledger.holdings_usd == {"XOM": pytest.approx(408.0), "NEE": pytest.approx(100.25)}
    assert ledger.cash_usd == 1000.0


@pytest.mark.parametrize(
    ("cash_usd", "floored", "rounded"), [(10.006, 10.0, 10.01), (10.0099, 10.0, 10.01), (0.29, 0.29, 0.29), (7, 7, 7)]
)
def test_shown_cash_is_rounded_down_and_by_the_published_rules_to_the_nearest_cent(cash_usd, floored, rounded):
    assert make_ledger(cash_usd=cash_usd).shown_cash_usd == floored
    assert make_ledger(rules=PUBLISHED, cash_usd=cash_usd).shown_cash_usd == rounded


@given(st.floats(0.01, 5e9))
def test_shown_cash_can_always_be_spent(cash_usd):
    ledger = make_ledger(cash_usd=cash_usd)
    shown_usd = ledger.shown_cash_usd
    assert cash_usd - 0.0101 < shown_usd < cash_usd + 0.005
    if shown_usd > 0:
        assert buy(ledger, "XOM", shown_usd) == pytest.approx(shown_usd)


@given(st.lists(st.tuples(st.sampled_from(["buy", "sell"]), st.floats(-1, 1100)), max_size=30))
def test_trades_conserve_money(trades):
    ledger = make_ledger(cash_usd=1000.0)
    for name, amount_usd in trades:
        try:
            (buy if name == "buy" else sell)(ledger, "XOM", amount_usd)
        except TradeRefused:
            continue
        assert ledger.cash_usd + ledger.holdings_usd.get("XOM", 0.0) == pytest.approx(1000.0, rel=1e-12)
        assert ledger.cash_usd >= 0


def test_published_rules_do_not_conserve_money():
    ledger = make_ledger(rules=PUBLISHED, XOM=500.0)
    sell(ledger, "XOM", 501.0)
    assert ledger.cash_usd + sum(ledger.holdings_usd.values()) == 501.0


def test_rules_differ_in_every_departure_and_are_found_by_name():
    assert FirmRules.named("default") == DEFAULT and FirmRules.named("published") == PUBLISHED
    assert all(getattr(DEFAULT, name) != getattr(PUBLISHED, name) for name in DEFAULT.__slots__)
    with pytest.raises(ValueError, match="rules 'paper' are not known: default, published"):
        FirmRules.named("paper")


def test_books_come_back_from_json():
    books = QuarterLedger(3, False, 9e6, Flow(1.0, 2.0), Flow(3.0, 4.0), {"XOM": 5.0}, {"XOM": 8.0}, 6.0, True)
    assert QuarterLedger.from_json(books.to_json() | {"more": 1}) == books
    assert books.to_json()["bought_usd"] == {"low": 1.0, "high": 2.0}


def test_books_know_holdings_by_cluster_and_wealth():
    books = QuarterLedger(1, holdings_usd={"XOM": 5.0, "NEE": 2.0, "BP": 1.0}, cash_usd=10.0)
    assert (books.held_usd("high"), books.held_usd("low")) == (6.0, 2.0)
    assert (books.invested_usd, books.wealth_usd) == (8.0, 18.0)


def test_one_departure_leaves_the_others_as_they_are():
    rules = replace(PUBLISHED, buy_tolerance_usd=0.01)
    ledger = make_ledger(rules=rules, cash_usd=999.996, NEE=500.0)
    buy(ledger, "XOM", 1000.0)
    assert sell(ledger, "NEE", 501.0) == 501.0
