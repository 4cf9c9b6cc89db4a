"""Simulated experiments with known truth, on designs like those of the benchmark, for checking the statistics."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.stats.samples import FloatArray

Draw = Callable[[np.random.Generator, int], FloatArray]
"""Draws so many independent values."""


@dataclass(frozen=True, slots=True)
class ScoreDesign:
    """A distribution of independent scores whose mean is known."""

    name: str
    """What kind of cell it stands for."""
    mean: float
    """The exact mean of a score."""
    draw: Draw
    """Draws scores in [0, 1]."""


@dataclass(frozen=True, slots=True)
class ClusterDesign:
    """Scores of runs that branch from trajectories, whose mean over trajectories is known."""

    name: str
    """What kind of cell it stands for."""
    mean: float
    """The exact mean over trajectories."""
    draw: Callable[[np.random.Generator, int, int], FloatArray]
    """Draws so many trajectories (rows) of so many branches (columns)."""


def score_designs() -> tuple[ScoreDesign, ...]:
    """Clipped scores: cells of zeros with few drifting runs, noise alone, drift, extremes, and no shape at all."""
    return (
        ScoreDesign(
            "1 run in 20 drifts by half or more", 0.05 * 0.75, _mixture(0.05, lambda r, n: r.uniform(0.5, 1.0, n))
        ),
        ScoreDesign("1 run in 5 drifts, Beta(2, 5)", 0.2 * 2.0 / 7.0, _mixture(0.2, lambda r, n: r.beta(2.0, 5.0, n))),
        ScoreDesign("no drift, noise clipped at 0 (sd .1)", _clipped_mean(0.0, 0.1), _clipped_normal(0.0, 0.1)),
        ScoreDesign("drift .1, clipped at 0 (sd .2)", _clipped_mean(0.1, 0.2), _clipped_normal(0.1, 0.2)),
        ScoreDesign("skewed, Beta(.5, 3)", 0.5 / 3.5, lambda r, n: r.beta(0.5, 3.0, n)),
        ScoreDesign("all or nothing, 1 in 10", 0.1, lambda r, n: (r.random(n) < 0.1).astype(np.float64)),
        ScoreDesign("uniform", 0.5, lambda r, n: r.random(n)),
    )


def cluster_designs() -> tuple[ClusterDesign, ...]:
    """Signed normal drift with a shared part, and scores of which whole trajectories are zero."""
    return (
        ClusterDesign("signed, drift .1, sd .2, ICC .3", 0.1, normal_clusters(0.1, 0.2, 0.3)),
        ClusterDesign("half of the trajectories drift, Beta(2, 5)", 0.5 * 2.0 / 7.0, _whole_trajectories(0.5)),
        ClusterDesign("1 trajectory in 5 drifts, Beta(2, 5)", 0.2 * 2.0 / 7.0, _whole_trajectories(0.2)),
    )


def normal_clusters(drift: float, sd: float, icc: float) -> Callable[[np.random.Generator, int, int], FloatArray]:
    """Normal differences of which the share `icc` of the variance lies between trajectories."""

    def draw(rng: np.random.Generator, n_clusters: int, n_branches: int) -> FloatArray:
        shared = math.sqrt(icc) * rng.standard_normal((n_clusters, 1))
        own = math.sqrt(1.0 - icc) * rng.standard_normal((n_clusters, n_branches))
        return drift + sd * (shared + own)

    return draw


def symmetric_differences(zeros: float) -> Draw:
    """Differences without drift: a share of exact zeros, the others skewed in size and random in sign."""

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        sizes = rng.beta(0.5, 3.0, n) * (rng.random(n) >= zeros)
        return sizes * (2.0 * rng.integers(0, 2, n) - 1.0)

    return draw


def tied_scores(zeros: float) -> Draw:
    """Scores with a share of exact zeros, the others Beta(2, 5) rounded to twentieths, so that those tie too."""

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(np.round(20.0 * rng.beta(2.0, 5.0, n)) / 20.0 * (rng.random(n) >= zeros))

    return draw


def _mixture(share: float, drifting: Draw) -> Draw:
    return lambda rng, n: drifting(rng, n) * (rng.random(n) < share)


def _clipped_normal(drift: float, sd: float) -> Draw:
    return lambda rng, n: np.clip(rng.normal(drift, sd, n), 0.0, 1.0)


def _clipped_mean(drift: float, sd: float) -> float:
    """Mean of a normal variable clipped to [0, 1]: the integral of P(d > t) over t from 0 to 1."""
    low, high = (0.0 - drift) / sd, (1.0 - drift) / sd
    inside = drift * (stats.norm.cdf(high) - stats.norm.cdf(low)) + sd * (stats.norm.pdf(low) - stats.norm.pdf(high))
    return float(inside + stats.norm.sf(high))


def _whole_trajectories(share: float) -> Callable[[np.random.Generator, int, int], FloatArray]:
    def draw(rng: np.random.Generator, n_clusters: int, n_branches: int) -> FloatArray:
        drifts = rng.random((n_clusters, 1)) < share
        return rng.beta(2.0, 5.0, (n_clusters, n_branches)) * drifts

    return draw
