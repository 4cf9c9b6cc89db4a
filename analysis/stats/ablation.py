"""Compares an ablated history with the original over all phase lengths at once, by permuting their labels."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.estimate import TestResult, join_reasons
from analysis.stats.permutation import RESAMPLES, describe, permutation_blocks, sign_patterns, tolerance
from analysis.stats.samples import FloatArray, clean_sample, generator

_EXACT_BLOCKS_MOST = 18  # 2^17 patterns of swaps, since swapping every block changes nothing
_BLOCKS_AT_ONCE = 2**16


def ablation_test(
    original: Mapping[float, ArrayLike],
    ablated: Mapping[float, ArrayLike],
    *,
    resamples: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> TestResult:
    """Tests whether runs with an ablated history differ from those with the original one at any phase length.

    The statistic is the sum over lengths of the squared difference of the two means; labels are permuted within each
    length, independently of the others. Offsets count, which a correlation over lengths cannot see. Valid where every
    run is independent; where the same blocks (seeds, trajectories) serve both histories, use `paired_ablation_test`.

    Source: permutation within strata, Good, "Permutation, parametric and bootstrap tests of hypotheses" (2005), ch. 3.

    Args:
        original: the values of the runs of each length; NaN is left out and counted.
        ablated: the same lengths under the ablated history.
        resamples: random permutations; p is a multiple of 1 / (resamples + 1).
        rng: source of the permutations; None takes the fixed default seed.

    Raises:
        ValueError: lengths on one side only, or an infinite value.
    """
    _check_lengths(original, ablated)
    random = generator(rng)
    test = "ablation labels permuted within lengths"
    observed, null, n, notes = 0.0, np.zeros(resamples), 0, []
    for length in sorted(original):
        a, a_note = clean_sample(original[length], name=f"original[{length:g}]")
        b, b_note = clean_sample(ablated[length], name=f"ablated[{length:g}]")
        notes += [
            f"length {length:g}, {side}: {note}" for side, note in (("original", a_note), ("ablated", b_note)) if note
        ]
        if not (a.size and b.size):
            notes.append(f"length {length:g} left out, no run on one side")
            continue
        observed += float(a.mean() - b.mean()) ** 2
        null += _split_squares(a, b, resamples, random)
        n += a.size + b.size
    if n == 0:
        return TestResult(math.nan, math.nan, test, "greater", 0, False, join_reasons("no length to compare", *notes))
    slack = 1e-10 * max(observed, float(null.max()))
    p = (1 + int((null >= observed - slack).sum())) / (resamples + 1)
    return TestResult(
        observed, p, describe(test, False, resamples=resamples), "greater", n, False, join_reasons(*notes)
    )


def paired_ablation_test(
    original: ArrayLike, ablated: ArrayLike, *, rng: np.random.Generator | None = None
) -> TestResult:
    """The ablation test where the same blocks were run under both histories: labels are swapped within pairs.

    A block's lengths share one trajectory, so that its pairs are swapped together; the statistic is the sum over
    lengths of the squared mean difference. All patterns of swaps are counted up to 18 blocks, 99,999 random ones
    beyond.

    Args:
        original: one row a block, one column a length; a pair with NaN on either side is left out and counted.
        ablated: the same blocks and lengths under the ablated history.
        rng: source of random swaps; None takes the fixed default seed.

    Raises:
        ValueError: tables of different or other than two-dimensional shape, or an infinite value.
    """
    differences, note = _pair_differences(original, ablated)
    test = "ablation labels swapped within blocks"
    defined = ~np.isnan(differences)
    blocks = differences[defined.any(axis=1)]
    n = len(blocks)
    if n == 0:
        return TestResult(math.nan, math.nan, test, "greater", 0, False, join_reasons("no pair", note))
    counts = (~np.isnan(blocks)).sum(axis=0)
    sums = np.where(np.isnan(blocks), 0.0, blocks)[:, counts > 0] / counts[counts > 0]
    observed = float((sums.sum(axis=0) ** 2).sum())
    slack = tolerance(sums.ravel()) ** 2 + 1e-10 * observed
    exact = n <= _EXACT_BLOCKS_MOST
    if exact:
        signs = np.column_stack([np.ones(2 ** (n - 1)), sign_patterns(n - 1)])
        p = float((((signs @ sums) ** 2).sum(axis=1) >= observed - slack).mean())
        least = 2.0 ** (1 - n)
        note = join_reasons(f"no p below {least:.3g} is possible with {n} blocks" if least > 0.05 else "", note)
    else:
        p = _random_swaps_p(sums, observed - slack, generator(rng))
    return TestResult(observed, p, describe(test, exact), "greater", n, exact, note)


def _check_lengths(original: Mapping[float, ArrayLike], ablated: Mapping[float, ArrayLike]) -> None:
    lone = sorted(set(original) ^ set(ablated))
    if lone:
        raise ValueError(
            f"lengths {lone} are on one side only; original has {sorted(original)}, ablated {sorted(ablated)}; "
            "allowed: the same lengths on both sides"
        )


def _split_squares(a: FloatArray, b: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Squared mean difference of random splits of one length's runs."""
    pooled = np.concatenate([a, b])
    centred = pooled - pooled.mean()
    scale = 1.0 / a.size + 1.0 / b.size
    sums = [
        centred[order[:, : a.size]].sum(axis=1) for order in permutation_blocks(pooled.size, rng, resamples=resamples)
    ]
    return np.asarray((scale * np.concatenate(sums)) ** 2)


def _pair_differences(original: ArrayLike, ablated: ArrayLike) -> tuple[FloatArray, str]:
    a, b = np.asarray(original, dtype=np.float64), np.asarray(ablated, dtype=np.float64)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(
            f"original has shape {a.shape} and ablated {b.shape}; allowed: two tables of the same blocks and lengths"
        )
    if np.isinf(a).any() or np.isinf(b).any():
        raise ValueError("original or ablated holds an infinite value; allowed: finite numbers, NaN for undefined")
    differences = a - b
    missing = int(np.isnan(differences).sum())
    return differences, f"{missing} of {differences.size} pairs undefined, left out" if missing else ""


def _random_swaps_p(sums: FloatArray, threshold: float, rng: np.random.Generator) -> float:
    n_extreme = 1
    for start in range(0, RESAMPLES, _BLOCKS_AT_ONCE):
        rows = min(_BLOCKS_AT_ONCE, RESAMPLES - start)
        signs = 2.0 * rng.integers(0, 2, size=(rows, len(sums))) - 1.0
        n_extreme += int((((signs @ sums) ** 2).sum(axis=1) >= threshold).sum())
    return n_extreme / (RESAMPLES + 1)
