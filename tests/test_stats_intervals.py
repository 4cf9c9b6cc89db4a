"""Intervals for independent runs: reference values, each by a formula or another route as well."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from analysis.stats import (
    bca_interval,
    paper_wald_interval,
    share_interval,
    share_positive,
    t_interval,
    welch_interval,
)

DIFFERENCES = [0.30, 0.12, -0.05, 0.40, 0.0, 0.22, 0.08, -0.02, 0.15, 0.25]
SCORES = [0, 0, 0, 0.05, 0, 0.12, 0.30, 0, 0.22, 0.40, 0, 0.08, 0, 0.15, 0.02, 0, 0.55, 0, 0.10, 0.18]


def test_t_interval_gives_the_reference() -> None:
    interval = t_interval(DIFFERENCES)
    assert interval.value == pytest.approx(0.145)
    assert (interval.low, interval.high) == pytest.approx((0.03920, 0.25080), abs=5e-6)


def test_t_interval_is_mean_and_standard_error_by_hand() -> None:
    half = 2.262157 * statistics.stdev(DIFFERENCES) / math.sqrt(10)  # .975 quantile of t with 9 degrees, from a table
    interval = t_interval(DIFFERENCES)
    assert interval.low == pytest.approx(0.145 - half, abs=1e-6)
    assert interval.high == pytest.approx(0.145 + half, abs=1e-6)


def test_clipping_raises_the_mean_of_the_reference_differences() -> None:
    assert statistics.fmean(max(0.0, d) for d in DIFFERENCES) == pytest.approx(0.152)


@pytest.mark.parametrize(("sd", "low", "high"), [("population", 0.0425, 0.1745), ("sample", 0.04075, 0.17625)])
def test_paper_wald_gives_the_reference_in_both_kinds(sd: str, low: float, high: float) -> None:
    spread = {"population": statistics.pstdev, "sample": statistics.stdev}[sd](SCORES)
    interval = paper_wald_interval(SCORES, sd=sd)  # type: ignore[arg-type]
    assert interval.value == pytest.approx(0.1085)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * spread / math.sqrt(20))


def test_paper_wald_is_clipped_and_empty_on_zeros() -> None:
    assert paper_wald_interval([0.0, 0.0, 0.0, 0.5]).low == 0.0
    assert paper_wald_interval([1.0, 1.0, 0.0, 1.0]).high == 1.0
    zeros = paper_wald_interval([0.0] * 20)
    assert (zeros.low, zeros.high) == (0.0, 0.0)


def bca_by_hand(values: list[float], seed: int) -> tuple[float, float]:
    """Efron (1987) in full: bias from the share of resamples below the mean, acceleration from the jackknife."""
    x = np.array(values)
    means = x[np.random.default_rng(seed).integers(0, x.size, (200_000, x.size))].mean(axis=1)
    bias = stats.norm.ppf(((means < x.mean()).mean() + (means <= x.mean()).mean()) / 2.0)
    jackknife = (x.sum() - x) / (x.size - 1)
    away = jackknife.mean() - jackknife
    acceleration = (away**3).sum() / (6.0 * (away**2).sum() ** 1.5)
    ends = [bias + z for z in stats.norm.ppf([0.025, 0.975])]
    shares = [stats.norm.cdf(bias + end / (1.0 - acceleration * end)) for end in ends]
    low, high = np.quantile(means, shares)
    return float(low), float(high)


def test_bca_gives_the_reference_and_agrees_with_efrons_formula() -> None:
    interval = bca_interval(SCORES)
    assert interval.low == pytest.approx(0.0565, abs=0.002)
    assert interval.high == pytest.approx(0.196, abs=0.002)
    assert (interval.low, interval.high) == pytest.approx(bca_by_hand(SCORES, 5), abs=0.002)


def test_bca_is_the_same_every_time_and_follows_the_generator() -> None:
    assert bca_interval(SCORES) == bca_interval(SCORES)
    one, other = (bca_interval(SCORES, rng=np.random.default_rng(seed)) for seed in (1, 2))
    assert one != other


def test_bca_does_not_depend_on_the_order_of_runs_and_hardly_on_the_seed() -> None:
    interval, shuffled = bca_interval(SCORES), bca_interval(SCORES[::-1])
    assert (interval.low, interval.high) == (shuffled.low, shuffled.high)
    for seed in range(5):
        again = bca_interval(SCORES, rng=np.random.default_rng(seed))
        assert (again.low, again.high) == pytest.approx((0.0565, 0.196), abs=0.002)


@pytest.mark.parametrize(("n_with", "n"), [(0, 10), (7, 10), (20, 20), (3, 50)])
def test_share_interval_inverts_binomial_tails(n_with: int, n: int) -> None:
    interval = share_interval(n_with, n)
    assert interval.value == n_with / n
    if n_with == 0:
        assert interval.low == 0.0
    else:
        assert stats.binom.sf(n_with - 1, n, interval.low) == pytest.approx(0.025)
    if n_with == n:
        assert interval.high == 1.0
    else:
        assert stats.binom.cdf(n_with, n, interval.high) == pytest.approx(0.025)


def test_share_positive_counts_zeros_as_no_drift() -> None:
    share = share_positive([*DIFFERENCES, math.nan])
    assert (share.value, share.n) == (0.7, 10)
    assert share.reason == "1 of 11 values undefined, left out"
    assert (share.low, share.high) == (share_interval(7, 10).low, share_interval(7, 10).high)


def test_values_without_spread_get_no_t_or_bca_interval() -> None:
    for interval in (t_interval([0.1, 0.1, 0.1]), bca_interval([0.0] * 20)):
        assert not interval.has_interval
        assert "all values are equal" in interval.reason
        assert not math.isnan(interval.value)


@pytest.mark.parametrize("make", [t_interval, bca_interval, paper_wald_interval])
def test_one_run_no_run_and_all_nan_are_nan_with_a_reason(make: object) -> None:
    assert callable(make)
    assert make([0.3]).value == 0.3 and "one run" in make([0.3]).reason
    assert math.isnan(make([]).value) and "no run" in make([]).reason
    undefined = make([math.nan] * 3)
    assert undefined.n == 0 and "3 of 3" in undefined.reason and not undefined.has_interval


def test_errors_name_value_and_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="n_with 5 of n 4"):
        share_interval(5, 4)
    with pytest.raises(ValueError, match="sd 'both' is unknown; allowed: 'population', 'sample'"):
        paper_wald_interval([0.1, 0.2], sd="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"values holds .*-0\.5"):
        paper_wald_interval([-0.5, 0.2])
    with pytest.raises(ValueError, match=r"values\[1\] is inf"):
        t_interval([0.1, math.inf])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        t_interval([[0.1, 0.2]])
    assert share_interval(0, 0).reason == "no run, at least 1 needed"


def test_welch_interval_is_the_textbook_formula() -> None:
    a, b = np.array([0.1, 0.2, 0.6]), np.array([0.0, 0.1, 0.0, 0.1])
    va, vb = a.var(ddof=1) / 3, b.var(ddof=1) / 4
    df = (va + vb) ** 2 / (va**2 / 2 + vb**2 / 3)
    half = stats.t.ppf(0.975, df) * math.sqrt(va + vb)
    found = welch_interval([*a, math.nan], b)
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.25 - half, 0.25 + half))
    assert (found.n, found.reason) == (7, "a: 1 of 4 values undefined, left out")
    library = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((library.low, library.high))


def test_welch_interval_takes_a_group_without_spread() -> None:
    found = welch_interval([0.3, 0.3, 0.3 + 1e-16], [0.1, 0.2, 0.3])
    half = 4.302653 * 0.1 / math.sqrt(3)  # .975 quantile of t with 2 degrees, from a table
    assert (found.low, found.high) == pytest.approx((0.1 - half, 0.1 + half), abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([0.1], [0.2, 0.3], "one run in a group, at least 2 needed"),
        ([], [0.2, 0.3], "no run in a group, at least 2 needed"),
        ([0.1, 0.1], [0.2, 0.2], "all values are equal, so their spread says nothing"),
    ],
)
def test_welch_interval_says_why_there_is_none(a: list[float], b: list[float], reason: str) -> None:
    found = welch_interval(a, b)
    assert (found.has_interval, found.reason) == (False, reason)
    assert math.isnan(found.value) == (not a)


def test_values_that_differ_by_rounding_alone_have_no_spread() -> None:
    interval = t_interval([0.1 + 0.2, 0.3, 0.3])
    assert (interval.has_interval, interval.reason) == (False, "all values are equal, so their spread says nothing")
