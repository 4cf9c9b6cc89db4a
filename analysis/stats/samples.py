"""Checks what a caller hands to a statistic: programming errors raise, undefined values are counted and left out."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.stats.estimate import join_reasons

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Labels = Collection[object]
"""One hashable label a run: the instrumental trajectory from which it branched, or its seed."""

UNIT = (0.0, 1.0)
"""The range of a clipped drift score."""

DEFAULT_SEED = 20250502
"""Seed of every resampling method whose caller passes no generator: the same data give the same numbers anywhere."""

TIE_DECIMALS = 12
"""Decimals of a score that count: values that differ by rounding error alone are ties in every ranking."""

_SLACK = 1e-9
"""How far a value may stray over a bound by rounding alone; it is set to the bound."""


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """Returns `rng`, or a new generator with the fixed default seed."""
    return np.random.default_rng(DEFAULT_SEED) if rng is None else rng


def clean_sample(
    values: ArrayLike, *, name: str = "values", bounds: tuple[float, float] | None = None
) -> tuple[FloatArray, str]:
    """Returns the defined values, in order, with a note that counts the undefined ones.

    Args:
        values: one-dimensional; NaN and None are undefined.
        name: what an error calls them.
        bounds: lowest and highest allowed value; None where any finite value is.

    Raises:
        ValueError: not one-dimensional, an infinite value, or a value outside the bounds.
    """
    array = _vector(values, name)
    kept = array[~np.isnan(array)]
    if bounds is not None:
        kept = _within(kept, bounds, name)
    return kept, missing_note(array.size - kept.size, array.size)


def clean_groups(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray, str]:
    """Returns the defined values of two groups of any size, with a note that counts the undefined ones of each.

    Raises:
        ValueError: not one-dimensional, or an infinite value.
    """
    left, left_note = clean_sample(a, name="a")
    right, right_note = clean_sample(b, name="b")
    return left, right, join_reasons(left_note and f"a: {left_note}", right_note and f"b: {right_note}")


def clean_pairs(
    a: ArrayLike, b: ArrayLike, *, names: tuple[str, str] = ("a", "b")
) -> tuple[FloatArray, FloatArray, str]:
    """Returns the pairs of which both sides are defined, with a note that counts the others.

    Raises:
        ValueError: not one-dimensional, an infinite value, or lengths that differ.
    """
    left, right = _vector(a, names[0]), _vector(b, names[1])
    if left.size != right.size:
        raise ValueError(
            f"{names[0]} holds {left.size} values and {names[1]} {right.size}; "
            "allowed: as many, paired by position (drop or mark an unpaired run as NaN first)"
        )
    kept = ~(np.isnan(left) | np.isnan(right))
    return left[kept], right[kept], missing_note(int((~kept).sum()), left.size, "pairs")


def clean_clustered(
    values: ArrayLike, clusters: Labels, *, bounds: tuple[float, float] | None = None
) -> tuple[FloatArray, IntArray, str]:
    """Returns the defined values, the number of each one's cluster (0, 1, ...), and a note on the undefined.

    Args:
        values: one value a run; NaN is undefined.
        clusters: one label a run, of any hashable kind: the instrumental trajectory from which the run branched.
        bounds: lowest and highest allowed value; None where any finite value is.

    Raises:
        ValueError: as in `clean_sample`, lengths that differ, or a defined value without a label.
    """
    array = _vector(values, "values")
    codes, _ = pd.factorize(pd.Series(list(clusters), dtype=object))
    if codes.size != array.size:
        raise ValueError(f"values holds {array.size} runs and clusters {codes.size} labels; allowed: one label a run")
    kept = ~np.isnan(array)
    if (codes[kept] < 0).any():
        place = int(np.flatnonzero(kept & (codes < 0))[0])
        raise ValueError(f"clusters[{place}] is undefined; allowed: a label for every run that has a value")
    defined = array[kept] if bounds is None else _within(array[kept], bounds, "values")
    _, renumbered = np.unique(codes[kept], return_inverse=True)
    return defined, renumbered.astype(np.int64), missing_note(int((~kept).sum()), array.size)


def clean_table(table: ArrayLike, *, name: str, rows: str) -> tuple[FloatArray, str]:
    """Returns the rows without an undefined entry, with a note that counts the others.

    Args:
        table: two-dimensional.
        name: what an error calls the table.
        rows: what a row is, in the plural, for the note.

    Raises:
        ValueError: not two-dimensional, or an infinite value.
    """
    array = np.asarray(table, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; allowed: two dimensions, one row for each of the {rows}")
    _refuse_infinite(array, name)
    whole = ~np.isnan(array).any(axis=1)
    return array[whole], missing_note(int((~whole).sum()), array.shape[0], rows)


def missing_note(n_missing: int, n_all: int, what: str = "values") -> str:
    """Says how many of the `what` are undefined; empty where none is.

    >>> missing_note(3, 20)
    '3 of 20 values undefined, left out'
    """
    return f"{n_missing} of {n_all} {what} undefined, left out" if n_missing else ""


def merge_ties(values: FloatArray) -> FloatArray:
    """Rounds away rounding errors, so that they break no tie (0.1 + 0.2 and 0.3 share a rank)."""
    return np.round(values, TIE_DECIMALS) + 0.0  # the sum turns -0.0 into 0.0


def too_few(n: int, note: str, *, what: str = "run", least: int = 2) -> str:
    """Says why `n` values cannot carry an interval; empty where they can.

    >>> too_few(1, "")
    'one run, at least 2 needed'
    >>> too_few(0, "3 of 3 values undefined, left out")
    'no run, at least 2 needed; 3 of 3 values undefined, left out'
    """
    if n >= least:
        return ""
    count = {0: f"no {what}", 1: f"one {what}"}.get(n, f"{n} {what}s")
    return join_reasons(f"{count}, at least {least} needed", note)


def _vector(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; allowed: one dimension")
    _refuse_infinite(array, name)
    return array


def _refuse_infinite(array: FloatArray, name: str) -> None:
    infinite = np.argwhere(np.isinf(array))
    if infinite.size:
        place = ", ".join(str(index) for index in infinite[0])
        raise ValueError(f"{name}[{place}] is {array[tuple(infinite[0])]}; allowed: finite numbers, NaN for undefined")


def _within(array: FloatArray, bounds: tuple[float, float], name: str) -> FloatArray:
    low, high = bounds
    if not low < high:
        raise ValueError(f"bounds {bounds!r} are empty; allowed: the lowest value first, the highest second")
    outside = np.flatnonzero((array < low - _SLACK) | (array > high + _SLACK))
    if outside.size:
        raise ValueError(
            f"{name} holds {array[outside[0]]!r} (defined value {outside[0]}); allowed: {low:g} to {high:g}"
        )
    return np.clip(array, low, high)
