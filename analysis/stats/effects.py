"""Effect sizes with intervals: Hodges-Lehmann estimates, Cliff's delta, and the matched rank-biserial correlation."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from analysis.stats.estimate import LEVEL, Estimate, check_level, join_reasons
from analysis.stats.samples import FloatArray, clean_groups, clean_sample, merge_ties, too_few

_EXACT_SIGNED_MOST = 100  # differences: beyond, the normal approximation of the signed-rank statistic
_EXACT_RANK_SUM_MOST = 60  # runs of both groups: beyond, counts of splits outgrow 64-bit integers


def hodges_lehmann(differences: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Hodges-Lehmann estimate of a typical difference: the median of the means of all pairs, each with itself too.

    The interval inverts the exact signed-rank test up to 100 differences (its normal approximation beyond) and holds
    at least its level; ties and zeros make it wider than needed.

    Source: Hollander, Wolfe and Chicken, "Nonparametric statistical methods" (2014), sections 3.2 and 3.3.

    Args:
        differences: one value a pair; NaN is left out and counted.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(differences, name="differences")
    n, method = sample.size, "Hodges-Lehmann, inverted signed-rank test"
    if n == 0:
        return _undefined(n, level, method, too_few(0, note, what="pair", least=1))
    rows, columns = np.triu_indices(n)
    walsh = np.sort((sample[rows] + sample[columns]) / 2.0)
    tail = (1.0 - level) / 2.0
    if n <= _EXACT_SIGNED_MOST:
        skipped = _below_tail(_signed_rank_counts(n), tail)
    else:
        sd = math.sqrt(n * (n + 1) * (2 * n + 1) / 24.0)
        skipped = _normal_skip(walsh.size / 2.0, sd, tail)
    return _order_interval(_undefined(n, level, method, note), walsh, skipped=skipped)


def hodges_lehmann_shift(a: ArrayLike, b: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Hodges-Lehmann shift: the median of all differences of a run of `a` and a run of `b`.

    The interval inverts the exact rank-sum test up to 60 runs in both groups together (its normal approximation
    beyond); ties make it wider than needed.

    Source: Hollander, Wolfe and Chicken, "Nonparametric statistical methods" (2014), sections 4.2 and 4.3.

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group; sizes may differ.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    left, right, note = clean_groups(a, b)
    n, method = left.size + right.size, "Hodges-Lehmann shift, inverted rank-sum test"
    if not (left.size and right.size):
        return _undefined(n, level, method, join_reasons("a group has no run", note))
    shifts = np.sort(np.subtract.outer(left, right).ravel())
    tail = (1.0 - level) / 2.0
    if n <= _EXACT_RANK_SUM_MOST:
        skipped = _below_tail(_rank_sum_counts(left.size, right.size), tail)
    else:
        sd = math.sqrt(left.size * right.size * (n + 1) / 12.0)
        skipped = _normal_skip(shifts.size / 2.0, sd, tail)
    return _order_interval(_undefined(n, level, method, note), shifts, skipped=skipped)


def cliffs_delta(a: ArrayLike, b: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Cliff's delta, P(a > b) - P(a < b), with Cliff's asymmetric interval from the unbiased variance.

    Two departures, after simulations of ours in which the published interval held .90 to .95 of the time with 8 to 20
    runs a group: quantiles are Student's with n - 2 degrees of freedom, and the variance is at least that of one
    comparison, share of untied pairs - delta^2, over 2 min(n_a, n_b). Where one group lies wholly above the other the
    near end comes from the largest variance that a delta can have, (1 - delta^2) / m with m = min(n_a, n_b), as Feng
    and Cliff advise: (m - t^2) / (m + t^2).

    Sources: Cliff, "Ordinal methods for behavioral data analysis" (1996), chapter 5; Feng and Cliff, "Monte Carlo
    evaluation of ordinal d with improved confidence interval" (2004).

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group; sizes may differ.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    left, right, note = clean_groups(a, b)
    n, method = left.size + right.size, "Cliff's delta, asymmetric interval"
    if not (left.size and right.size):
        return _undefined(n, level, method, join_reasons("a group has no run", note))
    wins = np.sign(np.subtract.outer(merge_ties(left), merge_ties(right)))
    delta = float(wins.mean())
    reason = too_few(min(wins.shape), note, what="run in a group")
    if reason or not wins.any():
        reason = reason or join_reasons("every run of one group ties with every run of the other", note)
        return Estimate(delta, math.nan, math.nan, n, None, level, method, reason)
    t = float(stats.t.ppf((1.0 + level) / 2.0, n - 2))
    low, high = _asymmetric_interval(delta, _dominance_variance(wins), m=min(wins.shape), t=t)
    return Estimate(delta, low, high, n, None, level, method, note)


def rank_biserial(differences: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Matched rank-biserial correlation: (W+ - W-) / (W+ + W-), zeros dropped, midranks for ties of size.

    It equals the mean sign of the sums d_i + d_j over all pairs i <= j, hence the same asymmetric interval as Cliff's
    delta has, from the jackknife variance of that mean, at least that of m independent signs, (1 - r^2) / m, which
    the jackknife undershoots near -1 and 1; m counts the differences that are not 0, with m - 1 degrees of freedom. If
    all of them have one sign, the near end is (m - t^2) / (m + t^2), as there.

    Source: Kerby, "The simple difference formula" (2014); jackknife of U-statistics: Arvesen (1969).

    Args:
        differences: one value a pair; NaN is left out and counted.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(differences, name="differences")
    moved = merge_ties(sample)
    moved = moved[moved != 0.0]
    m, method = moved.size, "rank-biserial, asymmetric jackknife interval"
    if m == 0:
        return _undefined(sample.size, level, method, join_reasons("no difference other than 0", note))
    signs = np.sign(merge_ties(np.add.outer(moved, moved)))
    totals, own = signs.sum(axis=1), np.diag(signs)
    whole = float((signs.sum() + own.sum()) / 2.0)
    value = whole / (m * (m + 1) / 2.0)
    reason = too_few(m, note, what="difference other than 0")
    if reason:
        return Estimate(value, math.nan, math.nan, sample.size, None, level, method, reason)
    without = (whole - totals) / (m * (m - 1) / 2.0)
    variance = (m - 1) / m * float(((without - without.mean()) ** 2).sum())
    variance = max(variance, (1.0 - value * value) / m)
    t = float(stats.t.ppf((1.0 + level) / 2.0, m - 1))
    low, high = _asymmetric_interval(value, variance, m=m, t=t)
    return Estimate(value, low, high, sample.size, None, level, method, note)


def _undefined(n: int, level: float, method: str, reason: str) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, n, None, level, method, reason)


def _order_interval(blank: Estimate, ordered: FloatArray, *, skipped: int) -> Estimate:
    """Fills in median and interval from the order statistics, `skipped` - 1 of which lie outside at either end."""
    value = float(np.median(ordered))
    if skipped < 1:
        reason = f"{blank.n} values are too few for an interval of level {blank.level:g}"
        return replace(blank, value=value, reason=join_reasons(reason, blank.reason))
    return replace(blank, value=value, low=float(ordered[skipped - 1]), high=float(ordered[ordered.size - skipped]))


def _below_tail(counts: NDArray[np.int64] | FloatArray, tail: float) -> int:
    """How many of the lowest values of a statistic have together at most the probability `tail`."""
    shares = np.cumsum(counts / counts.sum())
    return int(np.searchsorted(shares, tail * (1.0 + 1e-12), side="right"))


def _normal_skip(centre: float, sd: float, tail: float) -> int:
    return max(0, math.floor(centre + float(stats.norm.ppf(tail)) * sd))


@lru_cache(maxsize=128)
def _signed_rank_counts(n: int) -> FloatArray:
    """Probability of each value of W+ (0 .. n(n + 1)/2) without ties: subset sums of the ranks 1 .. n."""
    shares = np.ones(1)
    for rank in range(1, n + 1):
        grown = np.zeros(shares.size + rank)
        grown[: shares.size] = shares
        grown[rank:] += shares
        shares = grown / 2.0
    return shares


@lru_cache(maxsize=128)
def _rank_sum_counts(n_a: int, n_b: int) -> NDArray[np.int64]:
    """Number of orders with each value of U (0 .. n_a n_b) without ties: a Gaussian binomial coefficient.

    The polynomial prod over i = 1..n_a of (1 - q^(n_b + i)) / (1 - q^i), multiplied out factor by factor.
    """
    counts = np.zeros(n_a * n_b + 1, dtype=np.int64)
    counts[0] = 1
    for i in range(1, n_a + 1):
        raised = np.zeros_like(counts)
        raised[n_b + i :] = counts[: max(0, counts.size - n_b - i)]
        counts = counts - raised
        for start in range(i):
            counts[start::i] = np.cumsum(counts[start::i])
    return counts


def _dominance_variance(wins: FloatArray) -> float:
    """Unbiased variance of delta, at least that of one comparison over twice the runs of the smaller group."""
    n_a, n_b = (int(size) for size in wins.shape)
    delta = float(wins.mean())
    rows = float(((wins.mean(axis=1) - delta) ** 2).sum())
    columns = float(((wins.mean(axis=0) - delta) ** 2).sum())
    cells = float(((wins - delta) ** 2).sum())
    unbiased = (n_b * n_b * rows + n_a * n_a * columns - cells) / (n_a * n_b * (n_a - 1) * (n_b - 1))
    return max(unbiased, (float((wins * wins).mean()) - delta * delta) / (2.0 * min(n_a, n_b)))


def _asymmetric_interval(value: float, variance: float, *, m: int, t: float) -> tuple[float, float]:
    """Ends that respect -1 and 1, from the quantile `t`; `m` values or pairs stand behind a statistic of -1 or 1."""
    t2 = t * t
    if abs(value) >= 1.0 - 1e-12:
        near = (m - t2) / (m + t2)
        return (near, 1.0) if value > 0.0 else (-1.0, -near)
    room = 1.0 - value**2
    half = math.sqrt(t2 * variance) * math.sqrt(room**2 + t2 * variance)
    centre, scale = value - value**3, room + t2 * variance
    return max(-1.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
