"""How two variables go together: Kendall's tau-b, Somers' d and Pearson's r, with permutation tests."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations
from math import comb

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
from analysis.stats.permutation import RESAMPLES, describe, permutation_blocks
from analysis.stats.samples import FloatArray, IntArray, clean_pairs, generator, merge_ties

_STATES_MOST = 2_000  # of the exact distribution of Kendall's S: enough for three goal classes of 11 runs each
_PEARSON_EXACT_MOST = 8  # 40,320 orders
_SOMERS_RESAMPLES = 1_999
_ORDERS_AT_ONCE = 256
_UNVARYING = "needs two pairs, and both variables to vary"


def kendall_test(
    x: ArrayLike, y: ArrayLike, *, alternative: Alternative = "greater", rng: np.random.Generator | None = None
) -> TestResult:
    """Kendall's tau-b with the exact permutation distribution, ties in both variables included.

    The permutation distribution is that of S, concordant minus discordant pairs, since ties, and with them the divisor
    of tau-b and of Somers' d, do not change under permutation: p is that of Somers' d as well. It is counted in full
    where one variable has few classes (a goal stated in three classes: up to about 30 runs) or neither has ties, and is
    sampled elsewhere.

    Source: Kendall, "Rank correlation methods" (1970), chapter 4; tau-b by `scipy.stats.kendalltau`.

    Args:
        x: one value a run, such as the class of the stated goal; a pair with NaN on either side is left out, counted.
        y: the other variable, such as the drift of the same run.
        alternative: `greater` asks whether they rise together.
        rng: source of random permutations; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, an infinite value or an unknown alternative.
    """
    check_alternative(alternative)
    left, right, note = clean_pairs(x, y, names=("x", "y"))
    test, n = "Kendall's tau-b, permutation", left.size
    a, b = merge_ties(left), merge_ties(right)
    if n < 2 or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return TestResult(math.nan, math.nan, test, alternative, n, False, join_reasons(_UNVARYING, note))
    tau = float(stats.kendalltau(a, b).statistic)
    p, exact = _concordance_p(a, b, alternative, generator(rng))
    return TestResult(tau, p, describe(test, exact), alternative, n, exact, note)


def somers_d(
    independent: ArrayLike, dependent: ArrayLike, *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> Estimate:
    """Somers' d of the dependent variable given the independent one, with a percentile bootstrap of pairs.

    Concordant minus discordant pairs, over the pairs that differ in the independent variable. Its p value is that of
    `kendall_test`. `scipy.stats.somersd` gives the same value and no interval.

    Source: Somers, "A new asymmetric measure of association for ordinal variables" (1962).

    Args:
        independent: one value a run, such as the class of the stated goal; a pair with NaN is left out and counted.
        dependent: the other variable, such as drift.
        level: two-sided.
        rng: source of the resamples; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, an infinite value or an impossible level.
    """
    check_level(level)
    left, right, note = clean_pairs(independent, dependent, names=("independent", "dependent"))
    n, method = left.size, f"percentile bootstrap of pairs, {_SOMERS_RESAMPLES:,} resamples"
    signs = np.sign(np.subtract.outer(merge_ties(left), merge_ties(left)))
    agreement = signs * np.sign(np.subtract.outer(merge_ties(right), merge_ties(right)))
    untied = float(np.abs(signs).sum())
    if untied == 0.0:
        reason = join_reasons("the independent variable does not vary", note)
        return Estimate(math.nan, math.nan, math.nan, n, None, level, method, reason)
    copies = generator(rng).multinomial(n, np.full(n, 1.0 / n), size=_SOMERS_RESAMPLES).astype(np.float64)
    above = ((copies @ agreement) * copies).sum(axis=1)
    below = ((copies @ np.abs(signs)) * copies).sum(axis=1)
    drawn = above[below > 0.0] / below[below > 0.0]
    if drawn.size < _SOMERS_RESAMPLES:
        note = join_reasons(f"{_SOMERS_RESAMPLES - drawn.size} resamples do not vary, left out", note)
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(drawn, (tail, 1.0 - tail)))
    return Estimate(float(agreement.sum()) / untied, low, high, n, None, level, method, note)


def pearson_test(
    x: ArrayLike, y: ArrayLike, *, alternative: Alternative = "two-sided", rng: np.random.Generator | None = None
) -> TestResult:
    """Pearson's r with a permutation test: all orders up to 8 pairs, 99,999 random ones beyond.

    Two-sided p counts the orders whose |r| is at least the observed one; `scipy.stats.pearsonr` with a permutation
    method doubles the smaller tail instead. Over few phase lengths r is a description, blind to any offset.

    Source: Pitman, "Significance tests which may be applied to samples from any populations. II" (1937).

    Args:
        x: one value a point; a pair with NaN on either side is left out and counted.
        y: the other variable.
        alternative: `greater` asks whether they rise together.
        rng: source of random permutations; None takes the fixed default seed.

    Raises:
        ValueError: lengths that differ, an infinite value or an unknown alternative.
    """
    check_alternative(alternative)
    a, b, note = clean_pairs(x, y, names=("x", "y"))
    test, n = "Pearson's r, permutation", a.size
    if n < 2 or np.ptp(merge_ties(a)) == 0.0 or np.ptp(merge_ties(b)) == 0.0:
        return TestResult(math.nan, math.nan, test, alternative, n, False, join_reasons(_UNVARYING, note))
    a, b = _standardised(a), _standardised(b)
    r = float(a @ b)
    exact = n <= _PEARSON_EXACT_MOST
    orders = iter([np.array(list(permutations(range(n))))]) if exact else permutation_blocks(n, generator(rng))
    reached, seen = (0, 0) if exact else (1, 1)
    for order in orders:
        reached += _n_reaching(b[order] @ a, r, alternative, slack=1e-10)
        seen += len(order)
    return TestResult(r, reached / seen, describe(test, exact), alternative, n, exact, note)


def pearson_interval(x: ArrayLike, y: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """Pearson's r with Fisher's interval (`scipy.stats.pearsonr`): a description, which assumes normal pairs.

    Args:
        x: one value a point; a pair with NaN on either side is left out and counted.
        y: the other variable.
        level: two-sided.

    Raises:
        ValueError: lengths that differ, an infinite value or an impossible level.
    """
    check_level(level)
    a, b, note = clean_pairs(x, y, names=("x", "y"))
    n, method = a.size, "Fisher's z"
    if n < 2 or np.ptp(merge_ties(a)) == 0.0 or np.ptp(merge_ties(b)) == 0.0:
        return Estimate(math.nan, math.nan, math.nan, n, None, level, method, join_reasons(_UNVARYING, note))
    value = float(_standardised(a) @ _standardised(b))
    if n < 4 or abs(value) >= 1.0 - 1e-12:
        reason = join_reasons("Fisher's interval needs 4 points, not all on one line", note)
        return Estimate(value, math.nan, math.nan, n, None, level, method, reason)
    interval = stats.pearsonr(a, b).confidence_interval(level)
    return Estimate(value, float(interval.low), float(interval.high), n, None, level, method, note)


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean()
    return np.asarray(centred / np.linalg.norm(centred))


def _n_reaching(drawn: FloatArray, observed: float, alternative: Alternative, slack: float) -> int:
    if alternative == "two-sided":
        return int((np.abs(drawn) >= abs(observed) - slack).sum())
    sign = 1.0 if alternative == "greater" else -1.0
    return int((sign * drawn >= sign * observed - slack).sum())


def _concordance_p(
    a: FloatArray, b: FloatArray, alternative: Alternative, rng: np.random.Generator
) -> tuple[float, bool]:
    """Permutation p of S, and whether every arrangement was counted."""
    if _n_states(a) > _n_states(b):
        a, b = b, a
    if _n_states(a) <= _STATES_MOST:
        observed = int(_concordance(a, b))
        counts = _exact_concordance(a, b)
        reached = sum(ways for s, ways in counts.items() if _reaches(s, observed, alternative))
        return reached / sum(counts.values()), True
    if np.unique(a).size == np.unique(b).size == a.size:
        return float(stats.kendalltau(a, b, method="exact", alternative=alternative).pvalue), True
    return _sampled_p(a, b, alternative, rng), False


def _reaches(s: int, observed: int, alternative: Alternative) -> bool:
    if alternative == "two-sided":
        return abs(s) >= abs(observed)
    return s >= observed if alternative == "greater" else s <= observed


def _concordance(a: FloatArray, b: FloatArray) -> float:
    """S: concordant minus discordant pairs."""
    return float((np.sign(np.subtract.outer(a, a)) * np.sign(np.subtract.outer(b, b))).sum()) / 2.0


def _n_states(values: FloatArray) -> int:
    _, sizes = np.unique(values, return_counts=True)
    return math.prod(int(size) + 1 for size in sizes)


def _exact_concordance(classes: FloatArray, b: FloatArray) -> dict[int, int]:
    """How many distinct arrangements of the classes give each value of S.

    The runs are placed in ascending order of b, one group of ties at a time. What is placed so far is summed up by how
    many runs of each class are used; a run of class g adds 1 to S for every lower class placed before it and -1 for
    every higher one.
    """
    _, sizes = np.unique(classes, return_counts=True)
    _, ties = np.unique(b, return_counts=True)
    states: dict[tuple[int, ...], dict[int, int]] = {(0,) * len(sizes): {0: 1}}
    for tie in ties:
        grown: dict[tuple[int, ...], dict[int, int]] = {}
        for used, counts in states.items():
            for taken in _allocations(int(tie), tuple(int(s) - u for s, u in zip(sizes, used, strict=True))):
                gain = sum(t * (sum(used[:g]) - sum(used[g + 1 :])) for g, t in enumerate(taken))
                ways = _multinomial(taken)
                state = tuple(u + t for u, t in zip(used, taken, strict=True))
                into = grown.setdefault(state, defaultdict(int))
                for s, count in counts.items():
                    into[s + gain] += count * ways
        states = grown
    return states[tuple(int(size) for size in sizes)]


def _allocations(total: int, room: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All ways to take `total` runs from classes with so much room each."""
    if len(room) == 1:
        if total <= room[0]:
            yield (total,)
        return
    for first in range(max(0, total - sum(room[1:])), min(total, room[0]) + 1):
        for rest in _allocations(total - first, room[1:]):
            yield (first, *rest)


def _multinomial(taken: tuple[int, ...]) -> int:
    ways, placed = 1, 0
    for count in taken:
        placed += count
        ways *= comb(placed, count)
    return ways


def _sampled_p(a: FloatArray, b: FloatArray, alternative: Alternative, rng: np.random.Generator) -> float:
    observed = _concordance(a, b)
    levels_a, levels_b = (np.unique(values, return_inverse=True)[1] for values in (a, b))
    # The table of counts is the quicker way only where it is far smaller than the matrix of all pairs.
    tied = (levels_a.max() + 1) * (levels_b.max() + 1) * 8 <= a.size**2
    concordance = _concordance_by_counts if tied else _concordance_by_pairs
    reached = 1
    for block in permutation_blocks(a.size, rng):
        for rows in np.array_split(block, math.ceil(len(block) / _ORDERS_AT_ONCE)):
            drawn = concordance(levels_a, levels_b, rows)
            reached += _n_reaching(drawn, observed, alternative, slack=0.5)
    return reached / (RESAMPLES + 1)


def _concordance_by_pairs(levels_a: IntArray, levels_b: IntArray, orders: IntArray) -> FloatArray:
    signs_a, signs_b = (np.sign(np.subtract.outer(levels, levels)).astype(float) for levels in (levels_a, levels_b))
    permuted = signs_b[orders[:, :, None], orders[:, None, :]]
    return np.asarray(np.einsum("ij,rij->r", signs_a, permuted) / 2.0)


def _concordance_by_counts(levels_a: IntArray, levels_b: IntArray, orders: IntArray) -> FloatArray:
    n_a, n_b = int(levels_a.max()) + 1, int(levels_b.max()) + 1
    cells = (np.arange(len(orders))[:, None] * n_a + levels_a) * n_b + levels_b[orders]
    table = np.bincount(cells.ravel(), minlength=len(orders) * n_a * n_b).reshape(len(orders), n_a, n_b)
    # Of the runs in lower classes of a: those lower in b are concordant with a run, those higher are discordant.
    lower_classes = np.cumsum(table, axis=1) - table
    up_to = np.cumsum(lower_classes, axis=2)
    below, above = up_to - lower_classes, up_to[:, :, -1:] - up_to
    return np.asarray((table * (below - above)).sum(axis=(1, 2)), dtype=np.float64)
