"""Effect sizes against their definitions, other libraries, and the ranges that they must keep."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats import cliffs_delta, hodges_lehmann, hodges_lehmann_shift, rank_biserial
from analysis.stats.effects import _rank_sum_counts, _signed_rank_counts

A = [0, 0, 0.1, 0.25, 0.4, 0, 0.05, 0.6]
B = [0, 0.2, 0.35, 0.5, 0.45, 0.7, 0.15, 0.3]
D = [a - b for a, b in zip(A, B, strict=True)]

tenths = st.integers(-10, 10).map(lambda whole: whole / 10)


def test_cliffs_delta_gives_the_reference_by_counting_pairs_and_by_the_u_statistic() -> None:
    wins = sum((a > b) - (a < b) for a, b in product(A, B))
    assert cliffs_delta(A, B).value == wins / 64 == -0.421875
    u = stats.mannwhitneyu(A, B).statistic
    assert u == 18.5
    assert 2.0 * u / 64 - 1.0 == -0.421875


def test_cliffs_interval_follows_the_published_formula() -> None:
    # Written out with sums of squares around delta, as in Cliff (1996), equations 5.7 and 5.12.
    d = -0.421875
    rows = [sum((a > b) - (a < b) for b in B) / 8 for a in A]
    columns = [sum((a > b) - (a < b) for a in A) / 8 for b in B]
    cells = [(a > b) - (a < b) for a, b in product(A, B)]
    variance = 64 * sum((r - d) ** 2 for r in rows) + 64 * sum((c - d) ** 2 for c in columns)
    variance = (variance - sum((w - d) ** 2 for w in cells)) / (8 * 8 * 7 * 7)
    assert variance > (61 / 64 - d**2) / 16  # 61 of the 64 pairs do not tie: the floor is below
    z = 2.144787  # .975 quantile of t with 14 degrees, from a table
    half = z * math.sqrt(variance) * math.sqrt((1 - d**2) ** 2 + z**2 * variance)
    scale = 1 - d**2 + z**2 * variance
    interval = cliffs_delta(A, B)
    assert interval.low == pytest.approx((d - d**3 - half) / scale, abs=1e-6)
    assert interval.high == pytest.approx((d - d**3 + half) / scale, abs=1e-6)


def test_groups_apart_get_a_near_end_from_the_largest_variance() -> None:
    interval = cliffs_delta([0.5, 0.6, 0.7, 0.8], [0.0, 0.1, 0.2, 0.3, 0.4])
    near = interval.low
    # At the near end the distance to 1 is t standard errors, with variance (1 - near^2) / 4.
    assert 1.0 - near == pytest.approx(2.364624 * math.sqrt((1.0 - near**2) / 4.0), abs=1e-6)  # t, 7 degrees
    assert interval.high == 1.0
    mirrored = cliffs_delta([0.0, 0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8])
    assert (mirrored.low, mirrored.high) == (-1.0, -near)


def test_hodges_lehmann_shift_gives_the_reference() -> None:
    shift = hodges_lehmann_shift(B, A)
    assert shift.value == pytest.approx(0.175)
    assert shift.value == pytest.approx(float(np.median([b - a for a, b in product(A, B)])))


def test_shift_interval_is_what_the_rank_sum_test_does_not_reject() -> None:
    a, b = [0.11, 0.52, 0.31, 0.74, 0.63, 0.95], [0.07, 0.22, 0.48, 0.36, 0.18]
    shift = hodges_lehmann_shift(a, b)
    for moved, kept in ((shift.low + 1e-6, True), (shift.low - 1e-6, False), (shift.high + 1e-6, False)):
        p = stats.mannwhitneyu(np.array(a) - moved, b, method="exact").pvalue
        assert (p > 0.05) == kept


def test_one_sample_interval_is_what_the_signed_rank_test_does_not_reject() -> None:
    d = [0.31, 0.12, -0.053, 0.407, 0.22, 0.08, -0.021, 0.15, 0.256]
    estimate = hodges_lehmann(d)
    walsh = [(d[i] + d[j]) / 2 for i in range(9) for j in range(i, 9)]
    assert estimate.value == pytest.approx(float(np.median(walsh)))
    for moved, kept in ((estimate.low + 1e-6, True), (estimate.low - 1e-6, False), (estimate.high + 1e-6, False)):
        p = stats.wilcoxon(np.array(d) - moved, method="exact").pvalue
        assert (p > 0.05) == kept


def test_null_distributions_agree_with_enumeration() -> None:
    sums = [sum(chosen) for k in range(6) for chosen in combinations(range(1, 6), k)]
    np.testing.assert_allclose(_signed_rank_counts(5), np.bincount(sums, minlength=16) / 32)
    u = [sum(chosen) - 6 for chosen in combinations(range(1, 8), 3)]
    np.testing.assert_array_equal(_rank_sum_counts(3, 4), np.bincount(u, minlength=13))
    assert int(_rank_sum_counts(30, 30).sum()) == math.comb(60, 30)


def test_large_samples_take_the_normal_approximation() -> None:
    rng = np.random.default_rng(1)
    d = rng.normal(0.1, 0.2, 150)
    estimate = hodges_lehmann(d)
    # Asymptotic spread of the estimate for normal values: sd sqrt(pi / 3 / n).
    half = 1.96 * d.std() * math.sqrt(math.pi / 3.0 / 150)
    assert (estimate.low, estimate.high) == pytest.approx((estimate.value - half, estimate.value + half), abs=0.006)
    shift = hodges_lehmann_shift(d[:75], d[75:])
    half *= 2.0
    assert (shift.low, shift.high) == pytest.approx((shift.value - half, shift.value + half), abs=0.012)


def test_rank_biserial_gives_the_reference_by_midranks_and_by_wilcoxons_statistic() -> None:
    moved = [d for d in D if d != 0.0]
    ranks = stats.rankdata(np.round(np.abs(moved), 12))
    plus = sum(rank for rank, d in zip(ranks, moved, strict=True) if d > 0)
    minus = sum(rank for rank, d in zip(ranks, moved, strict=True) if d < 0)
    assert rank_biserial(D).value == pytest.approx((plus - minus) / (plus + minus))
    assert rank_biserial(D).value == pytest.approx(-0.571429, abs=5e-7)
    statistic = stats.wilcoxon(moved, alternative="greater", method="asymptotic").statistic
    assert rank_biserial(D).value == pytest.approx(2.0 * statistic / (len(moved) * (len(moved) + 1) / 2) - 1.0)


def test_rank_biserial_interval_uses_the_jackknife_of_the_whole_statistic() -> None:
    d = [0.31, 0.12, -0.053, 0.407, 0.22, -0.28, -0.021, 0.15]

    def r(values: list[float]) -> float:
        ranks = stats.rankdata(np.abs(values))
        return float((ranks * np.sign(values)).sum() / ranks.sum())

    without = [r(d[:i] + d[i + 1 :]) for i in range(8)]
    variance = 7 / 8 * sum((value - np.mean(without)) ** 2 for value in without)
    value, z = r(d), 2.364624  # .975 quantile of t with 7 degrees, from a table
    assert variance > (1 - value**2) / 8
    half = z * math.sqrt(variance * ((1 - value**2) ** 2 + z**2 * variance))
    scale = 1 - value**2 + z**2 * variance
    interval = rank_biserial(d)
    assert interval.value == pytest.approx(value)
    assert interval.low == pytest.approx((value - value**3 - half) / scale, abs=1e-6)
    assert interval.high == pytest.approx((value - value**3 + half) / scale, abs=1e-6)


def test_near_one_the_variance_has_a_floor() -> None:
    # One pair of 400 loses, so the unbiased variance is tiny; the floor is (1 - delta^2) / 40.
    a, b = [1.0 + i / 100 for i in range(20)], [i / 100 for i in range(19)] + [1.005]
    delta = 1.0 - 2.0 / 400
    interval, t = cliffs_delta(a, b), 2.024394  # 38 degrees
    assert interval.value == pytest.approx(delta)
    variance = (1.0 - delta**2) / 40
    half = t * math.sqrt(variance * ((1 - delta**2) ** 2 + t**2 * variance))
    assert interval.low == pytest.approx((delta - delta**3 - half) / (1 - delta**2 + t**2 * variance), abs=1e-6)
    few = rank_biserial([-0.01] + [0.1 + i / 100 for i in range(19)])
    r, t = 1.0 - 2.0 / 210, 2.093024  # 19 degrees
    variance = (1.0 - r**2) / 20
    half = t * math.sqrt(variance * ((1 - r**2) ** 2 + t**2 * variance))
    assert few.value == pytest.approx(r)
    assert few.low == pytest.approx((r - r**3 - half) / (1 - r**2 + t**2 * variance), abs=1e-6)


@given(st.lists(tenths, min_size=2, max_size=12), st.lists(tenths, min_size=2, max_size=12))
@settings(max_examples=60)
def test_delta_stays_in_range_and_turns_with_the_groups(a: list[float], b: list[float]) -> None:
    delta, turned = cliffs_delta(a, b), cliffs_delta(b, a)
    assert delta.value == pytest.approx(-turned.value)
    if not delta.has_interval:
        assert "ties with every run" in delta.reason
        return
    assert -1.0 <= delta.low <= delta.value <= delta.high <= 1.0
    assert delta.low == pytest.approx(-turned.high)


@given(st.lists(tenths, min_size=3, max_size=14))
@settings(max_examples=60)
def test_rank_biserial_stays_in_range_and_turns_with_the_sign(d: list[float]) -> None:
    assume(sum(value != 0.0 for value in d) >= 2)
    effect, turned = rank_biserial(d), rank_biserial([-value for value in d])
    assert -1.0 <= effect.low <= effect.value <= effect.high <= 1.0
    assert effect.low == pytest.approx(-turned.high)


@given(st.lists(tenths, min_size=6, max_size=12), st.floats(-1, 1))
@settings(max_examples=40)
def test_hodges_lehmann_moves_with_the_data(d: list[float], shift: float) -> None:
    before, after = hodges_lehmann(d), hodges_lehmann([value + shift for value in d])
    assert before.low <= before.value <= before.high
    for end in ("low", "value", "high"):
        assert getattr(after, end) == pytest.approx(getattr(before, end) + shift)


def test_too_few_values_have_an_effect_without_an_interval() -> None:
    small = hodges_lehmann([0.1, 0.2, 0.3])
    assert small.value == pytest.approx(0.2)
    assert not small.has_interval and "3 values are too few" in small.reason
    assert "4 values are too few" in hodges_lehmann_shift([0.1, 0.2], [0.3, 0.4]).reason
    assert "one run in a group" in cliffs_delta([0.1], [0.3, 0.4]).reason
    assert "one difference other than 0" in rank_biserial([0.0, 0.3]).reason


def test_nothing_to_compare_is_nan_with_a_reason() -> None:
    for estimate in (
        hodges_lehmann([math.nan]),
        hodges_lehmann_shift([], B),
        cliffs_delta(A, [math.nan]),
        rank_biserial([0.0, 0.0]),
    ):
        assert math.isnan(estimate.value)
        assert estimate.reason
    assert "every run of one group ties" in cliffs_delta([0.0, 0.0], [0.0, 0.0]).reason
    assert "b: 1 of 9 values undefined" in cliffs_delta(A, [*B, math.nan]).reason
