"""Secondary analyses, shown on request only: rank tests, interquartile mean, profiles, probability of improvement."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.estimate import (
    LEVEL,
    Alternative,
    Estimate,
    TestResult,
    check_alternative,
    check_level,
    join_reasons,
)
from analysis.stats.permutation import describe, split_p
from analysis.stats.samples import UNIT, FloatArray, clean_groups, clean_sample, generator, merge_ties

STRATIFIED_RESAMPLES = 4_999
"""Resamples of every stratified bootstrap."""


@dataclass(frozen=True, slots=True)
class MeanAndIqm:
    """The interquartile mean beside the mean, which it must not replace: of 15 zeros and 5 scores of .9 it is 0."""

    mean: Estimate
    """Mean over all runs of all cells."""
    iqm: Estimate
    """Mean of the middle half of all runs of all cells."""


def mann_whitney_test(
    a: ArrayLike, b: ArrayLike, *, alternative: Alternative = "two-sided", rng: np.random.Generator | None = None
) -> TestResult:
    """Mann-Whitney test, exact given the ties; the statistic is U of `a`, ties counting one half.

    All splits of the midranks are counted up to 40 runs in both groups together. `scipy.stats.mannwhitneyu` knows an
    exact distribution without ties alone.

    Source: Mann and Whitney (1947); conditional distribution with ties: Lehmann, "Nonparametrics" (1975), section 1.4.

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group.
        alternative: `greater` asks whether runs of `a` tend to be larger.
        rng: source of random splits beyond 40 runs; None takes the fixed default seed.

    Raises:
        ValueError: an infinite value or an unknown alternative.
    """
    check_alternative(alternative)
    left, right, note = clean_groups(a, b)
    n, test = left.size + right.size, "Mann-Whitney given ties"
    if not (left.size and right.size):
        reason = join_reasons("a group has no run", note)
        return TestResult(math.nan, math.nan, test, alternative, n, False, reason)
    ranks = stats.rankdata(merge_ties(np.concatenate([left, right])))
    p, exact = split_p(ranks[: left.size], ranks[left.size :], alternative=alternative, rng=generator(rng))
    u = float(ranks[: left.size].sum()) - left.size * (left.size + 1) / 2.0
    return TestResult(u, p, describe(test, exact), alternative, n, exact, note)


def brunner_munzel_test(a: ArrayLike, b: ArrayLike, *, alternative: Alternative = "two-sided") -> TestResult:
    """Brunner and Munzel's test (2000, `scipy.stats.brunnermunzel`): ranks that may have unequal spreads.

    The statistic is positive where `b` tends to be larger. It is undefined where the groups do not overlap.

    Args:
        a: one value a run; NaN is left out and counted.
        b: the other group.
        alternative: `greater` asks whether runs of `a` tend to be larger.

    Raises:
        ValueError: an infinite value or an unknown alternative.
    """
    check_alternative(alternative)
    left, right, note = clean_groups(a, b)
    left, right = merge_ties(left), merge_ties(right)
    n, method = left.size + right.size, "Brunner-Munzel, t approximation"
    reason = ""
    if min(left.size, right.size) < 2:
        reason = "needs two runs in each group"
    elif left.max() < right.min() or right.max() < left.min() or np.ptp(np.concatenate([left, right])) == 0.0:
        reason = "the groups do not overlap, or all runs are equal, so that the variance is 0"
    if reason:
        return TestResult(math.nan, math.nan, method, alternative, n, False, join_reasons(reason, note))
    result = stats.brunnermunzel(left, right, alternative=alternative)
    return TestResult(float(result.statistic), float(result.pvalue), method, alternative, n, False, note)


def mean_and_iqm(
    cells: Sequence[ArrayLike], *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> MeanAndIqm:
    """Mean and interquartile mean over the runs of several cells, with percentile intervals that resample within cells.

    Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (2021). The IQM is
    `scipy.stats.trim_mean` with a quarter cut at each end.

    Args:
        cells: the scores of each cell, sizes may differ; NaN is left out and counted.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    random = generator(rng)
    mean, iqm = stratified_bootstrap(cells, (_row_means, _row_iqms), level=level, rng=random)
    return MeanAndIqm(mean, iqm)


def performance_profile(
    cells: Sequence[ArrayLike],
    thresholds: Sequence[float],
    *,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> tuple[Estimate, ...]:
    """Share of runs that drift by more than each threshold, P(GD > tau), with pointwise intervals.

    Source: Agarwal et al. (2021), run-score distributions; resampled within cells.

    Args:
        cells: scores in [0, 1] of each cell; NaN is left out and counted.
        thresholds: the values of tau, in the order of the result.
        level: two-sided, of each point on its own.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: a score outside [0, 1] or an impossible level.
    """
    for index, cell in enumerate(cells):
        clean_sample(cell, name=f"cells[{index}]", bounds=UNIT)
    shares = [_share_above(threshold) for threshold in thresholds]
    return stratified_bootstrap(cells, shares, level=level, rng=generator(rng))


def probability_of_improvement(
    a: Sequence[ArrayLike],
    b: Sequence[ArrayLike],
    *,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """Probability that a run of `a` drifts less than a run of `b` in the same cell, averaged over cells; ties one half.

    Source: Agarwal et al. (2021), section 4.3, turned round, since less drift is better. Percentile bootstrap within
    cells and sides.

    Args:
        a: the scores of each cell; NaN is left out and counted.
        b: the same cells, in the same order, of the other model.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: numbers of cells that differ, an infinite value or an impossible level.
    """
    check_level(level)
    if len(a) != len(b):
        raise ValueError(f"a holds {len(a)} cells and b {len(b)}; allowed: the same cells on both sides")
    random = generator(rng)
    values, drawn, notes, n = [], np.zeros(STRATIFIED_RESAMPLES), [], 0
    for index, (own, other) in enumerate(zip(a, b, strict=True)):
        left, right, note = clean_groups(own, other)
        notes += [f"cell {index}: {note}"] if note else []
        if not (left.size and right.size):
            notes.append(f"cell {index} left out, no run on one side")
            continue
        wins = (1.0 - np.sign(np.subtract.outer(merge_ties(left), merge_ties(right)))) / 2.0
        values.append(float(wins.mean()))
        drawn += ((_copies(left.size, random) @ wins) * _copies(right.size, random)).sum(axis=1) / wins.size
        n += left.size + right.size
    method = f"percentile stratified bootstrap, {STRATIFIED_RESAMPLES:,} resamples"
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0, None, level, method, join_reasons("no cell", *notes))
    low, high = _percentiles(drawn / len(values), level)
    return Estimate(float(np.mean(values)), low, high, n, None, level, method, join_reasons(*notes))


def stratified_bootstrap(
    cells: Sequence[ArrayLike],
    statistics: Sequence[Callable[[FloatArray], FloatArray]],
    *,
    level: float = LEVEL,
    rng: np.random.Generator,
) -> tuple[Estimate, ...]:
    """Percentile intervals of statistics of all runs, resampling the runs within each cell.

    Cells with more runs weigh more. Runs that share trajectories are not independent: pass cluster means instead.

    Args:
        cells: the values of each cell; NaN is left out and counted.
        statistics: each maps a table, one row a resample and one column a run, to one number a row.
        level: two-sided.
        rng: source of the resamples, the same for all statistics.

    Raises:
        ValueError: an infinite value or an impossible level.
    """
    check_level(level)
    samples, notes = [], []
    for index, cell in enumerate(cells):
        sample, note = clean_sample(cell, name=f"cells[{index}]")
        samples += [sample] if sample.size else []
        notes += [f"cell {index}: {note}"] if note else []
    method = f"percentile stratified bootstrap, {STRATIFIED_RESAMPLES:,} resamples"
    if not samples:
        nothing = Estimate(math.nan, math.nan, math.nan, 0, None, level, method, join_reasons("no run", *notes))
        return tuple(nothing for _ in statistics)
    pooled = np.concatenate(samples)
    drawn = np.hstack([sample[rng.integers(0, sample.size, (STRATIFIED_RESAMPLES, sample.size))] for sample in samples])
    estimates = []
    for statistic in statistics:
        low, high = _percentiles(statistic(drawn), level)
        value = float(statistic(pooled[None, :])[0])
        estimates.append(Estimate(value, low, high, pooled.size, None, level, method, join_reasons(*notes)))
    return tuple(estimates)


def _copies(n: int, rng: np.random.Generator) -> FloatArray:
    return rng.multinomial(n, np.full(n, 1.0 / n), size=STRATIFIED_RESAMPLES).astype(np.float64)


def _percentiles(drawn: FloatArray, level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(drawn, (tail, 1.0 - tail))
    return float(low), float(high)


def _row_means(rows: FloatArray) -> FloatArray:
    return np.asarray(rows.mean(axis=1))


def _row_iqms(rows: FloatArray) -> FloatArray:
    return np.asarray(stats.trim_mean(rows, 0.25, axis=1))


def _share_above(threshold: float) -> Callable[[FloatArray], FloatArray]:
    return lambda rows: np.asarray((rows > threshold).mean(axis=1))
