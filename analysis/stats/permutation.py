"""Counts permutations at least as extreme as the data, all of them where 40 values or fewer are permuted.

Whole distributions are counted by splitting the values in two halves, listing the sums of each half (2^20 at most) and
finding for every left sum how many right sums reach the threshold: 2^40 sign patterns take under a second (Horowitz and
Sahni, "Computing partitions with applications to the knapsack problem", 1974). Ties, frequent in scores with many
zeros, are compared with a tolerance, so that rounding in a sum cannot decide whether a permutation counts.
"""

import math
from collections.abc import Iterator

import numpy as np

from analysis.stats.estimate import Alternative
from analysis.stats.samples import FloatArray, IntArray

EXACT_MOST = 40
"""Most values whose permutations are all counted."""

RESAMPLES = 99_999
"""Random permutations beyond that; with the data's own, p is a multiple of 1 / 100,000."""

_TOLERANCE = 1e-10  # of the largest possible sum: far above rounding, far below any difference between scores
_BLOCK_ELEMENTS = 2**21


def tolerance(values: FloatArray) -> float:
    """Difference up to which two sums of these values are one and the same."""
    return _TOLERANCE * float(np.abs(values).sum())


def sign_flip_p(differences: FloatArray, *, alternative: Alternative, rng: np.random.Generator) -> tuple[float, bool]:
    """Share of sign patterns whose sum is at least as extreme as the observed one, and whether all were counted.

    Zeros keep their sign whatever it is, so that exactness depends on the other differences alone.
    """
    moved = differences[differences != 0.0]
    slack, observed = tolerance(moved), float(moved.sum())
    if alternative == "less":
        moved, observed = -moved, -observed
    if alternative == "two-sided":
        if abs(observed) <= slack:
            return 1.0, moved.size <= EXACT_MOST
        observed = abs(observed)
    sides = 2.0 if alternative == "two-sided" else 1.0  # the distribution is symmetric
    if moved.size <= EXACT_MOST:
        half = moved.size // 2
        n_extreme = _pairs_reaching(_signed_sums(moved[:half]), _signed_sums(moved[half:]), observed - slack)
        return min(1.0, sides * n_extreme / 2**moved.size), True
    n_extreme = 1  # the pattern of the data
    for signs in _sign_blocks(moved.size, rng):
        sums = signs @ moved
        n_extreme += int(((np.abs(sums) if sides == 2.0 else sums) >= observed - slack).sum())
    return n_extreme / (RESAMPLES + 1), False


def split_p(a: FloatArray, b: FloatArray, *, alternative: Alternative, rng: np.random.Generator) -> tuple[float, bool]:
    """Share of splits of the pooled values whose mean difference is at least as extreme, and whether all were counted.

    `two-sided` counts splits whose absolute difference is at least the observed one.
    """
    pooled = np.concatenate([a, b])
    centred = pooled - pooled.mean()  # the sum of a group of the size of a then stands for the difference of means
    slack, observed = tolerance(centred), float(centred[: a.size].sum())
    if alternative == "less":
        centred, observed = -centred, -observed
    if alternative == "two-sided":
        if abs(observed) <= slack:
            return 1.0, pooled.size <= EXACT_MOST
        observed = abs(observed)
    thresholds = [(centred, observed - slack)]
    if alternative == "two-sided":
        thresholds.append((-centred, observed - slack))
    if pooled.size <= EXACT_MOST:
        n_extreme = sum(_splits_reaching(values, a.size, threshold) for values, threshold in thresholds)
        return n_extreme / math.comb(pooled.size, a.size), True
    n_extreme = 1
    for order in permutation_blocks(pooled.size, rng):
        sums = centred[order[:, : a.size]].sum(axis=1)
        n_extreme += int(((np.abs(sums) if len(thresholds) == 2 else sums) >= observed - slack).sum())
    return n_extreme / (RESAMPLES + 1), False


def permutation_blocks(n: int, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Iterator[IntArray]:
    """Random orders of 0 .. n - 1, one a row, in blocks that fit into memory."""
    rows_most = max(1, _BLOCK_ELEMENTS // n)
    for start in range(0, resamples, rows_most):
        yield np.argsort(rng.random((min(rows_most, resamples - start), n)), axis=1)


def sign_patterns(n: int) -> FloatArray:
    """All 2^n patterns of n signs, one a row.

    >>> sign_patterns(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.asarray(2.0 * bits - 1.0, dtype=np.float64)


def describe(test: str, exact: bool, *, resamples: int = RESAMPLES) -> str:
    """Names a permutation test with how its distribution was made."""
    return f"{test}, exact" if exact else f"{test}, {resamples:,} random permutations"


def _sign_blocks(n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    rows_most = max(1, _BLOCK_ELEMENTS // n)
    for start in range(0, RESAMPLES, rows_most):
        signs = rng.integers(0, 2, size=(min(rows_most, RESAMPLES - start), n)).astype(np.float64)
        yield 2.0 * signs - 1.0


def _signed_sums(values: FloatArray) -> FloatArray:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _pairs_reaching(left: FloatArray, right: FloatArray, threshold: float) -> int:
    # Sorting the left side too makes the look-ups walk through memory in order.
    found = np.searchsorted(np.sort(right), threshold - np.sort(left), side="left")
    return int(left.size * right.size - int(found.sum()))


def _splits_reaching(values: FloatArray, size: int, threshold: float) -> int:
    half = values.size // 2
    left, right = _sums_by_size(values[:half]), _sums_by_size(values[half:])
    return sum(
        _pairs_reaching(left[k], right[size - k], threshold)
        for k in range(max(0, size - len(right) + 1), min(size, len(left) - 1) + 1)
    )


def _sums_by_size(values: FloatArray) -> list[FloatArray]:
    """Sums of all subsets, listed by the number of values in them."""
    sums: list[FloatArray] = [np.zeros(1)]
    for value in values:
        grown = [part + value for part in sums]
        sums = [
            np.concatenate([sums[k] if k < len(sums) else np.empty(0), grown[k - 1] if k else np.empty(0)])
            for k in range(len(sums) + 1)
        ]
    return sums
