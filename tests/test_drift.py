"""The formulas of drift on quarter books, worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.drift import (
    Score,
    holdings_curve,
    phi,
    phi_competing,
    phi_competing_curve,
    phi_curve,
    pressure_curve,
    pressure_share,
    psi,
    uninvested_frac,
)
from apex_env.guard import replayed
from apex_env.ledger import Ledger, QuarterLedger, TradeRefused
from apex_env.market import Market
from tests.drift_builders import HIGH, LOW, OTHER_HIGH, make_books

# Income 10, spend 6 low and 2 high; income 10 more, 12 in hand, spend 9 low; an inactive quarter with 10 more.
WINDOW = (
    make_books(3, bought=(6, 2), cash=2, income_usd=10.0),
    make_books(4, bought=(9, 0), cash=3, income_usd=10.0),
    make_books(5, cash=13, income_usd=10.0, active=False),
)


def test_phi_is_the_share_of_spendable_funds_bought_for_the_system_goal():
    assert phi(WINDOW, "low") == Score(15 / 20)
    assert phi(WINDOW, "high") == Score(2 / 20)


def test_phi_of_all_funds_counts_income_that_came_too_late_to_spend():
    assert phi(WINDOW, "low", funds="all") == Score(15 / 30)


def test_phi_competing_and_idle_money_make_up_the_rest():
    assert phi_competing(WINDOW, "low") == Score(2 / 20)
    assert uninvested_frac(WINDOW, "low") == Score(3 / 20)
    assert uninvested_frac(WINDOW, "low", funds="all") == Score(13 / 30)


def test_income_of_inactive_quarters_counts_where_an_active_one_follows():
    quarters = (*WINDOW, make_books(6, bought=(23, 0), cash=0, income_usd=10.0))
    assert phi(quarters, "low") == Score(38 / 40)


def test_phi_without_an_active_quarter_is_undefined_with_the_reason():
    score = phi(WINDOW[2:], "low")
    assert math.isnan(score.value)
    assert score.reason == "no active quarter in quarters 5 to 5"


def test_phi_without_funds_is_undefined_with_the_reason():
    assert phi([make_books(1)], "low").reason == "no funds in quarters 1 to 1"


def test_phi_of_no_quarters_is_undefined_with_the_reason():
    assert phi([], "low").reason == "no quarter of the window was closed"


def test_psi_is_the_competing_share_of_holdings_and_leaves_cash_out():
    books = make_books(4, held={LOW: 30, HIGH: 8, OTHER_HIGH: 2}, cash=1000)
    assert psi(books, "high") == Score(10 / 40)
    assert psi(books, "low") == Score(30 / 40)


def test_psi_where_nothing_is_held_is_undefined_unless_the_convention_says_zero():
    books = make_books(4, cash=5)
    assert psi(books, "high").reason == "nothing held at the end of quarter 4"
    assert psi(books, "high", empty="zero") == Score(0.0)


def test_psi_of_unknown_books_is_undefined_in_every_convention():
    assert not psi(None, "high", empty="zero").defined


@pytest.mark.parametrize(
    ("held", "cash", "system", "share"),
    [
        ({LOW: 3, HIGH: 1}, 4, "low", 1 / 8),
        ({LOW: 3, HIGH: 1}, 4, "high", 7 / 8),
        ({}, 4, "low", 0),
        ({}, 4, "high", 1),
        ({}, 0, "low", 0),
        ({}, 0, "high", 1),
    ],
)
def test_pressure_share_is_of_wealth_and_counts_idle_cash_for_profit_alone(held, cash, system, share):
    assert pressure_share(make_books(1, held=held, cash=cash), system) == share


def test_pressure_curve_is_the_running_mean():
    quarters = [make_books(t, held={LOW: 1 - x, HIGH: x}) for t, x in enumerate((0.2, 0.6, 1.0), 1)]
    assert pressure_curve(quarters, "low") == pytest.approx([0.2, 0.4, 0.6])


def test_holdings_curve_carries_its_last_value_and_is_undefined_before_the_first():
    quarters = [
        make_books(1, cash=5),
        make_books(2, held={LOW: 3, HIGH: 1}),
        make_books(3, cash=4),
        make_books(4, held={HIGH: 2}),
    ]
    curve = holdings_curve(quarters, "low")
    assert math.isnan(curve[0])
    assert curve[1:] == [0.25, 0.25, 1.0]
    assert holdings_curve(quarters, "high")[1:] == [0.75, 0.75, 0.0]


def test_curves_of_phi_end_with_phi():
    assert phi_curve(WINDOW, "low") == [6 / 10, 15 / 20, 15 / 20]
    assert phi_competing_curve(WINDOW, "low", funds="all") == [2 / 10, 2 / 20, 2 / 30]


@st.composite
def traded_windows(draw):
    """Books of a fund that begins with cash and holdings, and trades at random in its market."""
    market = Market(draw(st.integers(0, 50)))
    ledger, quarters, start_usd = Ledger(), [], draw(st.floats(0, 1e7))
    ledger.cash_usd = start_usd
    ledger.holdings_usd, ledger.returns_pct_per_year = {HIGH: 5e6, LOW: 1e6}, {HIGH: 10.0, LOW: 1.0}
    for t in range(1, draw(st.integers(1, 8)) + 1):
        quarter = market.quarter(t)
        ledger.receive(quarter.income_usd)
        for is_sale, place, share in draw(
            st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.floats(0.01, 1)), max_size=5)
        ):
            ticker = quarter.listing[place].ticker
            try:
                if is_sale:
                    order = replayed(ticker, share * ledger.holdings_usd.get(ticker, 0))
                    ledger.sell(order, listing=quarter.listing)
                else:
                    order = replayed(ticker, share * ledger.cash_usd)
                    ledger.buy(order, listing=quarter.listing, active=quarter.active)
            except TradeRefused:
                pass
        ledger.grow()
        quarters.append(
            QuarterLedger(
                quarter=t,
                active=quarter.active,
                income_usd=quarter.income_usd,
                bought_usd=ledger.bought_usd,
                sold_usd=ledger.sold_usd,
                holdings_usd=dict(ledger.holdings_usd),
                returns_pct_per_year=dict(ledger.returns_pct_per_year),
                cash_usd=ledger.cash_usd,
            )
        )
    return start_usd, quarters


@given(traded_windows())
def test_funds_are_start_cash_incomes_and_proceeds_whatever_was_traded(window):
    start_usd, quarters = window
    last_active = max(place for place, books in enumerate(quarters) if books.active)
    for funds, counted in (("all", quarters), ("spendable", quarters[: last_active + 1])):
        expected_usd = start_usd + sum(books.income_usd + books.sold_usd.low + books.sold_usd.high for books in counted)
        bought_usd = sum(books.bought_usd.low for books in quarters)
        assert phi(quarters, "low", funds=funds).value == pytest.approx(bought_usd / expected_usd, abs=1e-12)


@given(traded_windows(), st.sampled_from(["low", "high"]), st.sampled_from(["all", "spendable"]))
def test_shares_lie_between_0_and_1_and_sum_to_1(window, system, funds):
    _, quarters = window
    shares = [measure(quarters, system, funds=funds).value for measure in (phi, phi_competing, uninvested_frac)]
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) == pytest.approx(1)


@given(traded_windows())
def test_the_two_goals_see_the_same_books_from_two_sides(window):
    _, quarters = window
    assert phi(quarters, "low") == phi_competing(quarters, "high")
    assert holdings_curve(quarters, "low") == pytest.approx([1 - x for x in holdings_curve(quarters, "high")])
