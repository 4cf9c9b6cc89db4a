"""Failed runs: bounds over everything they might have scored, and Boschloo's test by its definition."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.stats import failure_bounds, failure_interval, failure_test, gaffke_interval


def test_bounds_give_the_reference_by_scoring_failures_zero_and_one() -> None:
    bounds = failure_bounds([0.15] * 17, 20)
    assert (bounds.low, bounds.high) == pytest.approx((0.1275, 0.2775))
    means = [np.mean([0.15] * 17 + list(failed)) for failed in product([0.0, 0.5, 1.0], repeat=3)]
    assert (bounds.low, bounds.high) == pytest.approx((min(means), max(means)))
    assert (bounds.n_completed, bounds.n_launched, bounds.mean_completed) == (17, 20, pytest.approx(0.15))


def test_without_failures_both_bounds_are_the_mean() -> None:
    bounds = failure_bounds([0.1, 0.3], 2)
    assert bounds.low == bounds.high == bounds.mean_completed == 0.2


def test_a_completed_run_without_a_score_counts_as_unknown() -> None:
    bounds = failure_bounds([0.5, math.nan], 4)
    assert (bounds.low, bounds.high) == (0.125, 0.875)
    assert bounds.reason == "1 of 2 values undefined, left out"


def test_only_failures_leave_everything_open() -> None:
    bounds = failure_bounds([], 5)
    assert (bounds.low, bounds.high) == (0.0, 1.0)
    assert math.isnan(bounds.mean_completed) and bounds.reason == "no run has a score"
    assert math.isnan(failure_bounds([], 0).low) and failure_bounds([], 0).reason == "no run was launched"


def test_interval_is_the_outer_one_of_both_extremes() -> None:
    scores = [0.1, 0.0, 0.3, 0.2, 0.0, 0.4, 0.0]
    interval = failure_interval(scores, 10)
    assert interval.low == gaffke_interval([*scores, 0, 0, 0]).low
    assert interval.high == gaffke_interval([*scores, 1, 1, 1]).high
    assert interval.value == pytest.approx(1 / 7)
    assert interval.n == 10
    assert interval.reason == "3 of 10 runs without a score taken as 0 and as 1"


def test_interval_without_failures_is_gaffkes() -> None:
    interval, plain = failure_interval([0.1, 0.3, 0.0], 3), gaffke_interval([0.1, 0.3, 0.0])
    assert (interval.low, interval.high, interval.reason) == (plain.low, plain.high, "")


def test_interval_of_nothing_is_nan_with_a_reason() -> None:
    assert "no run was launched" in failure_interval([], 0).reason
    assert not failure_interval([0.2], 1).has_interval


def boschloo_by_grid(a: tuple[int, int], b: tuple[int, int]) -> float:
    """Largest probability, over one common failure rate, of tables whose one-sided Fisher p is as small as ours."""
    tables = [(i, j) for i in range(a[1] + 1) for j in range(b[1] + 1)]
    fisher = {(i, j): stats.hypergeom.cdf(i, a[1] + b[1], i + j, a[1]) for i, j in tables}
    extreme = [table for table in tables if fisher[table] <= fisher[a[0], b[0]] * (1 + 1e-9)]
    rates = np.linspace(0.001, 0.999, 999)
    total = sum(stats.binom.pmf(i, a[1], rates) * stats.binom.pmf(j, b[1], rates) for i, j in extreme)
    return float(total.max())


def test_failure_test_agrees_with_boschloos_definition() -> None:
    less = failure_test((1, 10), (6, 12), alternative="less")
    assert less.p == pytest.approx(boschloo_by_grid((1, 10), (6, 12)), abs=2e-4)
    assert less.statistic == pytest.approx(-0.4)
    assert failure_test((1, 10), (6, 12)).p == pytest.approx(2.0 * less.p)
    assert less.p < stats.fisher_exact([[1, 6], [9, 6]], alternative="less").pvalue
    assert failure_test((6, 12), (1, 10), alternative="greater").p == pytest.approx(less.p, abs=1e-6)


def test_cells_that_never_or_always_fail_do_not_differ() -> None:
    assert (failure_test((0, 20), (0, 20)).p, failure_test((0, 20), (0, 20)).reason) == (1.0, "no run failed")
    assert failure_test((5, 5), (7, 7)).reason == "every run failed"
    assert math.isnan(failure_test((0, 0), (1, 7)).p)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="completed holds 3 scores; allowed: at most the 2 runs launched"):
        failure_bounds([0.1, 0.2, 0.3], 2)
    with pytest.raises(ValueError, match=r"completed holds .*1\.5"):
        failure_bounds([1.5], 2)
    with pytest.raises(ValueError, match="b has 3 failures of 2 runs"):
        failure_test((0, 2), (3, 2))
