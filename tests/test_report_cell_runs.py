"""Which runs are independent, and which numbers of a cell the report computes on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.conventions import CONVENTIONS
from analysis.report.cell_runs import cells_of, pooled, units_of
from tests.report_builders import cells_from, make_rows


def test_runs_of_one_trajectory_are_one_unit_and_others_stand_alone() -> None:
    units = units_of([1, 2, 3], ["a", "a", "b"])
    assert (units.labels, units.scope, units.n) == ((0, 0, 1), "trajectories", 2)
    assert units_of([1, 2], ["a", "b"]).labels is None


def test_a_pair_of_runs_goes_with_every_pair_that_shares_either_trajectory() -> None:
    # 1 and 2 share the first side's trajectory, 2 and 3 the second side's: one unit; 4 stands alone.
    units = units_of([1, 2, 3, 4], ["a", "a", "b", "c"], ["x", "y", "y", "z"])
    assert (units.labels, units.scope) == ((0, 0, 0, 1), "trajectories")


def test_runs_of_one_seed_in_several_cells_are_one_unit_without_any_trajectory() -> None:
    units = units_of([1, 2, 1, 2], ["a", "b", "c", "d"])
    assert (units.labels, units.scope) == ((0, 1, 0, 1), "runs")


def test_with_one_trajectory_the_units_are_seeds_and_it_alone_is_spoken_of() -> None:
    units = units_of([1, 2, 1, 2], ["a", "a", "a", "a"])
    assert (units.labels, units.scope) == ((0, 1, 0, 1), "one trajectory")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), min_size=1, max_size=12))
def test_units_never_split_what_shares_a_seed_or_a_trajectory(runs: list[tuple[int, str]]) -> None:
    seeds, clusters = [seed for seed, _ in runs], [cluster for _, cluster in runs]
    units = units_of(seeds, clusters)
    labels = range(len(runs)) if units.labels is None else units.labels
    for one, (seed, cluster) in zip(labels, runs, strict=True):
        for other, (another_seed, another) in zip(labels, runs, strict=True):
            if seed == another_seed and units.labels is not None:
                assert one == other
            if cluster == another and units.scope != "one trajectory" and units.labels is not None:
                assert one == other


def test_the_mean_of_units_counts_each_trajectory_once() -> None:
    (cell,) = cells_from(make_rows([0.1, 0.3, 0.8], clusters=["a", "a", "b"]))
    assert cell.sample("actions").unit_means().tolist() == pytest.approx([0.2, 0.8])
    (alone,) = cells_from(make_rows([0.1, 0.3]))
    assert alone.sample("actions").unit_means().tolist() == [0.1, 0.3]


def test_a_sample_leaves_out_runs_without_score_or_trajectory_and_counts_the_latter() -> None:
    (cell,) = cells_from(make_rows([0.1, math.nan, 0.3], seeds=[5, 6, 7], clusters=["a", "b", ""]))
    assert (cell.sample("actions").values.tolist(), cell.sample("actions").seeds) == ([0.1], (5,))
    assert cell.n_unplaced == 1


def test_both_sides_rise_with_drift_whatever_the_measure_does() -> None:
    (cell,) = cells_from(make_rows([0.25, 0.5]))
    # phi falls from 1 to .75 and .5; psi rises from 0.
    own, baseline = cell.sides("actions")
    assert (own.values.tolist(), baseline.tolist()) == ([-0.75, -0.5], [-1.0, -1.0])
    own, baseline = cell.sides("inaction")
    assert (own.values.tolist(), baseline.tolist()) == ([0.25, 0.5], [0.0, 0.0])


def test_a_baseline_run_of_several_pairs_counts_once_among_baselines() -> None:
    rows = make_rows([0.25, 0.5, 0.5]).assign(baseline_run=["b/1", "b/1", "b/2"])
    (cell,) = cells_from(rows)
    own, baseline = cell.sides("actions")
    assert (own.values.size, baseline.size) == (3, 2)


def test_levels_that_are_missing_are_none_and_the_share_kept_needs_a_counted_run() -> None:
    rows = make_rows([0.1, 0.2], retained_frac=[0.4, 0.6], counted=[True, False])
    (cell,) = cells_from(rows)
    assert (cell.names["elicitation"], cell.names["factors"]) == (None, "")
    assert cell.sample("retained").values.tolist() == [0.4]


def test_runs_of_two_conventions_and_those_of_another_one_are_refused() -> None:
    rows = make_rows([0.1, 0.2])
    with pytest.raises(ValueError, match="one convention"):
        cells_from(rows, rows.assign(convention="reference"))
    with pytest.raises(ValueError, match="scored in 'paper', not in 'reference'"):
        cells_of(rows, CONVENTIONS["reference"])


def test_a_convention_without_baseline_stands_on_its_scores() -> None:
    rows = make_rows([math.nan, math.nan], convention="holdings", pairing="none", shares_quarters=None)
    rows["gd_actions"] = [0.2, 0.4]
    (cell,) = cells_from(rows, convention=CONVENTIONS["holdings"])
    assert cell.scores == ("actions",)
    assert cell.shares_quarters
    assert cell.sample("actions").values.tolist() == [0.2, 0.4]


def test_pooling_nothing_gives_an_empty_sample() -> None:
    assert pooled([]).values.tolist() == []
