"""Trend of a score over the doublings of the instrumental phase's length, within trajectories or seeds."""

import math
from functools import lru_cache
from itertools import permutations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.clusters import cluster_copies
from analysis.stats.estimate import (
    LEVEL,
    ONE_TRAJECTORY,
    Alternative,
    Estimate,
    TestResult,
    check_alternative,
    check_level,
    join_reasons,
)
from analysis.stats.intervals import BOOTSTRAP_RESAMPLES
from analysis.stats.samples import FloatArray, IntArray, Labels, clean_clustered, clean_table, generator, merge_ties

_LEVELS_MOST = 8  # 40,320 orders of a block


def block_table(values: ArrayLike, levels: ArrayLike, *, blocks: Labels) -> pd.DataFrame:
    """Means of the defined values by block (row) and level (column, ascending), NaN where a block has none.

    Averaging is what makes runs of one trajectory one observation; where every seed has its own trajectory it changes
    nothing.

    Args:
        values: one value a run.
        levels: one number a run, such as the length of the instrumental phase in quarters.
        blocks: one label a run: its trajectory, or its seed where trajectories are not shared.

    Raises:
        ValueError: lengths that differ.
    """
    columns: dict[str, list[object]] = {
        "value": list(np.asarray(values, dtype=np.float64)),
        "level": list(np.asarray(levels, dtype=np.float64)),
        "block": list(blocks),
    }
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"values, levels and blocks differ in length: {sizes}; allowed: one of each a run")
    runs = pd.DataFrame(columns)
    return runs.groupby(["block", "level"], sort=True)["value"].mean().unstack("level")


def page_test(table: ArrayLike, *, alternative: Alternative = "greater") -> TestResult:
    """Page's test for ordered levels, exact within blocks and given the ties.

    L = sum over levels j = 1..k of j times the sum of the ranks at that level, ranks taken within each block and shared
    by ties. The null distribution re-orders every block on its own; each block's is counted in full and they are
    convolved, so that p is exact for any number of blocks. `scipy.stats.page_trend_test` agrees where no block has
    ties and loses its size where some have, as scores with zeros do.

    Source: Page, "Ordered hypotheses for multiple treatments: a significance test for linear ranks" (1963).

    Args:
        table: one row a block, one column a level in the order that the alternative predicts, 2 to 8 of them; a block
            with NaN is left out and counted. `block_table` makes it.
        alternative: `greater` asks for growth along the columns.

    Raises:
        ValueError: not two-dimensional, fewer than 2 or more than 8 levels, or an infinite value.
    """
    check_alternative(alternative)
    blocks, note = clean_table(table, name="table", rows="blocks")
    n_blocks, n_levels = blocks.shape
    if not 2 <= n_levels <= _LEVELS_MOST:
        raise ValueError(f"table has {n_levels} levels; allowed: 2 to {_LEVELS_MOST}")
    method = "Page's L, exact within blocks given ties"
    if n_blocks == 0:
        reason = join_reasons("no block with every level", note)
        return TestResult(math.nan, math.nan, method, alternative, 0, False, reason)
    doubled = np.rint(2.0 * stats.rankdata(merge_ties(blocks), axis=1)).astype(np.int64)
    observed = int((doubled @ np.arange(1, n_levels + 1)).sum())
    null = np.ones(1)
    for ranks in doubled:
        null = np.convolve(null, _block_distribution(tuple(sorted(int(rank) for rank in ranks))))
    p = _tail(null, observed, n_blocks * n_levels * (n_levels + 1) ** 2 // 2, alternative)
    constant = int((np.ptp(blocks, axis=1) == 0.0).sum())
    flat = f"{constant} of {n_blocks} blocks have one value at every level" if constant else ""
    return TestResult(observed / 2.0, p, method, alternative, n_blocks, True, join_reasons(flat, note))


def slope_per_doubling(
    values: ArrayLike,
    lengths: ArrayLike,
    *,
    clusters: Labels,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """Least-squares change of a score each time the phase doubles, with a percentile bootstrap of whole clusters.

    The interval is too narrow with few clusters, as every cluster bootstrap is; the test of the trend is `page_test`.

    Args:
        values: one value a run; NaN is left out and counted.
        lengths: phase length of each run in quarters, above 0.
        clusters: one label a run: its trajectory, which serves several lengths.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, a phase length of 0 or less, or an impossible level.
    """
    check_level(level)
    sample, codes, note = clean_clustered(values, clusters)
    doublings = _doublings(lengths, values)
    method = f"least squares on log2(length), percentile cluster bootstrap, {BOOTSTRAP_RESAMPLES:,} resamples"
    n_clusters = int(codes.max()) + 1 if codes.size else 0
    if sample.size < 2 or np.ptp(doublings) == 0.0:
        reason = join_reasons("needs runs of two lengths", note)
        return Estimate(math.nan, math.nan, math.nan, sample.size, n_clusters, level, method, reason)
    moments = _moments(doublings - doublings.mean(), sample - sample.mean(), codes)
    slope = float(_slopes(moments.sum(axis=0)[None, :])[0])
    if n_clusters == 1:
        reason = join_reasons(ONE_TRAJECTORY, note)
        return Estimate(slope, math.nan, math.nan, sample.size, 1, level, method, reason)
    resampled = _slopes(cluster_copies(n_clusters, generator(rng)) @ moments)
    drawn = resampled[~np.isnan(resampled)]
    if drawn.size < resampled.size:
        note = join_reasons(f"{resampled.size - drawn.size} resamples hold one length alone, left out", note)
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(drawn, (tail, 1.0 - tail)))
    return Estimate(slope, low, high, sample.size, n_clusters, level, method, note)


@lru_cache(maxsize=256)
def _block_distribution(doubled_ranks: tuple[int, ...]) -> FloatArray:
    """Probability of each value of sum(j * doubled rank) over the orders of one block, from value 0 on."""
    orders = np.array(list(permutations(doubled_ranks)), dtype=np.int64)
    sums = orders @ np.arange(1, len(doubled_ranks) + 1)
    return np.bincount(sums) / len(orders)


def _tail(null: FloatArray, observed: int, doubled_centre: int, alternative: Alternative) -> float:
    # Reversing every block mirrors its distribution about the centre.
    if alternative == "greater":
        return min(1.0, float(null[observed:].sum()))
    if alternative == "less":
        return min(1.0, float(null[: observed + 1].sum()))
    distance = np.abs(np.arange(null.size) - doubled_centre)
    return min(1.0, float(null[distance >= abs(observed - doubled_centre)].sum()))


def _doublings(lengths: ArrayLike, values: ArrayLike) -> FloatArray:
    quarters, scores = np.asarray(lengths, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if quarters.shape != scores.shape:
        raise ValueError(f"values holds {scores.size} runs and lengths {quarters.size}; allowed: one length a run")
    if not (quarters > 0.0).all():
        raise ValueError(f"lengths hold {quarters[~(quarters > 0.0)][0]}; allowed: quarters above 0")
    return np.log2(quarters[~np.isnan(scores)])


def _moments(x: FloatArray, y: FloatArray, codes: IntArray) -> FloatArray:
    """Count, sums and products of each cluster: what a slope of any resample is made from."""
    parts = (np.ones_like(x), x, y, x * x, x * y)
    return np.column_stack([np.bincount(codes, weights=part) for part in parts])


def _slopes(moments: FloatArray) -> FloatArray:
    n, x, y, xx, xy = moments.T
    spread = n * xx - x * x
    flat = spread <= 1e-9 * n * n
    return np.where(flat, np.nan, (n * xy - x * y) / np.where(flat, 1.0, spread))
