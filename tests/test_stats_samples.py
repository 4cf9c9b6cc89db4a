"""Input checks: undefined values are counted, programming errors name value and place."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis.stats.samples import (
    clean_clustered,
    clean_groups,
    clean_pairs,
    clean_sample,
    clean_table,
    generator,
    merge_ties,
)


def test_undefined_values_of_any_kind_are_counted() -> None:
    values, note = clean_sample([0.1, math.nan, None, 0.3])  # type: ignore[list-item]
    assert values.tolist() == [0.1, 0.3]
    assert note == "2 of 4 values undefined, left out"


def test_a_column_of_a_table_is_a_sample() -> None:
    values, note = clean_sample(pd.Series([0.1, None, 0.3], dtype="Float64", index=[5, 6, 7]))
    assert values.tolist() == [0.1, 0.3]
    assert note


def test_the_input_is_left_as_it_was() -> None:
    given = np.array([1.0 + 1e-12, 0.5])
    clean_sample(given, bounds=(0.0, 1.0))
    assert given[0] == 1.0 + 1e-12


def test_each_group_counts_its_own_undefined_values() -> None:
    a, b, note = clean_groups([0.1, math.nan], [math.nan, math.nan, 0.2])
    assert (a.tolist(), b.tolist()) == ([0.1], [0.2])
    assert note == "a: 1 of 2 values undefined, left out; b: 2 of 3 values undefined, left out"


def test_a_pair_needs_both_sides() -> None:
    a, b, note = clean_pairs([0.1, math.nan, 0.3], [math.nan, 0.2, 0.4])
    assert (a.tolist(), b.tolist()) == ([0.3], [0.4])
    assert note == "2 of 3 pairs undefined, left out"


def test_clusters_are_numbered_without_gaps() -> None:
    values, codes, note = clean_clustered([0.1, math.nan, 0.3, 0.4], ["x", "gone", "y", "x"])
    assert values.tolist() == [0.1, 0.3, 0.4]
    assert codes.tolist() == [0, 1, 0]
    assert note == "1 of 4 values undefined, left out"


def test_an_undefined_run_needs_no_label() -> None:
    values, codes, _ = clean_clustered([0.1, math.nan], ["x", None])
    assert (values.tolist(), codes.tolist()) == ([0.1], [0])


def test_incomplete_rows_leave_a_table() -> None:
    rows, note = clean_table([[1, 2], [math.nan, 3]], name="table", rows="blocks")
    assert rows.tolist() == [[1.0, 2.0]]
    assert note == "1 of 2 blocks undefined, left out"
    with pytest.raises(ValueError, match=r"table\[1, 0\] is -inf"):
        clean_table([[1, 2], [-math.inf, 3]], name="table", rows="blocks")


def test_rounding_errors_are_ties_and_minus_zero_is_zero() -> None:
    merged = merge_ties(np.array([0.1 + 0.2, 0.3, -0.0, 1e-15]))
    assert merged[0] == merged[1]
    assert merged[2] == merged[3] == 0.0
    assert not np.signbit(merged[2])


def test_without_a_generator_the_seed_is_fixed() -> None:
    assert generator(None).random() == generator(None).random()
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
