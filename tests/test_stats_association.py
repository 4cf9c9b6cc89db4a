"""Kendall, Somers and Pearson against every arrangement, scipy, and the reference values."""

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats import kendall_test, pearson_interval, pearson_test, somers_d
from analysis.stats.association import _concordance_by_counts, _concordance_by_pairs

STATED = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
DRIFT = [0, 0.05, 0.10, 0.05, 0.30, 0.25, 0.20, 0.60, 0.55, 0.80]
O = [0.02, 0.05, 0.11, 0.24, 0.37, 0.41]  # noqa: E741
A = [0, 0.08, 0.09, 0.31, 0.30, 0.52]


def concordance(x: Sequence[float], y: Sequence[float]) -> int:
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    return sum(((x[i] > x[j]) - (x[i] < x[j])) * ((y[i] > y[j]) - (y[i] < y[j])) for i, j in pairs)


def test_kendall_gives_the_reference_by_every_arrangement() -> None:
    result = kendall_test(STATED, DRIFT)
    arrangements = {()}
    for _ in STATED:  # grow every distinct arrangement of three 1s, three 2s and four 3s
        arrangements = {
            (*head, goal) for head in arrangements for goal in (1, 2, 3) if head.count(goal) < STATED.count(goal)
        }
    drawn = [concordance(arrangement, DRIFT) for arrangement in arrangements]
    assert len(drawn) == 4200
    assert sum(s >= concordance(STATED, DRIFT) for s in drawn) == 22
    assert result.p == 22 / 4200
    assert result.exact
    assert result.statistic == pytest.approx(0.682323, abs=5e-7)


def test_tau_b_is_concordance_over_untied_pairs() -> None:
    untied_stated = 45 - 3 - 3 - 6
    untied_drift = 45 - 1
    tau = concordance(STATED, DRIFT) / math.sqrt(untied_stated * untied_drift)
    assert kendall_test(STATED, DRIFT).statistic == pytest.approx(tau)


def test_somers_gives_the_reference_and_agrees_with_scipy() -> None:
    d = somers_d(STATED, DRIFT)
    assert d.value == pytest.approx(0.787879, abs=5e-7)
    assert d.value == pytest.approx(concordance(STATED, DRIFT) / 33)
    assert d.value == pytest.approx(stats.somersd(STATED, DRIFT).statistic)
    assert d.value != pytest.approx(somers_d(DRIFT, STATED).value)


def test_somers_interval_agrees_with_resampling_by_scipy() -> None:
    rng = np.random.default_rng(6)
    drawn = []
    for _ in range(800):
        rows = rng.integers(0, 10, 10)
        drawn.append(stats.somersd(np.array(STATED)[rows], np.array(DRIFT)[rows]).statistic)
    d = somers_d(STATED, DRIFT)
    assert d.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.1)
    assert d.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.03)
    assert d == somers_d(STATED, DRIFT)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=6),
    st.sampled_from(["greater", "less", "two-sided"]),
)
@settings(max_examples=50)
def test_kendall_counts_what_brute_force_counts(pairs: list[tuple[int, int]], alternative: str) -> None:
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    drawn = [concordance(order, y) for order in permutations(x)]
    observed = concordance(x, y)
    reached = {
        "greater": [s >= observed for s in drawn],
        "less": [s <= observed for s in drawn],
        "two-sided": [abs(s) >= abs(observed) for s in drawn],
    }[alternative]
    result = kendall_test(x, y, alternative=alternative)  # type: ignore[arg-type]
    assert result.exact
    assert result.p == pytest.approx(sum(reached) / len(drawn))


def test_without_ties_any_size_is_exact() -> None:
    rng = np.random.default_rng(0)
    x = rng.random(25)
    y = x + rng.random(25)
    result = kendall_test(x, y)
    assert result.exact
    assert result.p == pytest.approx(stats.kendalltau(x, y, method="exact", alternative="greater").pvalue)


def test_many_ties_on_both_sides_take_random_orders() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat(np.arange(12.0), 2)
    y = np.round(x / 12 + rng.normal(0, 1.2, 24), 1)
    result = kendall_test(x, y)
    assert not result.exact
    assert "99,999 random permutations" in result.method
    # The normal approximation, with its continuity correction left out, is near at this size.
    assert result.p == pytest.approx(stats.kendalltau(x, y, alternative="greater").pvalue, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=20), st.integers(0, 99))
@settings(max_examples=50)
def test_concordance_is_the_same_by_counts_and_by_pairs(pairs: list[tuple[int, int]], seed: int) -> None:
    a, b = (np.unique(side, return_inverse=True)[1] for side in zip(*pairs, strict=True))
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(len(pairs)) for _ in range(3)])
    by_counts = _concordance_by_counts(a, b, orders)
    assert list(by_counts) == list(_concordance_by_pairs(a, b, orders))
    assert list(by_counts) == [concordance(a.tolist(), b[order].tolist()) for order in orders]


def test_classes_of_twenty_runs_are_counted_in_full() -> None:
    # Two classes of ten against twenty different scores: S is 2 U - 100, with the rank-sum distribution.
    classes = [0.0] * 10 + [1.0] * 10
    scores = [*range(3, 13), *range(0, 3), *range(13, 20)]
    result = kendall_test(classes, scores)
    u = stats.mannwhitneyu(scores[10:], scores[:10], method="exact", alternative="greater")
    assert result.exact
    assert result.p == pytest.approx(u.pvalue)


def test_pearson_gives_the_reference_by_every_order() -> None:
    result = pearson_test(O, A)
    drawn = [np.corrcoef(O, order)[0, 1] for order in permutations(A)]
    assert sum(abs(r) >= abs(drawn[0]) - 1e-12 for r in drawn) == 3
    assert result.p == 3 / 720
    assert result.statistic == pytest.approx(0.944816, abs=5e-7)
    doubled = stats.pearsonr(O, A, method=stats.PermutationMethod()).pvalue
    assert doubled == pytest.approx(0.0083333, abs=5e-8)


def test_pearson_beyond_eight_points_takes_random_orders() -> None:
    rng = np.random.default_rng(2)
    x = rng.random(12)
    y = x + rng.normal(0, 0.5, 12)
    result = pearson_test(x, y)
    parametric = stats.pearsonr(x, y).pvalue
    assert not result.exact
    assert result.p == pytest.approx(parametric, abs=0.25 * parametric + 0.005)
    assert pearson_test(x, y, alternative="greater").p + pearson_test(x, -y, alternative="greater").p > 0.99


def test_five_lengths_leave_pearson_almost_unknown() -> None:
    # Points built to have r = .9: the interval of tanh(atanh(.9) +- 1.96 / sqrt 2).
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / math.sqrt(10.0)
    z = np.array([1.0, -2.0, 0.0, 2.0, -1.0]) / math.sqrt(10.0)
    interval = pearson_interval(x, 0.9 * x + math.sqrt(1.0 - 0.81) * z)
    half = 1.959964 / math.sqrt(2.0)
    assert interval.value == pytest.approx(0.9)
    assert interval.low == pytest.approx(math.tanh(math.atanh(0.9) - half), abs=1e-6)
    assert (round(interval.low, 2), round(interval.high, 2)) == (0.09, 0.99)


def test_variables_that_do_not_vary_give_nan_with_a_reason() -> None:
    for result in (kendall_test([1, 1, 1], [0.1, 0.2, 0.3]), pearson_test([1, 2, 3], [0.5, 0.5, 0.5])):
        assert math.isnan(result.p) and math.isnan(result.statistic)
        assert "to vary" in result.reason
    assert math.isnan(somers_d([1, 1], [0.1, 0.2]).value)
    assert math.isnan(pearson_interval([1.0], [2.0]).value)
    line = pearson_interval([1, 2, 3, 4], [2, 4, 6, 8])
    assert line.value == pytest.approx(1.0) and not line.has_interval


def test_undefined_pairs_are_left_out_and_counted() -> None:
    result = kendall_test([*STATED, 1], [*DRIFT, math.nan])
    assert (result.p, result.n) == (22 / 4200, 10)
    assert result.reason == "1 of 11 pairs undefined, left out"
    assert somers_d([*STATED, math.nan], [*DRIFT, 0.1]).n == 10


def test_mismatched_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="x holds 2 values and y 3"):
        kendall_test([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="independent holds 2 values and dependent 3"):
        somers_d([1, 2], [1, 2, 3])
