"""Tests of drift: in one cell by sign flips or over its trajectories, between two cells by re-splitting the runs."""

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.clusters import cluster_means
from analysis.stats.estimate import ONE_TRAJECTORY, Alternative, TestResult, check_alternative, join_reasons
from analysis.stats.permutation import describe, sign_flip_p, split_p
from analysis.stats.samples import (
    Labels,
    clean_clustered,
    clean_groups,
    clean_pairs,
    clean_sample,
    generator,
    merge_ties,
)


def sign_flip_test(
    differences: ArrayLike,
    clusters: Labels | None = None,
    *,
    alternative: Alternative = "greater",
    rng: np.random.Generator | None = None,
) -> TestResult:
    """Tests whether paired differences are symmetric about 0, by flipping their signs; the statistic is their mean.

    All patterns are counted up to 40 differences that are not 0, 99,999 random ones beyond. With clusters, the means of
    the clusters are flipped, since runs of one trajectory go together: K trajectories give no p below 2^-K, and one
    trajectory gives none.

    Source: Fisher, "The design of experiments" (1935), section 21. `scipy.stats.permutation_test` with
    `permutation_type="samples"` gives the same p one-sided, by a slower enumeration of at most about 20 differences.

    Args:
        differences: signed drift, one value a pair of runs with the same seed; NaN is left out and counted.
        clusters: one label a pair; None where pairs are independent.
        alternative: `greater` asks for drift away from the system goal.
        rng: source of random patterns; None takes the fixed default seed.

    Raises:
        ValueError: an infinite value, lengths that differ, a value without a label, or an unknown alternative.

    >>> sign_flip_test([0.30, 0.12, -0.05, 0.40, 0.00, 0.22, 0.08, -0.02, 0.15, 0.25]).p
    0.0078125
    """
    check_alternative(alternative)
    if clusters is None:
        sample, note = clean_sample(differences, name="differences")
        test = "sign-flip"
    else:
        runs, codes, note = clean_clustered(differences, clusters)
        sample = cluster_means(runs, codes)
        test = "sign-flip of cluster means"
        if sample.size == 1:
            reason = join_reasons(ONE_TRAJECTORY, note)
            return TestResult(float(sample[0]), math.nan, test, alternative, 1, False, reason)
    if sample.size == 0:
        return TestResult(math.nan, math.nan, test, alternative, 0, False, join_reasons("no difference", note))
    p, exact = sign_flip_p(sample, alternative=alternative, rng=generator(rng))
    reason = join_reasons(_least_p(int((sample != 0.0).sum()), alternative), note)
    return TestResult(float(sample.mean()), p, describe(test, exact), alternative, sample.size, exact, reason)


def paired_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Labels | None = None,
    alternative: Alternative = "two-sided",
    rng: np.random.Generator | None = None,
) -> TestResult:
    """Sign-flip test of a - b for two conditions that are paired by seed.

    Args:
        a: one value a seed; a pair with NaN on either side is left out and counted.
        b: the other condition, in the same order of seeds.
        clusters: one label a pair; None where pairs are independent.
        alternative: `greater` asks whether a is larger.
        rng: source of random patterns; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, or as in `sign_flip_test`.
    """
    clean_pairs(a, b)  # names both sides in its error
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return sign_flip_test(differences, clusters, alternative=alternative, rng=rng)


def two_sample_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    rng: np.random.Generator | None = None,
) -> TestResult:
    """Tests whether two groups of independent runs come from one distribution, by re-splitting them.

    The statistic is mean(a) - mean(b); two-sided p counts the splits whose absolute difference is at least the observed
    one. All splits are counted up to 40 runs in both groups together, 99,999 random ones beyond. For runs that branch
    from few trajectories pass `cluster_means` of each group.

    Source: Pitman, "Significance tests which may be applied to samples from any populations" (1937).

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group; sizes may differ.
        alternative: `greater` asks whether a is larger.
        rng: source of random splits; None takes the fixed default seed.

    Raises:
        ValueError: an infinite value or an unknown alternative.
    """
    check_alternative(alternative)
    left, right, note = clean_groups(a, b)
    n, test = left.size + right.size, "two-sample permutation of the mean"
    if not (left.size and right.size):
        empty = "no run in a" if left.size == 0 else "no run in b"
        return TestResult(math.nan, math.nan, test, alternative, n, False, join_reasons(empty, note))
    p, exact = split_p(left, right, alternative=alternative, rng=generator(rng))
    both_tails = alternative == "two-sided" and left.size == right.size  # the mirrored split is then as extreme
    least = (2.0 if both_tails else 1.0) / math.comb(n, left.size)
    if least > 0.05:
        note = join_reasons(f"no p below {least:.3g} is possible with {left.size} against {right.size} runs", note)
    statistic = float(left.mean() - right.mean())
    return TestResult(statistic, p, describe(test, exact), alternative, n, exact, note)


def cluster_t_test(differences: ArrayLike, clusters: Labels, *, alternative: Alternative = "greater") -> TestResult:
    """Tests whether the mean over trajectories is 0, by Student's t of the trajectory means, K - 1 degrees of freedom.

    The test that belongs to `cluster_t_interval`. Sign flips of K means give no p below 2^-K, so that with the usual
    five trajectories nothing ever comes out of a corrected family; Student's t pays for its smaller p with the
    assumption that the means of trajectories are roughly normal. On the designs of `analysis.stats.validate`, zeros and
    skew among them, it keeps its size. Means that are all equal, which say nothing of their spread, are left to the
    sign flips.

    Args:
        differences: signed drift, one value a pair of runs; NaN is left out and counted.
        clusters: one label a pair: its trajectory.
        alternative: `greater` asks for drift away from the system goal.

    Raises:
        ValueError: an infinite value, lengths that differ, a value without a label, or an unknown alternative.
    """
    check_alternative(alternative)
    runs, codes, note = clean_clustered(differences, clusters)
    means = merge_ties(cluster_means(runs, codes))
    k = means.size
    if k < 2 or np.ptp(means) == 0.0:
        test = sign_flip_test(differences, clusters, alternative=alternative)
        equal = _EQUAL_MEANS if k > 1 and means[0] != 0.0 else ""
        return replace(test, reason=join_reasons(equal, test.reason))
    t = float(means.mean()) / (float(means.std(ddof=1)) / math.sqrt(k))
    tails = {
        "greater": stats.t.sf(t, k - 1),
        "less": stats.t.cdf(t, k - 1),
        "two-sided": 2.0 * stats.t.sf(abs(t), k - 1),
    }
    return TestResult(t, float(tails[alternative]), "Student's t of cluster means", alternative, k, False, note)


_EQUAL_MEANS: Final = "all trajectories have one mean, so that Student's t knows no spread; sign flips instead"


def _least_p(n_moved: int, alternative: Alternative) -> str:
    if n_moved == 0:
        return "all differences are 0"
    least = 2.0**-n_moved * (2.0 if alternative == "two-sided" else 1.0)
    return f"no p below {least:.3g} is possible with {n_moved} differences that are not 0" if least > 0.05 else ""
