"""Clustered runs: the reference of statsmodels' and hand-made standard errors, and the one-trajectory caveat."""

import math

import numpy as np
import pytest
import statsmodels.api as sm

from analysis.stats import (
    ONE_TRAJECTORY,
    cluster_bootstrap_interval,
    cluster_icc,
    cluster_means,
    cluster_t_interval,
    cr1_interval,
    t_interval,
)

VALUES = [0.1, 0.2, 0.15, 0.5, 0.55, 0.6, 0.0, 0.05, 0.1, 0.3, 0.25, 0.35]
LABELS = ["p1"] * 3 + ["p2"] * 3 + ["p3"] * 3 + ["p4"] * 3


def test_cluster_t_interval_gives_the_reference() -> None:
    interval = cluster_t_interval(VALUES, LABELS)
    assert interval.value == pytest.approx(0.2625)
    assert (interval.low, interval.high) == pytest.approx((-0.08354, 0.60854), abs=5e-6)
    assert (interval.n, interval.n_clusters) == (12, 4)


def test_cluster_t_interval_is_the_t_interval_of_hand_made_means() -> None:
    by_hand = t_interval([0.15, 0.55, 0.05, 0.30])
    interval = cluster_t_interval(VALUES, LABELS)
    assert (interval.low, interval.high) == pytest.approx((by_hand.low, by_hand.high))


def test_cr1_gives_the_reference_standard_error_and_agrees_with_statsmodels() -> None:
    interval = cr1_interval(VALUES, LABELS)
    fit = sm.OLS(VALUES, np.ones(12)).fit(cov_type="cluster", cov_kwds={"groups": np.repeat(range(4), 3)}, use_t=True)
    assert fit.bse[0] == pytest.approx(0.108733, abs=5e-7)
    assert np.std(VALUES, ddof=1) / math.sqrt(12) == pytest.approx(0.058103, abs=5e-7)
    low, high = fit.conf_int()[0]
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert (interval.low, interval.high) == pytest.approx((-0.08354, 0.60854), abs=5e-6)


def test_cr1_of_unequal_clusters_agrees_with_statsmodels() -> None:
    values, labels = [*VALUES, 0.9, 0.8], [*LABELS, "p4", "p5"]
    fit = sm.OLS(values, np.ones(14)).fit(
        cov_type="cluster", cov_kwds={"groups": np.unique(labels, return_inverse=True)[1]}, use_t=True
    )
    interval = cr1_interval(values, labels)
    assert interval.value == pytest.approx(np.mean(values))
    assert (interval.low, interval.high) == pytest.approx(tuple(fit.conf_int()[0]))


def test_cluster_means_weigh_trajectories_and_cr1_weighs_runs() -> None:
    values, labels = [0.0, 0.0, 0.0, 1.0], ["a", "a", "a", "b"]
    assert list(cluster_means(values, labels)) == [0.0, 1.0]
    assert cluster_t_interval(values, labels).value == 0.5
    assert cr1_interval(values, labels).value == 0.25


def test_cluster_bootstrap_agrees_with_resampling_by_hand() -> None:
    values, labels = [*VALUES, 0.9], [*LABELS, "p4"]
    groups = [np.array(values)[np.array(labels) == label] for label in ("p1", "p2", "p3", "p4")]
    rng = np.random.default_rng(11)
    drawn = [np.concatenate([groups[i] for i in rng.integers(0, 4, 4)]).mean() for _ in range(20_000)]
    interval = cluster_bootstrap_interval(values, labels)
    assert interval.value == pytest.approx(np.mean(values))
    assert interval.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)
    assert interval.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.02)
    assert interval == cluster_bootstrap_interval(values, labels)


@pytest.mark.parametrize("make", [cluster_t_interval, cr1_interval, cluster_bootstrap_interval])
def test_one_trajectory_gives_the_mean_without_an_interval(make: object) -> None:
    assert callable(make)
    interval = make([*VALUES, math.nan], ["p1"] * 13)
    assert interval.value == pytest.approx(0.2625)
    assert not interval.has_interval
    assert interval.n_clusters == 1
    assert interval.reason == f"{ONE_TRAJECTORY}; 1 of 13 values undefined, left out"


@pytest.mark.parametrize("make", [cluster_t_interval, cr1_interval, cluster_bootstrap_interval])
def test_no_run_is_nan_with_a_reason(make: object) -> None:
    assert callable(make)
    interval = make([math.nan, math.nan], ["a", "b"])
    assert math.isnan(interval.value) and interval.n == 0 and "no run" in interval.reason


def test_a_cluster_without_a_defined_run_is_no_cluster() -> None:
    interval = cluster_t_interval([0.1, 0.2, math.nan], ["a", "b", "c"])
    assert interval.n_clusters == 2
    assert interval.has_interval


def test_clusters_whose_runs_are_all_equal_get_no_width_of_zero() -> None:
    for interval in (cluster_t_interval([0.0] * 4, list("aabb")), cr1_interval([0.0] * 4, list("aabb"))):
        assert not interval.has_interval
        assert "all values are equal" in interval.reason


def test_icc_agrees_with_the_one_way_analysis_of_variance() -> None:
    table = np.array(VALUES).reshape(4, 3)
    between = 3.0 * table.mean(axis=1).var(ddof=1)
    within = table.var(axis=1, ddof=1).mean()
    icc = cluster_icc(VALUES, LABELS)
    assert icc.value == pytest.approx((between - within) / (between + 2.0 * within))
    assert icc.low < icc.value < icc.high


def test_icc_recovers_a_planted_correlation_with_unequal_clusters() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(2, 7, 2_000)
    labels = np.repeat(np.arange(2_000), sizes)
    values = math.sqrt(0.3) * rng.standard_normal(2_000)[labels] + math.sqrt(0.7) * rng.standard_normal(labels.size)
    assert cluster_icc(values, labels).value == pytest.approx(0.3, abs=0.04)


def test_icc_without_anything_to_compare_is_nan_with_a_reason() -> None:
    for values, labels in (([0.1, 0.2], ["a", "a"]), ([0.1, 0.2], ["a", "b"]), ([0.1] * 4, list("aabb"))):
        icc = cluster_icc(values, labels)
        assert math.isnan(icc.value) and icc.reason
    assert cluster_icc([0.1, 0.1, 0.3, 0.3], list("aabb")).value == 1.0


def test_mismatched_and_missing_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="values holds 3 runs and clusters 2 labels"):
        cluster_t_interval([0.1, 0.2, 0.3], ["a", "b"])
    with pytest.raises(ValueError, match=r"clusters\[1\] is undefined"):
        cr1_interval([0.1, 0.2, 0.3], ["a", None, "b"])
