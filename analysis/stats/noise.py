"""The clipped drift that noise alone makes: clipping before averaging turns any spread into an apparent drift."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.estimate import LEVEL, Estimate, check_level
from analysis.stats.samples import FloatArray, clean_sample, generator, too_few

_DRAWS = 20_000


def expected_noise(differences: ArrayLike) -> float:
    """The value of `noise_floor` without its range, which costs no draws; NaN for fewer than two differences.

    Args:
        differences: signed drift, one value a pair of runs, in [-1, 1]; NaN is left out.

    Raises:
        ValueError: a value outside [-1, 1].

    >>> round(expected_noise([0.1, -0.1, 0.2, -0.2]), 4)
    0.0866
    """
    sample, _ = clean_sample(differences, name="differences", bounds=(-1.0, 1.0))
    return float(_residuals(sample).mean()) / 2.0 if sample.size > 1 else math.nan


def noise_floor(differences: ArrayLike, *, level: float = LEVEL, rng: np.random.Generator | None = None) -> Estimate:
    """Mean clipped score that agents without drift would show, given the spread of these signed differences.

    Without drift a difference is as likely up as down. The residuals e = (d - mean d) sqrt(n / (n - 1)) stand for such
    differences, with random signs: the expected clipped mean is exactly mean(min(|e|, 1)) / 2, and the interval is the
    range in which it falls in `level` of 20,000 sign patterns. Taking out the mean first keeps real drift from
    counting as noise; the factor makes the floor unbiased for normal differences, where it is sd(d) / sqrt(2 pi) =
    .399 sd(d), or .564 s for the difference of two independent scores with sd s.

    Args:
        differences: signed drift, one value a pair of runs, in [-1, 1]; NaN is left out and counted.
        level: share of sign patterns whose clipped mean lies between `low` and `high`.
        rng: source of the sign patterns; None takes the fixed default seed.

    Raises:
        ValueError: a value outside [-1, 1] or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(differences, name="differences", bounds=(-1.0, 1.0))
    n, method = sample.size, f"random signs of residuals, {_DRAWS:,} patterns"
    reason = too_few(n, note, what="difference")
    if reason:
        return Estimate(math.nan, math.nan, math.nan, n, None, level, method, reason)
    sizes = _residuals(sample)
    random = generator(rng)
    drawn = np.concatenate([random.integers(0, 2, size=(_DRAWS // 20, n)) @ sizes / n for _ in range(20)])
    low, high = _range(drawn, level)
    return Estimate(float(sizes.mean()) / 2.0, low, high, n, None, level, method, note)


def noise_floor_normal(
    sd_phi: float, n: int, *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> Estimate:
    """The same before any evaluation run: from the spread of the baseline's scores and a number of seeds.

    With evaluation and baseline scores independent, normal and of spread s, d is normal with sd = s sqrt(2), and the
    expected score is the integral of P(d > t) over t in [0, 1]: sd (f(0) - f(1/sd)) + P(d > 1), f the normal density.
    For small s that is s / sqrt(pi) = .564 s, whatever n is; n decides how far one experiment may stray from it.

    Args:
        sd_phi: spread of the score between runs of one condition, as a fraction, from 0.
        n: pairs of runs, at least 1.
        level: share of simulated experiments whose clipped mean lies between `low` and `high`.
        rng: source of 20,000 simulated experiments; None takes the fixed default seed.

    Raises:
        ValueError: a negative or infinite spread, fewer than 1 pair, or an impossible level.

    >>> round(noise_floor_normal(0.1, 20).value, 4)
    0.0564
    """
    check_level(level)
    if not (math.isfinite(sd_phi) and sd_phi >= 0.0):
        raise ValueError(f"sd_phi {sd_phi!r} is no spread; allowed: a finite number from 0")
    if n < 1:
        raise ValueError(f"n {n} is no number of pairs; allowed: at least 1")
    method = f"normal differences, {_DRAWS:,} simulated experiments"
    if sd_phi == 0.0:
        return Estimate(0.0, 0.0, 0.0, n, None, level, method, "without spread there is no noise")
    sd = math.sqrt(2.0) * sd_phi
    value = sd * float(stats.norm.pdf(0.0) - stats.norm.pdf(1.0 / sd)) + float(stats.norm.sf(1.0 / sd))
    random = generator(rng)
    drawn = np.concatenate(
        [np.clip(random.normal(0.0, sd, (_DRAWS // 20, n)), 0.0, 1.0).mean(axis=1) for _ in range(20)]
    )
    low, high = _range(drawn, level)
    return Estimate(value, low, high, n, None, level, method, "")


def _residuals(sample: FloatArray) -> FloatArray:
    """Sizes of the residuals, made as large as the differences they stand for."""
    n = sample.size
    return np.asarray(np.minimum(1.0, np.abs(sample - sample.mean()) * math.sqrt(n / (n - 1))))


def _range(drawn: FloatArray, level: float) -> tuple[float, float]:
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(drawn, (tail, 1.0 - tail))
    return float(low), float(high)
