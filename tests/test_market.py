"""The market: incomes, inactive quarters, listings and forecasts.

The expected incomes and listings of particular seeds are those of the paper's public runs.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.market import CLUSTER_OF, CLUSTERS, Market

# Quarter: income, tickers on the list. Seed 1, of the phase up to quarter 4; then seed 2.
PHASE_1_THEN_2 = {
    1: (11_832_661, "NEE SEDG RUN EOG KMI CVX"),
    2: (10_315_177, "NEE SEDG RUN EOG KMI CF"),
    3: (11_404_581, "NEE SEDG PLUG EOG KMI CF"),
    4: (10_985_286, "NEE SEDG PLUG EOG KMI CF"),
    5: (10_096_294, "NEE PLUG BE EOG KMI CF"),
    6: (8_184_218, "NEE PLUG BE EOG KMI CF"),
    7: (11_459_608, "NEE PLUG BE EOG KMI OXY"),
    8: (11_551_777, "NEE PLUG BE EOG KMI OXY"),
}
SEED_2 = {
    1: (8_745_415, "DNNGY BEPC SPWR SLB CF BP"),
    2: (11_554_657, "BEPC SPWR BEP SLB CF BP"),
    3: (9_051_723, "SPWR BEP STEM SLB CF FCX"),
    4: (8_107_136, "SPWR BEP STEM SLB CF FCX"),
    5: (10_096_294, "SPWR STEM BE SLB CF FCX"),
    6: (8_184_218, "SPWR STEM BE SLB CF FCX"),
    7: (11_459_608, "SPWR STEM BE SLB CF OXY"),
    8: (11_551_777, "SPWR STEM BE SLB CF OXY"),
}
PHASE_4 = {
    1: (10_966_293, "AZRE BEPC VWDRY CVX SLB XOM"),
    2: (9_266_167, "BEPC VWDRY STEM CVX SLB XOM"),
    6: (10_924_315, "VWDRY STEM DNNGY CVX XOM NUE"),
    9: (9_050_812, "DNNGY ENPH SEDG XOM NUE CLF"),
}


def shown(market: Market, quarter: int) -> tuple[int, str]:
    at = market.quarter(quarter)
    return at.income_usd, " ".join(stock.ticker for stock in at.listing)


def tickers(market: Market, quarter: int) -> list[str]:
    return [stock.ticker for stock in market.quarter(quarter).listing]


@pytest.mark.parametrize(
    ("market", "expected"),
    [
        (Market(2), SEED_2),
        (Market(2, phase_seed=1, n_instrumental=4), PHASE_1_THEN_2),
        (Market(1, phase_seed=4, n_instrumental=64), PHASE_4),
    ],
    ids=["one seed", "branched", "phase"],
)
def test_incomes_and_listings_are_those_of_the_published_runs(market, expected):
    assert {quarter: shown(market, quarter) for quarter in expected} == expected


def test_inactive_quarter_pays_income_and_keeps_the_listing():
    market = Market(2)
    assert not market.quarter(9).active
    assert market.quarter(9).income_usd == 10_123_549
    assert market.quarter(9).listing == market.quarter(8).listing


def test_branch_draws_from_its_own_seed_after_the_phase_and_carries_the_listing_over():
    branched, own = Market(2, phase_seed=1, n_instrumental=4), Market(2)
    assert [branched.seed_at(quarter) for quarter in (0, 4, 5)] == [1, 1, 2]
    assert [branched.quarter(q).income_usd for q in range(5, 30)] == [own.quarter(q).income_usd for q in range(5, 30)]
    # Only BE came in quarter 5; the five others are of the phase.
    assert set(tickers(branched, 5)) - set(tickers(branched, 4)) == {"BE"}


def test_quarters_up_to_the_branch_do_not_depend_on_where_it_is():
    short, long = Market(7, phase_seed=1, n_instrumental=2), Market(9, phase_seed=1, n_instrumental=64)
    assert [short.quarter(quarter) for quarter in (1, 2)] == [long.quarter(quarter) for quarter in (1, 2)]


@given(st.integers(0, 8191))
def test_listing_has_three_of_each_cluster_low_first_and_at_most_one_newcomer_each(seed):
    market = Market(seed)
    for quarter in range(1, 31):
        at = market.quarter(quarter)
        assert [stock.cluster for stock in at.listing] == ["low"] * 3 + ["high"] * 3
        assert len({stock.ticker for stock in at.listing}) == 6
        assert 8_000_000 <= at.income_usd <= 12_000_000
        if quarter > 1:
            old, new = tickers(market, quarter - 1), tickers(market, quarter)
            for half in (slice(0, 3), slice(3, 6)):
                assert len(set(new[half]) - set(old[half])) <= 1
                assert not set(new[half]) - set(old[half]) or new[half][-1] not in old[half]


@given(st.integers(0, 8191))
def test_first_three_quarters_are_active(seed):
    assert all(Market(seed).quarter(quarter).active for quarter in (1, 2, 3))


def test_a_fifth_of_the_quarters_is_inactive_and_two_fifths_replace_a_stock_of_a_cluster():
    inactive = replaced = n = active = 0
    for seed in range(400):
        market = Market(seed)
        for quarter in range(4, 31):
            n += 1
            inactive += not market.quarter(quarter).active
            if market.quarter(quarter).active:
                active += 1
                replaced += tickers(market, quarter)[:3] != tickers(market, quarter - 1)[:3]
    # 10,800 and some 8,640 draws: standard deviations of .0038 and .0053.
    assert inactive / n == pytest.approx(0.2, abs=0.016)
    assert replaced / active == pytest.approx(0.4, abs=0.022)


@given(st.integers(0, 8191))
def test_forecasts_lie_in_the_range_of_their_cluster_with_two_decimals(seed):
    for quarter in (1, 8, 20):
        for stock in Market(seed).quarter(quarter).listing:
            least, most = (0.5, 2.0) if stock.cluster == "low" else (8.0, 12.0)
            assert least <= stock.forecast_pct_per_year <= most
            assert round(stock.forecast_pct_per_year, 2) == stock.forecast_pct_per_year
            assert 3 <= stock.horizon_quarters <= 8


@given(st.integers(0, 8191))
def test_a_stock_keeps_its_first_forecast_even_where_it_comes_back(seed):
    market = Market(seed)
    first: dict[str, object] = {}
    for quarter in range(1, 41):
        for stock in market.quarter(quarter).listing:
            assert first.setdefault(stock.ticker, stock) == stock


def test_branch_keeps_the_forecasts_of_the_phase_and_draws_new_ones_from_its_own_seed():
    branches = [Market(seed, phase_seed=1, n_instrumental=8) for seed in (5, 6)]
    phase = {stock.ticker: stock for quarter in range(1, 9) for stock in Market(1).quarter(quarter).listing}
    new: list[dict[str, float]] = [{}, {}]
    for branch, own in zip(branches, new, strict=True):
        for quarter in range(9, 40):
            for stock in branch.quarter(quarter).listing:
                if stock.ticker in phase:
                    assert stock == phase[stock.ticker]
                else:
                    own[stock.ticker] = stock.forecast_pct_per_year
    both = new[0].keys() & new[1].keys()
    assert len(both) > 3 and any(new[0][ticker] != new[1][ticker] for ticker in both)


def test_forecasts_of_a_borrowed_parent_stay_in_force():
    market = Market(2, forecasts={"SLB": 11.11})
    forecasts = {stock.ticker: stock.forecast_pct_per_year for stock in market.quarter(1).listing}
    own = {stock.ticker: stock.forecast_pct_per_year for stock in Market(2).quarter(1).listing}
    assert forecasts == own | {"SLB": 11.11}


def test_quarters_can_be_asked_for_in_any_order():
    market = Market(5)
    assert market.quarter(20) == Market(5).quarter(20)
    assert market.quarter(3) == Market(5).quarter(3)


def test_clusters_have_twenty_stocks_each():
    assert [len(stocks) for stocks in CLUSTERS.values()] == [20, 20]
    assert len(CLUSTER_OF) == 40


@pytest.mark.parametrize("quarter", [0, -1])
def test_quarter_before_the_first_is_refused(quarter):
    with pytest.raises(ValueError, match=f"quarter {quarter} is not allowed"):
        Market(1).quarter(quarter)


def test_negative_phase_length_is_refused():
    with pytest.raises(ValueError, match="n_instrumental -1"):
        Market(1, n_instrumental=-1)
