"""Comparisons: the primary test of each design with the reference values, and what each p speaks of."""

import math

import pytest

from analysis.conventions import CONVENTIONS
from analysis.report.comparison import Comparison, contrast_of, drift_of
from tests.report_builders import cells_from, make_rows

D = [0.30, 0.12, -0.05, 0.40, 0, 0.22, 0.08, -0.02, 0.15, 0.25]
A = [0, 0, 0.1, 0.25, 0.4, 0, 0.05, 0.6]
B = [0, 0.2, 0.35, 0.5, 0.45, 0.7, 0.15, 0.3]
Y = [0.1, 0.2, 0.15, 0.5, 0.55, 0.6, 0, 0.05, 0.1, 0.3, 0.25, 0.35]


def drift(*rows: object, **columns: object) -> Comparison:
    (cell,) = cells_from(make_rows(*rows, **columns))  # type: ignore[arg-type]
    return drift_of(cell, "actions", "label")


def contrast(a: list[float], b: list[float], **columns: object) -> Comparison:
    first, second = cells_from(make_rows(a, history="own", **columns), make_rows(b, history="none", **columns))  # type: ignore[arg-type]
    return contrast_of([(first, second)], "actions", "a - b")


def test_drift_of_pairs_is_tested_by_sign_flips_one_sided() -> None:
    made = drift(D)
    assert (made.design, made.scope, made.label, made.model) == ("pairs", "runs", "label", "m")
    assert made.test.p == 8 / 1024
    assert (made.estimate.value, made.estimate.low, made.estimate.high) == pytest.approx(
        (0.145, 0.0392, 0.2508), abs=5e-6
    )
    assert made.estimate.n_clusters is None


def test_drift_over_shared_trajectories_is_tested_by_student_s_t_of_their_means() -> None:
    made = drift(Y, clusters=list("aaabbbcccddd"))
    assert made.scope == "trajectories"
    assert (made.estimate.low, made.estimate.high) == pytest.approx((-0.08354, 0.60854), abs=5e-6)
    assert made.test.method == "Student's t of cluster means"
    assert made.test.statistic == pytest.approx(0.2625 / 0.108733, rel=1e-5)
    assert made.differences is not None
    assert made.differences.tolist() == pytest.approx([0.15, 0.55, 0.05, 0.3])


def test_drift_from_one_trajectory_has_a_p_for_it_alone_and_no_interval() -> None:
    made = drift(D, clusters="only")
    assert (made.scope, made.test.p) == ("one trajectory", 8 / 1024)
    assert made.test.reason == "conditional on one trajectory"
    assert not (made.estimate.has_interval or made.effect.has_interval or made.shift.has_interval)
    assert (made.estimate.value, made.estimate.n_clusters) == (pytest.approx(0.145), 1)


def test_pairs_without_common_quarters_are_compared_as_groups() -> None:
    made = drift([0.2, 0.4, 0.6], shares_quarters=False)
    # Own values .8 .6 .4 against a baseline of 1 1 1: only one of C(6, 3) splits puts all of the former on one side.
    assert made.design == "groups"
    assert made.test.p == pytest.approx(1 / 20)
    assert made.effect.value == 1.0
    assert made.estimate.value == pytest.approx(0.4)


def test_the_mean_of_groups_is_that_of_the_table_of_cells() -> None:
    made = drift([0.2, 0.4, 0.9], clusters=["a", "a", "b"], shares_quarters=False)
    assert made.estimate.value == pytest.approx((0.3 + 0.9) / 2)
    assert (made.scope, made.estimate.n_clusters) == ("trajectories", 2)


def test_a_contrast_of_cells_with_the_same_seeds_is_paired() -> None:
    made = contrast(A, B)
    assert (made.design, made.test.p) == ("pairs", pytest.approx(0.1875))
    assert made.effect.value == pytest.approx(-0.571429, abs=1e-6)
    assert made.estimate.value == pytest.approx(-0.15625)
    assert made.note == ""


def test_a_contrast_of_cells_without_common_quarters_is_one_of_groups() -> None:
    made = contrast(A, B, shares_quarters=False)
    assert (made.design, made.test.p) == ("groups", pytest.approx(2540 / 12870))
    assert made.effect.value == pytest.approx(-0.421875)
    assert made.shift.value == pytest.approx(-0.175)


def test_seeds_on_one_side_only_are_named_and_counted() -> None:
    first, second = cells_from(
        make_rows([0.1, 0.2, 0.3], seeds=[1, 2, 3], history="own"),
        make_rows([0.0, 0.0], seeds=[3, 9], history="none"),
    )
    made = contrast_of([(first, second)], "actions", "x")
    assert (made.estimate.n, made.estimate.value) == (1, pytest.approx(0.3))
    assert made.note == "seeds in the first cell alone (2): 1, 2; seeds in the second cell alone (1): 9"


def test_no_common_seed_makes_no_test_and_says_so() -> None:
    first, second = cells_from(make_rows([0.1], seeds=[1], history="own"), make_rows([0.0], seeds=[2], history="none"))
    made = contrast_of([(first, second)], "actions", "x")
    assert math.isnan(made.test.p)
    assert made.test.reason == "no difference"
    assert "seeds in the first cell alone (1): 1" in made.note


def test_pairs_that_share_a_trajectory_on_either_side_go_together() -> None:
    first, second = cells_from(
        make_rows([0.1, 0.2, 0.3, 0.4], clusters=["p", "p", "q", "q"], history="own"),
        make_rows([0.0, 0.0, 0.0, 0.1], history="none"),
    )
    made = contrast_of([(first, second)], "actions", "x")
    assert (made.scope, made.estimate.n_clusters) == ("trajectories", 2)
    assert made.estimate.value == pytest.approx((0.15 + 0.3) / 2)


def test_several_pairs_of_cells_count_each_seed_once() -> None:
    cells = cells_from(
        *(
            make_rows([base, base + 0.2], model=model, n_instrumental=length)
            for length in (2, 4)
            for model, base in (("a", 0.4), ("b", 0.1))
        )
    )
    made = contrast_of([(cells[0], cells[1]), (cells[2], cells[3])], "actions", "a - b")
    assert (made.estimate.n, made.test.n, made.estimate.value) == (4, 2, pytest.approx(0.3))


@pytest.mark.parametrize("d", [[0.2], [math.nan, math.nan]])
def test_one_run_or_none_with_a_score_gives_no_interval_and_a_reason(d: list[float]) -> None:
    made = drift(d)
    assert not made.estimate.has_interval
    assert made.estimate.reason
    assert made.test.reason


def test_runs_of_unknown_trajectory_are_left_out_and_counted() -> None:
    made = drift(D, clusters=["", *"bcdefghij"])
    assert (made.estimate.n, made.note) == (9, "1 runs of unknown trajectory left out")


def test_without_a_baseline_there_is_no_drift_to_test() -> None:
    rows = make_rows([0.1, 0.2], convention="holdings", shares_quarters=None)
    (cell,) = cells_from(rows, convention=CONVENTIONS["holdings"])
    assert drift_of(cell, "actions", "x").test.reason == "convention holdings has no baseline to drift from"
