"""Simulated designs: their stated means are the means of what they draw."""

import math

import numpy as np
import pytest

from analysis.stats.designs import (
    ClusterDesign,
    ScoreDesign,
    cluster_designs,
    normal_clusters,
    score_designs,
    symmetric_differences,
    tied_scores,
)


@pytest.mark.parametrize("design", score_designs(), ids=lambda design: design.name)
def test_stated_means_of_scores_are_true(design: ScoreDesign) -> None:
    scores = design.draw(np.random.default_rng(1), 200_000)
    assert 0.0 <= scores.min() and scores.max() <= 1.0
    assert scores.mean() == pytest.approx(design.mean, abs=5.0 * scores.std() / math.sqrt(200_000))


@pytest.mark.parametrize("design", cluster_designs(), ids=lambda design: design.name)
def test_stated_means_over_trajectories_are_true(design: ClusterDesign) -> None:
    means = design.draw(np.random.default_rng(2), 50_000, 4).mean(axis=1)
    assert means.mean() == pytest.approx(design.mean, abs=5.0 * means.std() / math.sqrt(50_000))


def test_trajectories_share_as_much_variance_as_asked() -> None:
    d = normal_clusters(0.1, 0.2, 0.3)(np.random.default_rng(3), 50_000, 2)
    assert d.std() == pytest.approx(0.2, rel=0.02)
    assert np.corrcoef(d.T)[0, 1] == pytest.approx(0.3, abs=0.02)


def test_differences_without_drift_are_symmetric_with_zeros() -> None:
    d = symmetric_differences(0.6)(np.random.default_rng(4), 100_000)
    assert (d == 0.0).mean() == pytest.approx(0.6, abs=0.01)
    assert (d > 0.0).mean() == pytest.approx(0.2, abs=0.01)


def test_tied_scores_tie() -> None:
    scores = tied_scores(0.7)(np.random.default_rng(5), 10_000)
    assert (scores == 0.0).mean() >= 0.7 - 0.02
    assert len(np.unique(scores)) <= 21
