"""Comparisons over phase lengths: Page's test on the reference table, and ablations by swapped or permuted labels."""

import math

import numpy as np
import pytest

from analysis.report.cell_runs import CellRuns
from analysis.report.over_lengths import ablation_of, trend_of
from analysis.stats import icc_2_1, pearson_test
from tests.report_builders import cells_from, make_rows

ROWS = [
    [0, 0.05, 0.10, 0.30, 0.40],
    [0.02, 0, 0.20, 0.25, 0.60],
    [0, 0.10, 0.05, 0.50, 0.45],
    [0.10, 0.03, 0.15, 0.12, 0.70],
]
LENGTHS = (2, 4, 8, 16, 32)


def length_cells(table: list[list[float]], *, clusters: object = None, **columns: object) -> dict[int, CellRuns]:
    """Cells of one model, a column of the table each: d of its runs, and the share kept."""
    made = cells_from(
        *(
            make_rows(
                list(column),
                clusters=clusters,
                n_instrumental=length,
                retained_frac=list(column),
                **columns,  # type: ignore[arg-type]
            )
            for length, column in zip(LENGTHS, np.array(table).T.tolist(), strict=False)
        )
    )
    return {int(cell.names["n_instrumental"]): cell for cell in made}


def test_the_trend_is_page_s_test_within_seeds_where_no_trajectory_is_shared() -> None:
    made = trend_of(list(length_cells(ROWS).values()), "m")
    assert (made.test.statistic, made.test.p) == (215, pytest.approx(2.25646e-5, rel=1e-5))
    assert (made.score, made.design, made.scope) == ("retained", "blocks", "runs")
    # Slope of the column means over 1..5 doublings, by least squares.
    assert made.estimate.value == pytest.approx(np.polyfit(range(5), np.array(ROWS).mean(axis=0), 1)[0])


def test_blocks_of_the_trend_are_trajectories_where_runs_share_them() -> None:
    # Each trajectory twice: its blocks are the means, so the reference table again.
    doubled = [row for row in ROWS for _ in range(2)]
    made = trend_of(list(length_cells(doubled, clusters=list("aabbccdd")).values()), "m")
    assert (made.test.statistic, made.test.n, made.scope) == (215, 4, "trajectories")


def test_a_trend_from_one_trajectory_holds_for_it_alone() -> None:
    made = trend_of(list(length_cells(ROWS, clusters="only").values()), "m")
    assert (made.scope, made.test.statistic) == ("one trajectory", 215)
    assert not made.estimate.has_interval


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (length_cells([[0.1], [0.2]]), "1 phase lengths, where 2 to 8"),
        (length_cells([[math.nan] * 5]), "nothing to sell in any run"),
    ],
)
def test_no_trend_says_why(cells: dict[int, CellRuns], reason: str) -> None:
    made = trend_of(list(cells.values()), "m")
    assert math.isnan(made.test.p)
    assert reason in made.test.reason


def test_an_ablation_that_adds_the_same_to_every_run_is_found_by_swapping_seeds() -> None:
    more = (np.array(ROWS) + 0.1).tolist()
    made, likeness = ablation_of(length_cells(ROWS), length_cells(more, history="none"), "actions", "none - own")
    # All four seeds differ in one direction: 2 of 2^4 patterns are as extreme.
    assert (made.test.p, made.test.n, made.scope) == (0.125, 4, "runs")
    assert made.estimate.value == pytest.approx(0.1)
    assert likeness is not None
    assert (likeness.n_lengths, likeness.pearson.value) == (5, pytest.approx(1))
    means = np.array(ROWS).mean(axis=0)
    assert likeness.icc.value == pytest.approx(icc_2_1(np.column_stack([means, means + 0.1])).value)
    assert likeness.pearson_p == pearson_test(means, means + 0.1).p


def test_seeds_are_swapped_where_both_histories_go_on_from_the_same_trajectories() -> None:
    more = (np.array(ROWS) + 0.1).tolist()
    own, other = length_cells(ROWS, clusters=list("aabb")), length_cells(more, clusters=list("aabb"), history="none")
    made, _ = ablation_of(own, other, "actions", "x")
    assert (made.scope, made.test.n, made.test.p) == ("these trajectories", 4, 0.125)
    assert made.estimate.n_clusters == 2


def test_trajectories_are_swapped_where_the_two_histories_have_different_ones() -> None:
    more = (np.array(ROWS) + 0.1).tolist()
    own, other = length_cells(ROWS, clusters=list("aabb")), length_cells(more, clusters=list("xxyy"), history="none")
    made, _ = ablation_of(own, other, "actions", "x")
    assert (made.scope, made.test.n, made.test.p) == ("trajectories", 2, 0.5)


def test_runs_without_common_quarters_are_permuted_within_lengths() -> None:
    more = (np.array(ROWS) + 0.5).tolist()
    own = length_cells(ROWS, shares_quarters=False)
    made, _ = ablation_of(own, length_cells(more, history="none", shares_quarters=False), "actions", "x")
    assert made.design == "groups"
    assert made.test.method.startswith("ablation labels permuted within lengths")
    assert made.test.p < 0.001
    assert made.estimate.value == pytest.approx(0.5)


def test_lengths_of_one_history_alone_are_left_out_by_name() -> None:
    short = {length: cell for length, cell in length_cells(ROWS, history="none").items() if length != 32}
    made, likeness = ablation_of(length_cells(ROWS), short, "actions", "x")
    assert made.note == "phase lengths on one side only, left out: 32"
    assert likeness is not None
    assert likeness.n_lengths == 4
    alone, none = ablation_of({2: length_cells(ROWS)[2]}, {4: short[4]}, "actions", "x")
    assert none is None
    assert alone.test.reason == "no phase length has both histories; phase lengths on one side only, left out: 2, 4"
