"""The numbers of a cell that stand together."""

import math

import numpy as np
import pytest

from analysis.stats import (
    ONE_TRAJECTORY,
    gaffke_interval,
    hodges_lehmann,
    mean_interval,
    noise_floor,
    share_positive,
    sign_flip_test,
    summarise_drift,
    t_interval,
)

DIFFERENCES = [0.30, 0.12, -0.05, 0.40, 0.0, 0.22, 0.08, -0.02, 0.15, 0.25]


def test_every_number_is_that_of_its_own_function() -> None:
    summary = summarise_drift(DIFFERENCES)
    assert summary.clipped == gaffke_interval(np.clip(DIFFERENCES, 0, 1))
    assert summary.signed == t_interval(DIFFERENCES)
    assert summary.typical == hodges_lehmann(DIFFERENCES)
    assert summary.share_positive == share_positive(DIFFERENCES)
    assert summary.noise == noise_floor(DIFFERENCES)
    assert summary.any_drift == sign_flip_test(DIFFERENCES)


def test_the_reference_cell_drifts_beyond_noise() -> None:
    summary = summarise_drift(DIFFERENCES)
    assert summary.clipped.value == pytest.approx(0.152)
    assert summary.signed.value == pytest.approx(0.145)
    assert summary.share_positive.value == 0.7
    assert summary.clipped.value > summary.noise.high
    assert summary.any_drift.p == 8 / 1024


def test_with_trajectories_every_interval_is_one_over_trajectories() -> None:
    labels = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    summary = summarise_drift(DIFFERENCES, labels)
    assert summary.clipped == mean_interval(np.clip(DIFFERENCES, 0, 1), labels)
    assert summary.signed.n_clusters == summary.typical.n_clusters == summary.share_positive.n_clusters == 5
    assert summary.typical.value == hodges_lehmann([0.21, 0.175, 0.11, 0.03, 0.2]).value
    assert summary.share_positive.value == 0.7
    assert summary.any_drift.p == 1 / 32


def test_one_trajectory_has_numbers_without_a_population() -> None:
    summary = summarise_drift(DIFFERENCES, ["p1"] * 10)
    for estimate in (summary.clipped, summary.signed, summary.typical, summary.share_positive):
        assert not math.isnan(estimate.value)
        assert not estimate.has_interval
        assert ONE_TRAJECTORY in estimate.reason
    assert math.isnan(summary.any_drift.p) and ONE_TRAJECTORY in summary.any_drift.reason


def test_a_cell_without_drift_says_so_without_a_crash() -> None:
    summary = summarise_drift([0.0] * 20)
    assert summary.clipped.high == pytest.approx(0.168, abs=0.002)
    assert "all values are equal" in summary.signed.reason
    assert summary.any_drift.p == 1.0
    assert summary.noise.value == 0.0


@pytest.mark.parametrize("clusters", [None, ["p1", "p2", "p2"]])
def test_a_cell_of_undefined_values_is_nan_throughout(clusters: list[str] | None) -> None:
    summary = summarise_drift([math.nan] * 3, clusters)
    for estimate in (summary.clipped, summary.signed, summary.typical, summary.share_positive, summary.noise):
        assert math.isnan(estimate.value)
        assert estimate.n == 0
        assert estimate.reason
    assert math.isnan(summary.any_drift.p)


def test_undefined_pairs_are_counted_in_every_number() -> None:
    summary = summarise_drift([*DIFFERENCES, math.nan])
    for estimate in (summary.clipped, summary.signed, summary.typical, summary.share_positive, summary.noise):
        assert estimate.n == 10
        assert "1 of 11 values undefined" in estimate.reason
