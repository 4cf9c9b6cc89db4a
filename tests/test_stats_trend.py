"""Page's test against scipy and brute force, with and without ties, and slopes against least squares."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats import ONE_TRAJECTORY, block_table, page_test, slope_per_doubling

UNTIED = [
    [0, 0.05, 0.10, 0.30, 0.40],
    [0.02, 0, 0.20, 0.25, 0.60],
    [0, 0.10, 0.05, 0.50, 0.45],
    [0.10, 0.03, 0.15, 0.12, 0.70],
]
TIED = [[0, 0, 0, 0.1, 0.4], [0, 0, 0.2, 0, 0.6], [0, 0, 0, 0, 0], [0, 0.05, 0, 0.3, 0.3]]


def brute_force(table: list[list[float]], alternative: str) -> tuple[float, float]:
    """L and p by listing every combination of distinct orders of every block."""
    ranks = [tuple(stats.rankdata(row)) for row in table]
    blocks = []
    for row in ranks:
        sums = [sum((j + 1) * rank for j, rank in enumerate(order)) for order in set(permutations(row))]
        blocks.append(sums)
    observed = sum((j + 1) * rank for row in ranks for j, rank in enumerate(row))
    totals = np.array([sum(combination) for combination in product(*blocks)])
    centre = len(table) * len(table[0]) * (len(table[0]) + 1) ** 2 / 4
    if alternative == "two-sided":
        return observed, float((abs(totals - centre) >= abs(observed - centre) - 1e-9).mean())
    return observed, float((totals >= observed if alternative == "greater" else totals <= observed).mean())


def test_without_ties_page_gives_the_reference_and_agrees_with_scipy() -> None:
    result = page_test(UNTIED)
    scipys = stats.page_trend_test(UNTIED, method="exact")
    assert result.statistic == 215.0 == scipys.statistic
    assert result.p == pytest.approx(2.25646e-5, abs=5e-11)
    assert result.p == pytest.approx(scipys.pvalue)


def test_with_ties_page_gives_the_reference_by_every_distinct_order() -> None:
    result = page_test(TIED)
    statistic, p = brute_force(TIED, "greater")
    assert result.statistic == 201.5 == statistic
    assert result.p == pytest.approx(0.0018333, abs=5e-8)
    assert result.p == pytest.approx(p)
    assert result.reason == "1 of 4 blocks have one value at every level"


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=3),
    st.sampled_from(["greater", "less", "two-sided"]),
)
@settings(max_examples=50)
def test_page_counts_what_brute_force_counts(table: list[list[int]], alternative: str) -> None:
    rows = [[value / 10 for value in row] for row in table]
    statistic, p = brute_force(rows, alternative)
    result = page_test(rows, alternative=alternative)  # type: ignore[arg-type]
    assert result.statistic == statistic
    assert result.p == pytest.approx(p)


def test_only_the_order_within_a_block_matters() -> None:
    moved = [[10 * value + row for value in values] for row, values in enumerate(TIED)]
    assert page_test(moved) == page_test(TIED)


def test_reversing_the_levels_turns_the_alternative() -> None:
    reversed_ = [row[::-1] for row in TIED]
    assert page_test(reversed_, alternative="less").p == pytest.approx(page_test(TIED).p)


def test_rounding_breaks_no_tie() -> None:
    assert page_test([[0.1 + 0.2, 0.3, 0.4]]).statistic == page_test([[0.3, 0.3, 0.4]]).statistic


def test_blocks_with_an_undefined_level_are_left_out_and_counted() -> None:
    result = page_test([*UNTIED, [0.1, math.nan, 0.2, 0.3, 0.4]])
    assert result.p == page_test(UNTIED).p
    assert (result.n, result.reason) == (4, "1 of 5 blocks undefined, left out")
    empty = page_test([[math.nan, 0.1]])
    assert math.isnan(empty.p) and empty.n == 0 and "no block with every level" in empty.reason


def test_a_table_that_is_no_design_is_refused() -> None:
    with pytest.raises(ValueError, match="table has 1 levels; allowed: 2 to 8"):
        page_test([[0.1], [0.2]])
    with pytest.raises(ValueError, match=r"table has shape \(3,\)"):
        page_test([0.1, 0.2, 0.3])


def test_block_table_averages_runs_of_a_trajectory() -> None:
    table = block_table([0.1, 0.3, 0.5, math.nan, 0.7], [2, 2, 4, 4, 2], blocks=["p1", "p1", "p1", "p1", "p2"])
    assert list(table.columns) == [2.0, 4.0]
    assert table.loc["p1"].tolist() == pytest.approx([0.2, 0.5])
    assert table.loc["p2", 2.0] == 0.7
    assert math.isnan(table.loc["p2", 4.0])
    with pytest.raises(ValueError, match="differ in length"):
        block_table([0.1], [2, 4], blocks=["p1"])


def test_slope_is_least_squares_on_the_doublings() -> None:
    values = [value for row in UNTIED for value in row]
    lengths, blocks = [2, 4, 8, 16, 32] * 4, [block for block in range(4) for _ in range(5)]
    slope = slope_per_doubling(values, lengths, clusters=blocks)
    fit = stats.linregress(np.log2(lengths), values)
    assert slope.value == pytest.approx(fit.slope)
    assert slope.value == pytest.approx(0.12625)
    assert (slope.n, slope.n_clusters) == (20, 4)
    # Balanced blocks: resampled slopes are means of the slopes of the blocks.
    slopes = np.array([stats.linregress(range(1, 6), row).slope for row in UNTIED])
    drawn = [slopes[list(chosen)].mean() for chosen in product(range(4), repeat=4)]
    assert slope.low == pytest.approx(np.quantile(drawn, 0.025, method="inverted_cdf"), abs=0.002)
    assert slope.high == pytest.approx(np.quantile(drawn, 0.975, method="inverted_cdf"), abs=0.002)


def test_unbalanced_slopes_are_least_squares_too() -> None:
    values, lengths, blocks = [0.1, 0.5, 0.2, math.nan, 0.9], [2, 16, 4, 64, 64], ["a", "a", "b", "b", "c"]
    slope = slope_per_doubling(values, lengths, clusters=blocks)
    assert slope.value == pytest.approx(stats.linregress([1, 4, 2, 6], [0.1, 0.5, 0.2, 0.9]).slope)
    assert "1 of 5 values undefined" in slope.reason
    assert "resamples hold one length alone" in slope.reason


def test_one_trajectory_gives_a_slope_without_an_interval() -> None:
    slope = slope_per_doubling([0.1, 0.2, 0.3], [2, 4, 8], clusters=["p1"] * 3)
    assert slope.value == pytest.approx(0.1)
    assert not slope.has_interval
    assert slope.reason == ONE_TRAJECTORY


def test_one_length_gives_no_slope() -> None:
    slope = slope_per_doubling([0.1, 0.2], [8, 8], clusters=["a", "b"])
    assert math.isnan(slope.value)
    assert "two lengths" in slope.reason


def test_lengths_that_cannot_be_doubled_are_refused() -> None:
    with pytest.raises(ValueError, match=r"lengths hold 0\.0; allowed: quarters above 0"):
        slope_per_doubling([0.1, 0.2], [0, 2], clusters=["a", "b"])
    with pytest.raises(ValueError, match="values holds 2 runs and lengths 1"):
        slope_per_doubling([0.1, 0.2], [2], clusters=["a", "b"])
