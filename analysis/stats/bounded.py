"""Intervals for the mean of a bounded variable that assume nothing of its distribution's shape."""

import math
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.estimate import LEVEL, Estimate, check_level
from analysis.stats.samples import DEFAULT_SEED, UNIT, FloatArray, clean_sample, too_few

GAFFKE_DRAWS = 200_000
"""Dirichlet draws of a Gaffke interval; its ends then move by about .0005 from seed to seed at n = 20."""

_KEPT_BYTES_MOST = 2**28  # 256 MB of draws stay between calls: cells of 10, 20 and 50 runs, and some sizes between
_BLOCK_ELEMENTS = 2**21  # 16 MB at a time, however many runs a cell has


def gaffke_interval(
    values: ArrayLike,
    *,
    level: float = LEVEL,
    bounds: tuple[float, float] = UNIT,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """Gaffke's interval for the mean of a bounded variable: the default for clipped drift scores.

    Let w be uniform on the simplex of n + 1 parts (Dirichlet with all parameters 1) and x the n values on [0, 1]. The
    upper end is the upper quantile of w[:n].x + w[n] (the left-over weight lies at 1), the lower end the lower quantile
    of w[:n].x (it lies at 0). On values that are all 0, or all 1, the interval is that of Clopper and Pearson.

    Source: Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded random variable", arXiv
    1905.06208, section 6, after Gaffke (2005). That it holds its level for every distribution and n is conjectured and
    not proven; it held it in every simulation of ours (see `analysis.stats.validate`). The proven alternative is
    `anderson_interval`.

    Args:
        values: independent values within `bounds`, in any order; NaN is left out and counted.
        level: two-sided; each tail gets half of the rest.
        bounds: lowest and highest value the variable can take: (0, 1) for scores, (-1, 1) for signed differences.
        rng: source of the draws. None takes the same `GAFFKE_DRAWS` draws for every cell of n runs, kept between calls.

    Raises:
        ValueError: a value outside `bounds`, or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(values, bounds=bounds)
    method = "Gaffke"
    reason = too_few(sample.size, note)
    if reason:
        return Estimate(_mean(sample), math.nan, math.nan, sample.size, None, level, method, reason)
    low, width = bounds[0], bounds[1] - bounds[0]
    below, above = _gaffke_ends(np.sort((sample - low) / width), level, rng)
    return Estimate(_mean(sample), low + width * below, low + width * above, sample.size, None, level, method, note)


def anderson_interval(values: ArrayLike, *, level: float = LEVEL, bounds: tuple[float, float] = UNIT) -> Estimate:
    """Anderson's interval for the mean of a bounded variable: proven, and wider than Gaffke's.

    The means of the lowest and highest distribution function within the one-sided Dvoretzky-Kiefer-Wolfowitz bands of
    the empirical one, each of error (1 - level) / 2.

    Sources: Anderson, "Confidence limits for the expected value of an arbitrary bounded random variable with a
    continuous distribution function" (1969); constant of the band: Massart (1990).

    Args:
        values: independent values within `bounds`; NaN is left out and counted.
        level: two-sided.
        bounds: lowest and highest value the variable can take.

    Raises:
        ValueError: a value outside `bounds`, or an impossible level.
    """
    check_level(level)
    sample, note = clean_sample(values, bounds=bounds)
    method = "Anderson (DKW)"
    reason = too_few(sample.size, note)
    if reason:
        return Estimate(_mean(sample), math.nan, math.nan, sample.size, None, level, method, reason)
    low, width = bounds[0], bounds[1] - bounds[0]
    unit = (sample - low) / width
    above = _anderson_upper(unit, (1.0 - level) / 2.0)
    below = 1.0 - _anderson_upper(1.0 - unit, (1.0 - level) / 2.0)
    return Estimate(_mean(sample), low + width * below, low + width * above, sample.size, None, level, method, note)


def _mean(sample: FloatArray) -> float:
    return float(sample.mean()) if sample.size else math.nan


def _anderson_upper(unit: FloatArray, error: float) -> float:
    n = unit.size
    band = math.sqrt(math.log(1.0 / error) / (2.0 * n))
    gaps = np.diff(np.append(np.sort(unit), 1.0))
    return float(1.0 - gaps @ np.maximum(0.0, np.arange(1, n + 1) / n - band))


def _gaffke_ends(ordered: FloatArray, level: float, rng: np.random.Generator | None) -> tuple[float, float]:
    # Sorted, so that the order of the runs in a table moves nothing, and zeros, which weigh nothing, come first.
    n, n_zeros = ordered.size, int(np.searchsorted(ordered, 0.0, side="right"))
    lower, spare = np.empty(GAFFKE_DRAWS), np.empty(GAFFKE_DRAWS)
    start = 0
    for weights in _weight_blocks(n, rng):
        stop = start + weights.shape[1]
        lower[start:stop] = ordered[n_zeros:] @ weights[n_zeros:n]
        spare[start:stop] = weights[n]
        start = stop
    # The order statistics that lie outside the quantiles: never narrower than an interpolation.
    outside = math.floor((1.0 - level) / 2.0 * GAFFKE_DRAWS + 1e-9)
    rank = max(0, outside - 1)
    below = float(np.partition(lower, rank)[rank])
    above = float(np.partition(lower + spare, GAFFKE_DRAWS - 1 - rank)[GAFFKE_DRAWS - 1 - rank])
    return max(0.0, below), min(1.0, above)


def _weight_blocks(n: int, rng: np.random.Generator | None) -> Iterator[FloatArray]:
    """Weights of the draws: one row a part, n + 1 of them, one column a draw."""
    if rng is None and 8 * GAFFKE_DRAWS * (n + 1) <= _KEPT_BYTES_MOST:
        yield _kept_weights(n)
    else:
        yield from _new_weights(n, np.random.default_rng(DEFAULT_SEED) if rng is None else rng)


_kept: OrderedDict[int, FloatArray] = OrderedDict()


def _kept_weights(n: int) -> FloatArray:
    """The fixed draws for n runs, from memory where they are there; those used longest ago give way."""
    if n not in _kept:
        weights = np.concatenate(list(_new_weights(n, np.random.default_rng(DEFAULT_SEED))), axis=1)
        weights.flags.writeable = False
        while _kept and weights.nbytes + sum(kept.nbytes for kept in _kept.values()) > _KEPT_BYTES_MOST:
            _kept.popitem(last=False)
        _kept[n] = weights
    _kept.move_to_end(n)
    return _kept[n]


def _new_weights(n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    # Exponentials over their sum are Dirichlet(1, ..., 1); drawn one draw after the other, so that the block size
    # changes nothing, and laid out part by part, so that a value's weights lie side by side in memory.
    draws_most = max(1, _BLOCK_ELEMENTS // (n + 1))
    for start in range(0, GAFFKE_DRAWS, draws_most):
        weights = rng.standard_exponential((min(draws_most, GAFFKE_DRAWS - start), n + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        yield np.ascontiguousarray(weights.T)
