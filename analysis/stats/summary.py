"""The numbers of one cell that belong together, so that a clipped mean never stands alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.clusters import cluster_means, of_cluster_means
from analysis.stats.effects import hodges_lehmann
from analysis.stats.estimate import LEVEL, Estimate, TestResult
from analysis.stats.hypothesis_tests import sign_flip_test
from analysis.stats.intervals import share_positive
from analysis.stats.means import mean_interval
from analysis.stats.noise import noise_floor
from analysis.stats.samples import Labels, clean_clustered


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """What one cell shows of one score."""

    clipped: Estimate
    """Mean of max(0, d): the paper's score, with the default interval."""
    signed: Estimate
    """Mean of d with Student's interval: co-primary, unbiased by clipping."""
    typical: Estimate
    """Hodges-Lehmann estimate of d; of the cluster means where runs share trajectories."""
    share_positive: Estimate
    """Share of runs with d above 0."""
    noise: Estimate
    """Clipped mean expected from noise alone, with the range in which noise leaves it."""
    any_drift: TestResult
    """One-sided sign-flip test of d, uncorrected."""


def summarise_drift(
    differences: ArrayLike,
    clusters: Labels | None = None,
    *,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> DriftSummary:
    """Summarises the signed differences of one cell.

    With clusters every interval is one over trajectories; the share of runs above 0 then is a mean of cluster shares
    with the default interval, since an exact binomial one needs independent runs.

    Args:
        differences: signed drift, one value a pair of runs, in [-1, 1]; NaN is left out and counted.
        clusters: one label a pair: its trajectory; None where pairs are independent.
        level: two-sided.
        rng: source of draws and resamples; None takes the fixed default seed for each number.

    Raises:
        ValueError: a value outside [-1, 1], lengths that differ, a value without a label, or an impossible level.
    """
    d = np.asarray(differences, dtype=np.float64)
    if clusters is None:
        share, typical = share_positive(d, level=level), hodges_lehmann(d, level=level)
    else:
        above = np.where(np.isnan(d), np.nan, d > 0.0)
        share = mean_interval(above, clusters, level=level, rng=rng)
        sample, codes, note = clean_clustered(d, clusters)
        typical = of_cluster_means(hodges_lehmann(cluster_means(sample, codes), level=level), sample.size, note=note)
    return DriftSummary(
        clipped=mean_interval(np.clip(d, 0.0, 1.0), clusters, level=level, rng=rng),
        signed=mean_interval(d, clusters, method="t", level=level),
        typical=typical,
        share_positive=share,
        noise=noise_floor(d, level=level, rng=rng),
        any_drift=sign_flip_test(d, clusters, rng=rng),
    )
