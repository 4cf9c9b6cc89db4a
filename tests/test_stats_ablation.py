"""Ablation against original: enumerated label permutations, swaps within blocks, and what a correlation misses."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from analysis.stats import ablation_test, paired_ablation_test, pearson_test

ORIGINAL = {2.0: [0.0, 0.1, 0.05], 4.0: [0.2, 0.3, 0.1]}
ABLATED = {2.0: [0.3, 0.2, 0.4], 4.0: [0.1, 0.35, 0.2]}


def every_split(a: list[float], b: list[float]) -> list[float]:
    pooled = [*a, *b]
    squares = []
    for chosen in combinations(range(len(pooled)), len(a)):
        inside = sum(pooled[i] for i in chosen)
        squares.append((inside / len(a) - (sum(pooled) - inside) / len(b)) ** 2)
    return squares


def test_labels_permuted_within_lengths_agree_with_every_split() -> None:
    result = ablation_test(ORIGINAL, ABLATED)
    observed = (0.05 - 0.3) ** 2 + (0.2 - 0.65 / 3) ** 2
    sums = [sum(s) for s in product(*(every_split(ORIGINAL[length], ABLATED[length]) for length in (2.0, 4.0)))]
    exact = sum(value >= observed - 1e-12 for value in sums) / len(sums)
    assert result.statistic == pytest.approx(observed)
    assert len(sums) == 400
    assert result.p == pytest.approx(exact, abs=4.0 * math.sqrt(exact / 100_000))
    assert (result.n, result.exact) == (12, False)
    assert result.method == "ablation labels permuted within lengths, 99,999 random permutations"


def test_a_shift_between_lengths_is_not_mistaken_for_an_ablation() -> None:
    # Every run of a length has one value, whatever the label: nothing can be extreme.
    same = {2.0: [0.1] * 5, 4.0: [0.9] * 5}
    assert ablation_test(same, same).p == 1.0


def test_an_offset_shows_that_correlation_cannot_see() -> None:
    rng = np.random.default_rng(2)
    curve = {2.0: 0.1, 4.0: 0.2, 8.0: 0.3, 16.0: 0.4, 32.0: 0.5}
    original = {length: mean + rng.normal(0.0, 0.05, 10) for length, mean in curve.items()}
    ablated = {length: mean + 0.2 + rng.normal(0.0, 0.05, 10) for length, mean in curve.items()}
    r = pearson_test([v.mean() for v in original.values()], [v.mean() for v in ablated.values()])
    assert r.statistic > 0.98
    assert ablation_test(original, ablated).p == 1e-5


def test_fewer_resamples_may_be_asked_for_and_are_stated() -> None:
    result = ablation_test(ORIGINAL, ABLATED, resamples=999)
    assert "999 random permutations" in result.method
    assert (1000 * result.p) == pytest.approx(round(1000 * result.p))


def test_swapped_blocks_agree_with_every_pattern_of_swaps() -> None:
    original = np.array([[0.0, 0.2], [0.1, 0.3], [0.05, 0.1], [0.2, 0.2]])
    ablated = np.array([[0.3, 0.1], [0.2, 0.35], [0.4, 0.2], [0.1, 0.5]])
    result = paired_ablation_test(original, ablated)
    differences = original - ablated
    squares = [
        float(((np.array(signs)[:, None] * differences).mean(axis=0) ** 2).sum())
        for signs in product((1, -1), repeat=4)
    ]
    observed = float((differences.mean(axis=0) ** 2).sum())
    assert result.statistic == pytest.approx(observed)
    assert result.p == sum(value >= observed - 1e-12 for value in squares) / 16
    assert (result.n, result.exact) == (4, True)
    assert "no p below 0.125 is possible with 4 blocks" in result.reason


def test_many_blocks_take_random_swaps_that_agree_with_enumeration() -> None:
    rng = np.random.default_rng(3)
    original, ablated = rng.random((19, 2)), rng.random((19, 2)) + 0.12
    result = paired_ablation_test(original, ablated)
    signs = 2.0 * ((np.arange(2**19)[:, None] >> np.arange(19)) & 1) - 1.0
    drawn = ((signs @ (original - ablated) / 19) ** 2).sum(axis=1)
    exact = float((drawn >= result.statistic - 1e-12).mean())
    assert not result.exact
    assert result.p == pytest.approx(exact, abs=4.0 * math.sqrt(exact / 100_000))


def test_undefined_pairs_leave_their_length_and_are_counted() -> None:
    original = [[0.1, math.nan], [0.2, 0.4], [math.nan, math.nan]]
    ablated = [[0.3, 0.1], [0.1, 0.1], [0.2, 0.2]]
    result = paired_ablation_test(original, ablated)
    assert result.n == 2
    assert result.statistic == pytest.approx(((-0.2 + 0.1) / 2) ** 2 + 0.3**2)
    assert "3 of 6 pairs undefined" in result.reason


def test_a_length_without_runs_on_one_side_is_left_out_and_named() -> None:
    result = ablation_test({2.0: [0.1, 0.2], 4.0: [math.nan]}, {2.0: [0.3, 0.4], 4.0: [0.2]})
    assert result.n == 4
    assert "length 4, original: 1 of 1 values undefined, left out" in result.reason
    assert "length 4 left out, no run on one side" in result.reason
    nothing = ablation_test({2.0: []}, {2.0: [0.1]})
    assert math.isnan(nothing.p) and "no length to compare" in nothing.reason
    assert math.isnan(paired_ablation_test([[math.nan]], [[0.1]]).p)


def test_sides_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lengths \[8\.0\] are on one side only"):
        ablation_test({2.0: [0.1], 8.0: [0.1]}, {2.0: [0.1]})
    with pytest.raises(ValueError, match=r"original has shape \(1, 2\) and ablated \(1, 1\)"):
        paired_ablation_test([[0.1, 0.2]], [[0.1]])
    with pytest.raises(ValueError, match="infinite"):
        paired_ablation_test([[math.inf]], [[0.1]])
