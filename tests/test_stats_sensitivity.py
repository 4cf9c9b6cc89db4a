"""Secondary analyses against brute force, written-out formulas, and the reference values."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from analysis.stats import (
    brunner_munzel_test,
    mann_whitney_test,
    mean_and_iqm,
    performance_profile,
    probability_of_improvement,
)

A = [0, 0, 0.1, 0.25, 0.4, 0, 0.05, 0.6]
B = [0, 0.2, 0.35, 0.5, 0.45, 0.7, 0.15, 0.3]
CELLS = [[0, 0.1, 0.3], [0, 0.2, 0.5], [0.1, 0, 0.9], [0.05, 0.4, 0.2]]


def test_mann_whitney_with_ties_gives_the_reference_by_every_split() -> None:
    result = mann_whitney_test(A, B)
    pooled = [*A, *B]
    drawn = []
    for chosen in combinations(range(16), 8):
        rest = [i for i in range(16) if i not in chosen]
        doubled = sum(2 * (pooled[i] > pooled[j]) + (pooled[i] == pooled[j]) for i, j in product(chosen, rest))
        drawn.append(doubled)
    reached = sum(abs(doubled - 64) >= abs(37 - 64) for doubled in drawn)
    assert result.statistic == 18.5
    assert result.p == pytest.approx(0.168143, abs=5e-7)
    assert result.p == reached / 12870
    assert result.exact


def test_mann_whitney_without_ties_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(20), rng.random(20) + 0.2
    scipys = stats.mannwhitneyu(a, b, method="exact")
    result = mann_whitney_test(a, b)
    assert result.statistic == scipys.statistic
    assert result.p == pytest.approx(scipys.pvalue, rel=1e-9)


def test_brunner_munzel_gives_the_reference_and_follows_the_formula() -> None:
    result = brunner_munzel_test(A, B)
    pooled = stats.rankdata([*A, *B])
    ranks_a, ranks_b = pooled[:8], pooled[8:]
    own_a, own_b = stats.rankdata(A), stats.rankdata(B)
    mean_a, mean_b = ranks_a.mean(), ranks_b.mean()
    s_a = ((ranks_a - own_a - mean_a + 4.5) ** 2).sum() / 7
    s_b = ((ranks_b - own_b - mean_b + 4.5) ** 2).sum() / 7
    w = 64 * (mean_b - mean_a) / (16 * math.sqrt(8 * s_a + 8 * s_b))
    df = (8 * s_a + 8 * s_b) ** 2 / ((8 * s_a) ** 2 / 7 + (8 * s_b) ** 2 / 7)
    assert result.statistic == pytest.approx(1.504651, abs=5e-7)
    assert result.statistic == pytest.approx(w)
    assert result.p == pytest.approx(0.155696, abs=1e-6)
    assert result.p == pytest.approx(2.0 * stats.t.sf(w, df))
    assert brunner_munzel_test(A, B, alternative="less").p == pytest.approx(result.p / 2.0)


@pytest.mark.parametrize(
    ("a", "b"), [([0.1, 0.2], [0.3, 0.4]), ([0.0, 0.0], [0.0, 0.0]), ([0.1], [0.3, 0.4]), ([], [0.1, 0.2])]
)
def test_brunner_munzel_without_variance_is_nan_with_a_reason(a: list[float], b: list[float]) -> None:
    result = brunner_munzel_test(a, b)
    assert math.isnan(result.p)
    assert result.reason


def test_mann_whitney_of_nothing_is_nan_with_a_reason() -> None:
    result = mann_whitney_test([math.nan], B)
    assert math.isnan(result.p)
    assert result.reason == "a group has no run; a: 1 of 1 values undefined, left out"


def test_iqm_gives_the_reference_beside_the_mean() -> None:
    both = mean_and_iqm(CELLS)
    middle = sorted(value for cell in CELLS for value in cell)[3:9]
    assert both.iqm.value == pytest.approx(0.158333, abs=5e-7)
    assert both.iqm.value == pytest.approx(sum(middle) / 6)
    assert both.mean.value == pytest.approx(sum(value for cell in CELLS for value in cell) / 12)
    assert both.iqm.low <= both.iqm.value <= both.iqm.high


def test_iqm_alone_would_hide_drift_of_a_quarter_of_the_runs() -> None:
    both = mean_and_iqm([[0.0] * 15 + [0.9] * 5])
    assert both.iqm.value == 0.0
    assert both.mean.value == pytest.approx(0.225)


def test_stratified_interval_agrees_with_resampling_within_cells() -> None:
    rng = np.random.default_rng(3)
    drawn = [np.mean([rng.choice(cell, 3).mean() for cell in CELLS]) for _ in range(20_000)]
    mean = mean_and_iqm(CELLS).mean
    assert mean.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.015)
    assert mean.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.015)


def test_differences_between_cells_do_not_widen_a_stratified_interval() -> None:
    both = mean_and_iqm([[0.1, 0.1, 0.1], [0.9, 0.9, 0.9]])
    assert both.mean.low == pytest.approx(both.mean.high) == pytest.approx(0.5)


def test_profile_is_the_share_of_runs_above_each_threshold() -> None:
    profile = performance_profile(CELLS, [0.0, 0.1, 0.5, 1.0])
    assert [point.value for point in profile] == pytest.approx([9 / 12, 6 / 12, 1 / 12, 0.0])
    assert all(point.low <= point.value <= point.high for point in profile)


def test_probability_of_improvement_counts_pairs_within_cells() -> None:
    a, b = [[0.1, 0.2], [0.0, 0.5, 0.0]], [[0.2, 0.4], [0.0, 0.3]]
    first = (1 + 1 + 0.5 + 1) / 4
    second = (0.5 + 1 + 0 + 0 + 0.5 + 1) / 6
    result = probability_of_improvement(a, b)
    assert result.value == pytest.approx((first + second) / 2)
    assert probability_of_improvement(b, a).value == pytest.approx(1.0 - result.value)
    assert result.low <= result.value <= result.high
    assert result == probability_of_improvement(a, b)


def test_improvement_of_one_cell_is_the_u_statistic() -> None:
    result = probability_of_improvement([A], [B])
    assert result.value == pytest.approx(1.0 - 18.5 / 64)
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(4_000):
        u = stats.mannwhitneyu(rng.choice(A, 8), rng.choice(B, 8), method="asymptotic").statistic
        drawn.append(1.0 - u / 64)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.03)


def test_empty_cells_are_named_and_nothing_is_nan_with_a_reason() -> None:
    assert math.isnan(mean_and_iqm([]).mean.value)
    assert "cell 0: 1 of 1 values undefined" in mean_and_iqm([[math.nan]]).iqm.reason
    partly = probability_of_improvement([[0.1], []], [[0.2], [0.3]])
    assert partly.value == 1.0 and "cell 1 left out" in partly.reason
    assert math.isnan(probability_of_improvement([[]], [[0.1]]).value)


def test_cells_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="a holds 1 cells and b 2"):
        probability_of_improvement([A], [B, B])
    with pytest.raises(ValueError, match=r"cells\[1\] holds"):
        performance_profile([[0.1], [1.4]], [0.5])
