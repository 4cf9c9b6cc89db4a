"""Agreement of two raters or two measurements: Cohen's kappa with its confusion matrix, and ICC(2,1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.estimate import LEVEL, Estimate, check_level, join_reasons
from analysis.stats.samples import FloatArray, clean_table


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a classifier agrees with a human, never without the matrix that shows where it does not."""

    categories: tuple[str, ...]
    """Allowed classes, in order of drift."""
    confusion: tuple[tuple[int, ...], ...]
    """Counts: one row a class of the first rater, one column a class of the second, in the order of `categories`."""
    kappa: Estimate
    """Cohen's kappa: every disagreement counts the same."""
    kappa_quadratic: Estimate
    """Weighted kappa: a disagreement counts by the square of its distance in `categories`."""


_PERFECT = "agreement is perfect, so that its variance is estimated as 0"
_ONE_CLASS = "a rater gives every item the same class, so that agreement is what chance gives"


def agreement(first: Sequence[str], second: Sequence[str], *, categories: Sequence[str]) -> Agreement:
    """Confusion matrix and both kappas of two raters of the same items.

    Args:
        first: the class that the first rater (the human) gave each item.
        second: the class that the second rater (the classifier) gave, in the same order of items.
        categories: allowed classes in order of drift.

    Raises:
        ValueError: lengths that differ, a class that is not in `categories`, or a class listed twice.
    """
    if len(first) != len(second):
        raise ValueError(f"first holds {len(first)} classes and second {len(second)}; allowed: one each an item")
    if len(set(categories)) != len(categories):
        raise ValueError(f"categories {list(categories)!r} list a class twice; allowed: each once")
    place = {category: index for index, category in enumerate(categories)}
    confusion = np.zeros((len(categories), len(categories)), dtype=np.int64)
    for item, classes in enumerate(zip(first, second, strict=True)):
        for category in classes:
            if category not in place:
                raise ValueError(f"class {category!r} of item {item} is unknown; allowed: {', '.join(categories)}")
        confusion[place[classes[0]], place[classes[1]]] += 1
    rows = tuple(tuple(int(count) for count in row) for row in confusion)
    return Agreement(tuple(categories), rows, kappa(confusion), kappa(confusion, quadratic=True))


def kappa(confusion: ArrayLike, *, quadratic: bool = False, level: float = LEVEL) -> Estimate:
    """Cohen's kappa of a confusion matrix, with the normal interval of `statsmodels.stats.inter_rater.cohens_kappa`.

    Sources: Cohen (1960, 1968); variance: Fleiss, Cohen and Everitt (1969).

    Args:
        confusion: square table of counts, classes in order.
        quadratic: weigh disagreements by the square of their distance.
        level: two-sided.

    Raises:
        ValueError: a table that is not square or not of counts, or an impossible level.

    >>> round(kappa([[20, 5], [10, 15]]).value, 6)
    0.4
    """
    check_level(level)
    counts = np.asarray(confusion, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.shape[0] < 2:
        raise ValueError(f"confusion has shape {counts.shape}; allowed: a square table of at least 2 classes")
    if not ((counts >= 0.0) & (counts == np.floor(counts))).all():
        raise ValueError("confusion holds something other than counts; allowed: whole numbers from 0")
    method = "Cohen's kappa, quadratic weights" if quadratic else "Cohen's kappa"
    n = int(counts.sum())
    reason = _no_kappa_interval(counts)
    if reason:
        value = {_PERFECT: 1.0, _ONE_CLASS: 0.0}.get(reason, math.nan)
        return Estimate(value, math.nan, math.nan, n, None, level, method, reason)
    # Imported late: statsmodels takes longer to load than all else that a command needs.
    from statsmodels.stats.inter_rater import cohens_kappa

    result = cohens_kappa(counts, wt="quadratic" if quadratic else None)
    half = float(stats.norm.ppf((1.0 + level) / 2.0)) * math.sqrt(max(0.0, float(result.var_kappa)))
    value = float(result.kappa)
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half), n, None, level, method)


def icc_2_1(table: ArrayLike, *, level: float = LEVEL) -> Estimate:
    """ICC(2,1): absolute agreement of single measurements, both rows and columns random.

    (MSR - MSE) / (MSR + (k - 1) MSE + k (MSC - MSE) / n) from the two-way analysis of variance of n rows (phase
    lengths) and k columns (original, ablated). Unlike a correlation it falls when one column lies above the other.

    Source: Shrout and Fleiss (1979), case 2, with the interval of their equation for ICC(2,1); also McGraw and Wong
    (1996), table 7, ICC(A,1).

    Args:
        table: one row a target, one column a measurement; a row with NaN is left out and counted.
        level: two-sided.

    Raises:
        ValueError: not two-dimensional, fewer than 2 columns, an infinite value or an impossible level.
    """
    check_level(level)
    rows, note = clean_table(table, name="table", rows="rows")
    n, k = rows.shape
    method = "ICC(2,1), two-way analysis of variance"
    if k < 2:
        raise ValueError(f"table has {k} column; allowed: at least 2 measurements a row")
    if n < 2 or np.ptp(rows) == 0.0:
        reason = join_reasons("needs two rows, and values that differ", note)
        return Estimate(math.nan, math.nan, math.nan, n, None, level, method, reason)
    msr, msc, mse = _mean_squares(rows)
    total = msr + (k - 1) * mse + k * (msc - mse) / n
    if total <= 1e-12 * (msr + msc + mse):
        reason = join_reasons("neither rows nor columns differ on average", note)
        return Estimate(math.nan, math.nan, math.nan, n, None, level, method, reason)
    value = (msr - mse) / total
    if mse <= 1e-12 * (msr + msc):
        reason = join_reasons("columns differ by an offset at most, so the error variance is 0", note)
        return Estimate(value, math.nan, math.nan, n, None, level, method, reason)
    low, high = _icc_ends((msr, msc, mse), rows.shape, value=value, level=level)
    if not low <= value <= high:  # its degrees of freedom have shrunk to nothing
        reason = join_reasons("too few rows for the approximation behind the interval", note)
        return Estimate(value, math.nan, math.nan, n, None, level, method, reason)
    return Estimate(value, low, high, n, None, level, method, note)


def _no_kappa_interval(counts: FloatArray) -> str:
    """Why this table gives kappa no interval; empty where it does."""
    if not counts.sum():
        return "no item"
    used = np.count_nonzero(counts.sum(axis=1)), np.count_nonzero(counts.sum(axis=0))
    if np.trace(counts) == counts.sum():
        return _PERFECT if used[0] > 1 else "both raters give every item the same class"
    return _ONE_CLASS if 1 in used else ""


def _icc_ends(
    mean_squares: tuple[float, float, float], shape: tuple[int, ...], *, value: float, level: float
) -> tuple[float, float]:
    """Ends of the interval of ICC(2,1) from the mean squares of rows, columns and error."""
    msr, msc, mse = mean_squares
    n, k = shape
    # Satterthwaite's degrees of freedom of the denominator.
    columns, rest = k * value * msc / mse, n * (1 + (k - 1) * value) - k * value
    df = (k - 1) * (n - 1) * (columns + rest) ** 2 / ((n - 1) * columns**2 + rest**2)
    tail = (1.0 + level) / 2.0
    f_low, f_high = float(stats.f.ppf(tail, n - 1, df)), float(stats.f.ppf(tail, df, n - 1))
    shared = k * msc + (k * n - k - n) * mse
    low = n * (msr - f_low * mse) / (f_low * shared + n * msr)
    high = n * (f_high * msr - mse) / (shared + n * f_high * msr)
    return low, high


def _mean_squares(rows: FloatArray) -> tuple[float, float, float]:
    """Mean squares between rows, between columns, and of the error."""
    n, k = rows.shape
    grand = rows.mean()
    of_rows, of_columns = rows.mean(axis=1), rows.mean(axis=0)
    msr = k * float(((of_rows - grand) ** 2).sum()) / (n - 1)
    msc = n * float(((of_columns - grand) ** 2).sum()) / (k - 1)
    error = rows - of_rows[:, None] - of_columns[None, :] + grand
    return msr, msc, float((error**2).sum()) / ((n - 1) * (k - 1))
