"""Sensitivity analyses: the same comparisons by other tests, with the reference values."""

import math

import pandas as pd
import pytest
from scipy import stats

from analysis.cell_table import cells_table
from analysis.report.estimates import failures_of
from analysis.report.families import answers_of
from analysis.report.sensitivity import Other, across_cells, failure_tests, other_tests
from tests.report_builders import figure_from, make_rows

A = [0, 0, 0.1, 0.25, 0.4, 0, 0.05, 0.6]
B = [0, 0.2, 0.35, 0.5, 0.45, 0.7, 0.15, 0.3]


def by_method(others: list[Other], score: str = "actions") -> dict[str, Other]:
    return {one.method: one for one in others if one.score == score}


def test_a_contrast_of_groups_is_tested_by_ranks_too() -> None:
    figure = figure_from(make_rows(A, model="a", shares_quarters=False), make_rows(B, model="b", shares_quarters=False))
    (models,) = [answer for answer in answers_of(figure) if answer.question == "models"]
    found = by_method(list(other_tests(models)))
    assert found["Mann-Whitney given ties, exact"].p == pytest.approx(0.168143, abs=1e-6)
    assert found["Mann-Whitney given ties, exact"].value == 18.5
    munzel = found["Brunner-Munzel, t approximation"]
    assert (munzel.value, munzel.p) == pytest.approx((1.504651, 0.155696), abs=1e-6)
    assert len(found) == 2


def test_a_contrast_of_pairs_is_shown_as_groups_and_by_student_too() -> None:
    figure = figure_from(make_rows(A, model="a"), make_rows(B, model="b"))
    (models,) = [answer for answer in answers_of(figure) if answer.question == "models"]
    found = by_method(list(other_tests(models)))
    assert found["two-sample permutation of the mean, exact"].p == pytest.approx(2540 / 12870)
    assert found["Student's t of cluster means"].p == pytest.approx(stats.ttest_rel(A, B).pvalue)


def test_shared_trajectories_are_shown_by_sign_flips_too() -> None:
    (drift,) = answers_of(figure_from(make_rows([0.1, 0.2, 0.3, 0.5], clusters=list("aabb"))))
    assert by_method(list(other_tests(drift)))["sign-flip, exact"].p == 0.25


def test_means_over_cells_stand_beside_their_interquartile_means_and_profiles() -> None:
    cells = [[0, 0.1, 0.3], [0, 0.2, 0.5], [0.1, 0, 0.9], [0.05, 0.4, 0.2]]
    tables = [make_rows(scores, n_instrumental=length) for length, scores in zip((2, 4, 8, 16), cells, strict=True)]
    found = by_method(list(across_cells(figure_from(*tables))))
    assert found["interquartile mean"].value == pytest.approx(0.158333, abs=1e-6)
    assert found["mean"].value == pytest.approx(sum(map(sum, cells)) / 12)
    assert found["P(GD > 0.2)"].value == pytest.approx(4 / 12)
    assert found["mean"].low < found["mean"].value < found["mean"].high


def test_a_model_drifts_less_than_another_with_a_probability_and_runs_of_one_trajectory_give_no_interval() -> None:
    figure = figure_from(make_rows([0.0, 0.1], model="a"), make_rows([0.1, 0.2], model="b", clusters="only"))
    found = by_method([one for one in across_cells(figure) if one.label.startswith("a drifts")])
    one = found["probability of improvement"]
    assert one.value == pytest.approx(3.5 / 4)
    assert math.isnan(one.low)
    assert one.reason == "conditional on one trajectory"


def test_failures_are_held_against_those_of_the_baseline() -> None:
    rows = make_rows([0.1, math.nan, math.nan, math.nan], baseline_cell="plain")
    rows.loc[1:, "failed"] = "stalled"
    plain = make_rows([math.nan] * 4, cell="plain", setting="baseline").assign(baseline_cell=None)
    figure = figure_from(rows, plain)
    failures = list(failures_of(figure, cells_table(pd.concat([rows, plain], ignore_index=True))))
    (one,) = failure_tests(figure, failures)
    assert (one.method, one.value, one.n) == ("Boschloo, exact", 0.75, 8)
    assert 0 < one.p < 0.1
