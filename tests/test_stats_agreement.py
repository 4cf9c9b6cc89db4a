"""Kappa and ICC(2,1) against their formulas, statsmodels' analysis of variance, and the reference values."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.stats import agreement, icc_2_1, kappa

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
O = [0.02, 0.05, 0.11, 0.24, 0.37, 0.41]  # noqa: E741
A = [0, 0.08, 0.09, 0.31, 0.30, 0.52]
THREE = [[18, 3, 1], [2, 9, 4], [0, 2, 11]]


def kappa_by_hand(table: list[list[int]], power: int) -> float:
    """1 - observed over expected disagreement, weighted by distance to a power (0: any disagreement counts 1)."""
    counts = np.array(table, dtype=float)
    n, k = counts.sum(), len(table)
    weights = np.array([[float(i != j) if power == 0 else abs(i - j) ** power for j in range(k)] for i in range(k)])
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    return float(1.0 - (weights * counts).sum() / (weights * expected).sum())


def test_kappa_gives_the_references_and_agrees_with_the_definition() -> None:
    assert kappa([[20, 5], [10, 15]]).value == pytest.approx(0.4)
    assert kappa_by_hand([[20, 5], [10, 15]], 0) == pytest.approx(0.4)
    assert kappa(THREE).value == pytest.approx(0.634592, abs=5e-7)
    assert kappa_by_hand(THREE, 0) == pytest.approx(0.634592, abs=5e-7)
    assert kappa(THREE, quadratic=True).value == pytest.approx(0.784359, abs=5e-7)
    assert kappa_by_hand(THREE, 2) == pytest.approx(0.784359, abs=5e-7)


def test_kappa_interval_agrees_with_resampled_items() -> None:
    rng = np.random.default_rng(9)
    shares = np.array(THREE).ravel() / 50
    drawn = [kappa_by_hand(counts.reshape(3, 3).tolist(), 0) for counts in rng.multinomial(50, shares, 4_000)]
    interval = kappa(THREE)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * np.std(drawn), rel=0.08)
    assert interval.n == 50


def test_agreement_keeps_the_confusion_matrix_in_the_order_of_the_classes() -> None:
    human = ["none", "none", "partial", "full", "full", "partial"]
    machine = ["none", "partial", "partial", "full", "partial", "partial"]
    result = agreement(human, machine, categories=["none", "partial", "full"])
    assert result.confusion == ((1, 1, 0), (0, 2, 0), (0, 1, 1))
    assert result.kappa.value == pytest.approx(kappa_by_hand([[1, 1, 0], [0, 2, 0], [0, 1, 1]], 0))
    assert result.kappa_quadratic.value == pytest.approx(kappa_by_hand([[1, 1, 0], [0, 2, 0], [0, 1, 1]], 2))


def test_degenerate_tables_have_a_reason_instead_of_an_interval() -> None:
    perfect = kappa([[5, 0], [0, 7]])
    assert perfect.value == 1.0 and not perfect.has_interval and "perfect" in perfect.reason
    one_class = kappa([[5, 0], [7, 0]])
    assert one_class.value == 0.0 and not one_class.has_interval and "same class" in one_class.reason
    assert math.isnan(kappa([[5, 0], [0, 0]]).value)
    assert math.isnan(agreement([], [], categories=["a", "b"]).kappa.value)


def test_unknown_classes_and_tables_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="class 'maybe' of item 1 is unknown; allowed: none, full"):
        agreement(["none", "maybe"], ["none", "full"], categories=["none", "full"])
    with pytest.raises(ValueError, match="first holds 1 classes and second 2"):
        agreement(["none"], ["none", "full"], categories=["none", "full"])
    with pytest.raises(ValueError, match="list a class twice"):
        agreement([], [], categories=["none", "none"])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        kappa([[1, 2]])
    with pytest.raises(ValueError, match="other than counts"):
        kappa([[1, 0.5], [0, 2]])


def icc_by_statsmodels(table: list[list[float]]) -> tuple[float, float, float]:
    """ICC(A,1) and its interval as McGraw and Wong (1996) write them, mean squares from a fitted linear model."""
    n, k = len(table), len(table[0])
    long = pd.DataFrame(
        [{"row": i, "column": j, "value": value} for i, row in enumerate(table) for j, value in enumerate(row)]
    )
    anova = anova_lm(ols("value ~ C(row) + C(column)", long).fit())
    msr, msc, mse = (anova["sum_sq"] / anova["df"]).to_list()
    icc = (msr - mse) / (msr + (k - 1) * mse + k / n * (msc - mse))
    a, b = k * icc / (n * (1 - icc)), 1 + k * icc * (n - 1) / (n * (1 - icc))
    df = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    f_low, f_high = stats.f.ppf(0.975, n - 1, df), stats.f.ppf(0.975, df, n - 1)
    shared = k * msc + (k * n - k - n) * mse
    low = n * (msr - f_low * mse) / (f_low * shared + n * msr)
    return icc, low, n * (f_high * msr - mse) / (shared + n * f_high * msr)


def test_icc_gives_the_published_example() -> None:
    icc = icc_2_1(SHROUT_FLEISS)
    assert icc.value == pytest.approx(0.289764, abs=5e-7)
    assert (icc.low, icc.high) == pytest.approx((0.018787, 0.761084), abs=5e-7)
    assert (icc.value, icc.low, icc.high) == pytest.approx(icc_by_statsmodels(SHROUT_FLEISS))


def test_icc_of_ablation_curves_gives_the_reference() -> None:
    table = [[o, a] for o, a in zip(O, A, strict=True)]
    icc = icc_2_1(table)
    assert icc.value == pytest.approx(0.939425, abs=5e-7)
    assert (icc.low, icc.high) == pytest.approx((0.6628, 0.9912), abs=5e-5)
    assert (icc.value, icc.low, icc.high) == pytest.approx(icc_by_statsmodels(table))


def test_an_offset_lowers_the_icc() -> None:
    table = np.column_stack([O, A])
    assert icc_2_1(table + [0.0, 0.3]).value < icc_2_1(table).value - 0.3


def test_icc_without_variance_is_nan_with_a_reason() -> None:
    assert math.isnan(icc_2_1([[0.1, 0.1], [0.1, 0.1]]).value)
    assert math.isnan(icc_2_1([[0.1, 0.2]]).value)
    crossed = icc_2_1([[1, 0], [0, 1]])
    assert math.isnan(crossed.value) and "neither rows nor columns" in crossed.reason
    same = icc_2_1([[0.1, 0.1], [0.2, 0.2], [0.4, 0.4]])
    assert same.value == pytest.approx(1.0) and not same.has_interval and "error variance is 0" in same.reason


def test_an_interval_that_misses_its_own_value_is_withheld() -> None:
    # Two rows of nearly equal means: Satterthwaite's degrees of freedom vanish and both ends collapse below the value.
    table = [[0.2, 0.6, 0.8], [1.0, 0.2, 0.5]]
    icc = icc_2_1(table)
    value, low, high = icc_by_statsmodels(table)
    assert icc.value == pytest.approx(value)
    assert not low <= value <= high
    assert not icc.has_interval and "too few rows" in icc.reason


def test_incomplete_rows_are_left_out_and_counted() -> None:
    icc = icc_2_1([*SHROUT_FLEISS, [1, math.nan, 2, 3]])
    assert (icc.n, icc.reason) == (6, "1 of 7 rows undefined, left out")
    with pytest.raises(ValueError, match="table has 1 column"):
        icc_2_1([[0.1], [0.2]])
