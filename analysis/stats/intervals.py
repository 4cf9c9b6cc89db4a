"""Intervals for the mean of independent runs, and for a share of them, beside those for bounded variables."""

import math
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.estimate import LEVEL, Estimate, check_level, join_reasons
from analysis.stats.samples import UNIT, FloatArray, clean_groups, clean_sample, generator, merge_ties, too_few

BOOTSTRAP_RESAMPLES = 9_999
"""Resamples of every percentile bootstrap of clusters."""

_BCA_RESAMPLES = 99_999  # with 9,999 the order of the reference's 20 scores moved an end by .0025
_BCA_AT_ONCE = 10_000  # bounds memory

PAPER_Z = 1.96
"""The paper's multiplier of the standard error, rounded as in its code."""

NO_SPREAD = "all values are equal, so their spread says nothing"
"""Reason of an interval that would have no width: honest only if runs could not differ."""


def t_interval(values: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Student's interval for a mean: the default for signed drift.

    Values that are all equal have no estimated spread; the interval is then NaN with a reason, not of width 0.

    Args:
        values: independent values; NaN is left out and counted.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.

    >>> interval = t_interval([0.30, 0.12, -0.05, 0.40, 0.00, 0.22, 0.08, -0.02, 0.15, 0.25])
    >>> round(interval.value, 3), round(interval.low, 4), round(interval.high, 4)
    (0.145, 0.0392, 0.2508)
    """
    check_level(level)
    sample, note = clean_sample(values)
    reason = too_few(sample.size, note) or _no_spread(sample, note)
    if reason:
        return _without_interval(sample, level, "t", reason)
    interval = stats.ttest_1samp(sample, 0.0).confidence_interval(level)
    return Estimate(
        float(sample.mean()), float(interval.low), float(interval.high), sample.size, None, level, "t", note
    )


def paper_wald_interval(values: ArrayLike, *, sd: Literal["population", "sample"] = "population") -> Estimate:
    """The paper's interval: mean +- 1.96 standard errors, clipped to [0, 1]. For comparison, never shown alone.

    It covers the mean in 40 to 90 % of simulated experiments at n = 10 (`results/reference/validation.csv`), and is
    [0, 0] on a cell of zeros.

    Args:
        values: scores in [0, 1]; NaN is left out and counted.
        sd: `population` divides the squares by n, as the paper does, `sample` by n - 1.

    Raises:
        ValueError: a value outside [0, 1] or another kind of sd.
    """
    if sd not in ("population", "sample"):
        raise ValueError(f"sd {sd!r} is unknown; allowed: 'population', 'sample'")
    sample, note = clean_sample(values, bounds=UNIT)
    method = f"paper_wald ({sd} sd)"
    reason = too_few(sample.size, note)
    if reason:
        return _without_interval(sample, LEVEL, method, reason)
    mean = float(sample.mean())
    half = PAPER_Z * float(sample.std(ddof=0 if sd == "population" else 1)) / math.sqrt(sample.size)
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), sample.size, None, LEVEL, method, note)


def bca_interval(values: ArrayLike, *, level: float = LEVEL, rng: np.random.Generator | None = None) -> Estimate:
    """Bias-corrected and accelerated bootstrap interval for a mean (Efron 1987; `scipy.stats.bootstrap`).

    Args:
        values: independent values; NaN is left out and counted.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(values)
    method = f"BCa bootstrap, {_BCA_RESAMPLES:,} resamples"
    reason = too_few(sample.size, note) or _no_spread(sample, note)
    if reason:
        return _without_interval(sample, level, method, reason)
    interval = stats.bootstrap(
        (np.sort(sample),),  # so that the order of runs changes nothing
        np.mean,
        n_resamples=_BCA_RESAMPLES,
        batch=_BCA_AT_ONCE,
        confidence_level=level,
        method="BCa",
        rng=generator(rng),
    ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    return Estimate(float(sample.mean()), low, high, sample.size, None, level, method, note)


def share_interval(n_with: int, n: int, *, level: float = LEVEL) -> Estimate:
    """Exact binomial interval of Clopper and Pearson for a share of independent runs.

    Args:
        n_with: runs that have the property.
        n: all runs; 0 gives NaN with a reason.
        level: two-sided.

    Raises:
        ValueError: counts that are negative, or more with the property than there are.
    """
    check_level(level)
    if not 0 <= n_with <= n:
        raise ValueError(f"n_with {n_with} of n {n} is no share; allowed: 0 to n runs")
    method = "Clopper-Pearson"
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, None, level, method, "no run, at least 1 needed")
    low, high = _clopper_pearson(n_with, n, level)
    return Estimate(n_with / n, low, high, n, None, level, method)


def share_positive(differences: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Share of independent runs whose signed difference is above 0, with its exact binomial interval.

    Args:
        differences: signed drift, one value a run; NaN is left out and counted.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    sample, note = clean_sample(differences, name="differences")
    share = share_interval(int((sample > 0.0).sum()), sample.size, level=level)
    reason = "; ".join(part for part in (share.reason, note) if part)
    return Estimate(share.value, share.low, share.high, share.n, None, level, share.method, reason)


@lru_cache(maxsize=4096)  # a table of cells asks for the same few counts again and again
def _clopper_pearson(n_with: int, n: int, level: float) -> tuple[float, float]:
    interval = stats.binomtest(n_with, n).proportion_ci(level, method="exact")
    return float(interval.low), float(interval.high)


def welch_interval(a: ArrayLike, b: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Interval of mean(a) - mean(b) of two groups of independent runs, without assuming one spread.

    Source: Welch, "The generalization of Student's problem when several different population variances are involved"
    (1947). `scipy.stats.ttest_ind` gives the same and warns where a group has hardly any spread.

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group; sizes may differ.
        level: two-sided.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    left, right, note = clean_groups(a, b)
    n, method = left.size + right.size, "Welch's t"
    value = float(left.mean() - right.mean()) if left.size and right.size else math.nan
    reason = too_few(min(left.size, right.size), note, what="run in a group")
    if not reason and np.ptp(merge_ties(left)) == 0.0 and np.ptp(merge_ties(right)) == 0.0:
        reason = join_reasons(NO_SPREAD, note)
    if reason:
        return Estimate(value, math.nan, math.nan, n, None, level, method, reason)
    shares = [float(group.var(ddof=1)) / group.size for group in (left, right)]
    spread = sum(shares)
    freedom = spread**2 / sum(
        share**2 / (size - 1) for share, size in zip(shares, (left.size, right.size), strict=True)
    )
    half = float(stats.t.ppf((1.0 + level) / 2.0, freedom)) * math.sqrt(spread)
    return Estimate(value, value - half, value + half, n, None, level, method, note)


def _no_spread(sample: FloatArray, note: str) -> str:
    if np.ptp(merge_ties(sample)) > 0.0:
        return ""
    return f"{NO_SPREAD}; {note}" if note else NO_SPREAD


def _without_interval(sample: FloatArray, level: float, method: str, reason: str) -> Estimate:
    mean = float(sample.mean()) if sample.size else math.nan
    return Estimate(mean, math.nan, math.nan, sample.size, None, level, method, reason)
