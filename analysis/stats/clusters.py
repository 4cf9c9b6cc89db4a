"""Statistics of runs that branch from few instrumental trajectories, where the trajectory is the independent unit."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.estimate import LEVEL, ONE_TRAJECTORY, Estimate, check_level, join_reasons
from analysis.stats.intervals import BOOTSTRAP_RESAMPLES, NO_SPREAD, t_interval
from analysis.stats.samples import FloatArray, IntArray, Labels, clean_clustered, generator


def cluster_means(values: ArrayLike, clusters: Labels) -> FloatArray:
    """Mean of the runs of each cluster, in the order in which the clusters first appear; undefined runs left out.

    Raises:
        ValueError: lengths that differ, or a defined value without a label.

    >>> [float(mean) for mean in cluster_means([0.0, 1.0, 0.5], ["a", "a", "b"])]
    [0.5, 0.5]
    """
    sample, codes, _ = clean_clustered(values, clusters)
    return _means(sample, codes)


def cluster_t_interval(values: ArrayLike, clusters: Labels, *, level: float = LEVEL) -> Estimate:
    """Student's interval on the cluster means, with K - 1 degrees of freedom for K clusters.

    The value is the mean of the cluster means: every trajectory counts the same, however many runs branch from it. With
    K = 1 there is a mean and no interval, and the reason says that it is conditional on one trajectory.

    Args:
        values: one value a run; NaN is left out and counted.
        clusters: one label a run.
        level: two-sided.

    Raises:
        ValueError: lengths that differ, a value without a label, or an impossible level.
    """
    sample, codes, note = clean_clustered(values, clusters)
    means = _means(sample, codes)
    return of_cluster_means(t_interval(means, level=level), sample.size, note=note)


def of_cluster_means(interval: Estimate, n: int, *, note: str) -> Estimate:
    """Relabels an interval that was made from cluster means as one of `n` runs in that many clusters."""
    n_clusters = interval.n
    if n_clusters == 1:
        note = join_reasons(ONE_TRAJECTORY, note)
    elif n_clusters == 0:
        note = join_reasons("no run", note)
    else:
        note = join_reasons(interval.reason, note)
    return replace(interval, n=n, n_clusters=n_clusters, method=f"{interval.method} of cluster means", reason=note)


def cr1_interval(values: ArrayLike, clusters: Labels, *, level: float = LEVEL) -> Estimate:
    """Interval of the mean over all runs from the cluster-robust standard error CR1, t with K - 1 degrees of freedom.

    SE^2 = K / (K - 1) * sum over clusters of (sum of their residuals)^2 / n^2. With clusters of one size it is the
    interval of the cluster means.

    Source: Cameron and Miller, "A practitioner's guide to cluster-robust inference" (2015), section 2.

    Args:
        values: one value a run; NaN is left out and counted.
        clusters: one label a run.
        level: two-sided.

    Raises:
        ValueError: lengths that differ, a value without a label, or an impossible level.
    """
    check_level(level)
    sample, codes, note = clean_clustered(values, clusters)
    n_clusters, method = _count(codes), "CR1"
    if n_clusters < 2:
        return _without_interval(sample, codes, level, method, note)
    mean = float(sample.mean())
    sums = np.bincount(codes, weights=sample - mean)
    se = math.sqrt(n_clusters / (n_clusters - 1) * float(sums @ sums)) / sample.size
    if np.ptp(sample) == 0.0:
        return Estimate(mean, math.nan, math.nan, sample.size, n_clusters, level, method, join_reasons(NO_SPREAD, note))
    half = float(stats.t.ppf((1.0 + level) / 2.0, n_clusters - 1)) * se
    return Estimate(mean, mean - half, mean + half, sample.size, n_clusters, level, method, note)


def cluster_bootstrap_interval(
    values: ArrayLike, clusters: Labels, *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> Estimate:
    """Percentile interval of the mean over all runs, resampling whole clusters.

    Too narrow with fewer than about 20 clusters (Cameron, Gelbach and Miller 2008): a sensitivity analysis.

    Args:
        values: one value a run; NaN is left out and counted.
        clusters: one label a run.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, a value without a label, or an impossible level.
    """
    check_level(level)
    sample, codes, note = clean_clustered(values, clusters)
    n_clusters = _count(codes)
    method = f"percentile cluster bootstrap, {BOOTSTRAP_RESAMPLES:,} resamples"
    if n_clusters < 2:
        return _without_interval(sample, codes, level, method, note)
    copies = cluster_copies(n_clusters, generator(rng))
    resampled = (copies @ np.bincount(codes, weights=sample)) / (copies @ np.bincount(codes))
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(resampled, (tail, 1.0 - tail)))
    return Estimate(float(sample.mean()), low, high, sample.size, n_clusters, level, method, note)


def cluster_copies(n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """How often each cluster was drawn: one row a resample, each summing to the number of clusters."""
    shares = np.full(n_clusters, 1.0 / n_clusters)
    return rng.multinomial(n_clusters, shares, size=BOOTSTRAP_RESAMPLES).astype(np.float64)


def cluster_icc(values: ArrayLike, clusters: Labels, *, level: float = LEVEL) -> Estimate:
    """Intraclass correlation of runs of one trajectory, ICC(1), with the exact interval of balanced normal data.

    (MSB - MSW) / (MSB + (m - 1) MSW) from the one-way analysis of variance; clusters of unequal size enter with the
    usual average size m = (n - sum n_k^2 / n) / (K - 1), which makes the interval approximate. It is what a design
    needs to split seeds between trajectories and branches; below 0 means that no difference between trajectories shows.

    Source: Shrout and Fleiss, "Intraclass correlations: uses in assessing rater reliability" (1979), case 1.

    Args:
        values: one value a run; NaN is left out and counted.
        clusters: one label a run.
        level: two-sided.

    Raises:
        ValueError: lengths that differ, a value without a label, or an impossible level.
    """
    check_level(level)
    sample, codes, note = clean_clustered(values, clusters)
    n, n_clusters, method = sample.size, _count(codes), "ICC(1), one-way analysis of variance"
    if n_clusters < 2 or n <= n_clusters or np.ptp(sample) == 0.0:
        reason = "needs two clusters, one of two runs, and values that differ"
        return Estimate(math.nan, math.nan, math.nan, n, n_clusters, level, method, join_reasons(reason, note))
    sizes = np.bincount(codes).astype(np.float64)
    means = _means(sample, codes)
    between = float(sizes @ (means - sample.mean()) ** 2) / (n_clusters - 1)
    within = float(((sample - means[codes]) ** 2).sum()) / (n - n_clusters)
    size = (n - float(sizes @ sizes) / n) / (n_clusters - 1)
    if within == 0.0:
        reason = "runs of a cluster never differ"
        return Estimate(1.0, math.nan, math.nan, n, n_clusters, level, method, join_reasons(reason, note))
    ratio, tail = between / within, (1.0 + level) / 2.0
    low = ratio / float(stats.f.ppf(tail, n_clusters - 1, n - n_clusters))
    high = ratio * float(stats.f.ppf(tail, n - n_clusters, n_clusters - 1))
    value, low, high = ((f - 1.0) / (f + size - 1.0) for f in (ratio, low, high))
    return Estimate(value, low, high, n, n_clusters, level, method, note)


def _means(sample: FloatArray, codes: IntArray) -> FloatArray:
    return np.bincount(codes, weights=sample) / np.bincount(codes)


def _count(codes: IntArray) -> int:
    return int(codes.max()) + 1 if codes.size else 0


def _without_interval(sample: FloatArray, codes: IntArray, level: float, method: str, note: str) -> Estimate:
    mean = float(sample.mean()) if sample.size else math.nan
    reason = join_reasons(ONE_TRAJECTORY if sample.size else "no run", note)
    return Estimate(mean, math.nan, math.nan, sample.size, _count(codes), level, method, reason)
