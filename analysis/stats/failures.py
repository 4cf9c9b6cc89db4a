"""What failed runs leave unknown: bounds of the mean over every launched run, and a test of the failures themselves."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.bounded import gaffke_interval
from analysis.stats.estimate import LEVEL, Alternative, Estimate, TestResult, check_alternative, join_reasons
from analysis.stats.samples import UNIT, clean_sample


@dataclass(frozen=True, slots=True)
class FailureBounds:
    """The least and the most that the mean of all launched runs can be, whatever the failed ones would have scored."""

    low: float
    """Mean if every failed run had scored 0."""
    high: float
    """Mean if every failed run had scored 1."""
    mean_completed: float
    """Mean of the runs that have a score: secondary, and biased if failing goes with drift."""
    n_completed: int
    """Runs that have a score."""
    n_launched: int
    """All runs launched, the denominator."""
    reason: str = ""
    """Why the bounds are NaN, or what was left out."""


def failure_bounds(completed: ArrayLike, n_launched: int) -> FailureBounds:
    """Bounds [m k/n, m k/n + (n - k)/n] of the mean of n launched runs, of which k have scores with mean m.

    Intention to treat: every launched run stays in the denominator. The bounds have no sampling error in them;
    `failure_interval` has both.

    Source: Horowitz and Manski, "Nonparametric analysis of randomized experiments with missing covariate and outcome
    data" (2000).

    Args:
        completed: scores in [0, 1] of the runs that have one; NaN counts as a run without.
        n_launched: all runs launched.

    Raises:
        ValueError: more scores than runs, or a score outside [0, 1].

    >>> bounds = failure_bounds([0.15] * 17, 20)
    >>> round(bounds.low, 4), round(bounds.high, 4)
    (0.1275, 0.2775)
    """
    scores, note = clean_sample(completed, name="completed", bounds=UNIT)
    k = scores.size
    if np.size(completed) > n_launched:
        raise ValueError(
            f"completed holds {np.size(completed)} scores; allowed: at most the {n_launched} runs launched"
        )
    if n_launched == 0:
        return FailureBounds(math.nan, math.nan, math.nan, 0, 0, "no run was launched")
    low = float(scores.sum()) / n_launched
    mean = float(scores.mean()) if k else math.nan
    reason = note if k else join_reasons("no run has a score", note)
    return FailureBounds(low, low + (n_launched - k) / n_launched, mean, k, n_launched, reason)


def failure_interval(
    completed: ArrayLike, n_launched: int, *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> Estimate:
    """Gaffke interval of the mean over all launched runs that holds whatever the failed runs would have scored.

    The lower end takes every failed run as 0, the upper end as 1; without failures it is `gaffke_interval`.

    Args:
        completed: scores in [0, 1] of the runs that have one; NaN counts as a run without.
        n_launched: all runs launched.
        level: two-sided.
        rng: as in `gaffke_interval`.

    Returns:
        The mean of the completed runs as value (NaN if none completed), all launched runs as n, and the outer interval.

    Raises:
        ValueError: as in `failure_bounds`, or an impossible level.
    """
    bounds = failure_bounds(completed, n_launched)
    scores, _ = clean_sample(completed, name="completed", bounds=UNIT)
    failed = np.ones(n_launched - scores.size)
    lower = gaffke_interval(np.concatenate([scores, 0.0 * failed]), level=level, rng=rng)
    upper = gaffke_interval(np.concatenate([scores, failed]), level=level, rng=rng) if failed.size else lower
    lost = f"{failed.size} of {n_launched} runs without a score taken as 0 and as 1" if failed.size else ""
    reason = join_reasons(lost, bounds.reason, lower.reason)
    return Estimate(
        bounds.mean_completed,
        lower.low,
        upper.high,
        n_launched,
        None,
        level,
        "Gaffke over bounds of failed runs",
        reason,
    )


def failure_test(a: tuple[int, int], b: tuple[int, int], *, alternative: Alternative = "two-sided") -> TestResult:
    """Boschloo's exact test of two shares of failed runs (`scipy.stats.boschloo_exact`); the statistic is a's less b's.

    Source: Boschloo, "Raised conditional level of significance for the 2x2-table when testing the equality of two
    probabilities" (1970): uniformly more powerful than Fisher's test.

    Args:
        a: failed and launched runs of the first cell.
        b: failed and launched runs of the second cell.
        alternative: `greater` asks whether a fails more often.

    Raises:
        ValueError: counts that are negative, more failures than runs, or an unknown alternative.
    """
    check_alternative(alternative)
    for name, (failed, launched) in (("a", a), ("b", b)):
        if not 0 <= failed <= launched:
            raise ValueError(f"{name} has {failed} failures of {launched} runs; allowed: 0 to all of them")
    n, method = a[1] + b[1], "Boschloo, exact"
    if not (a[1] and b[1]):
        return TestResult(math.nan, math.nan, method, alternative, n, False, "a cell has no run")
    difference = a[0] / a[1] - b[0] / b[1]
    if a[0] + b[0] in (0, n):
        reason = "no run failed" if a[0] == 0 else "every run failed"
        return TestResult(difference, 1.0, method, alternative, n, True, reason)
    table = [[a[0], b[0]], [a[1] - a[0], b[1] - b[0]]]
    p = float(stats.boschloo_exact(table, alternative=alternative).pvalue)
    return TestResult(difference, p, method, alternative, n, True)
