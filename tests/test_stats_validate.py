"""The simulation check: what its rows say, and, slowly, that everything required holds."""

import dataclasses
import math

import numpy as np
import pytest

from analysis.stats import Estimate
from analysis.stats.validate import Check, coverage_check, size_check, validate


def interval(low: float, high: float) -> Estimate:
    return Estimate(0.5, low, high, 10, None, 0.95, "made up")


def test_coverage_counts_intervals_that_hold_the_truth() -> None:
    intervals = [interval(0.0, 0.4), interval(0.2, 0.6), interval(0.5, 0.9), interval(math.nan, math.nan)]
    check = coverage_check(intervals, 0.5, design="four", n="10", required=True)
    assert check.observed == 0.5
    assert check.no_answer == 0.25
    assert check.mean_width == pytest.approx(0.4)
    assert (check.kind, check.method, check.repetitions, check.promised) == ("coverage", "made up", 4, 0.95)


def test_coverage_holds_unless_it_is_surely_too_low() -> None:
    held = [interval(0.0, 1.0)] * 94 + [interval(0.6, 1.0)] * 6
    missed = [interval(0.0, 1.0)] * 80 + [interval(0.6, 1.0)] * 20
    assert coverage_check(held, 0.5, design="d", n="10", required=True).holds
    assert not coverage_check(missed, 0.5, design="d", n="10", required=True).holds


def test_size_counts_rejections_of_a_true_hypothesis() -> None:
    check = size_check([0.05, 0.06, 0.2, math.nan], design="null", method="made up", n="4", required=True)
    assert check.observed == 0.25
    assert check.no_answer == 0.25
    assert check.holds  # one of four shows no size above .05
    assert not size_check([0.01] * 30, design="null", method="made up", n="4", required=True).holds


def test_a_short_run_has_every_row_and_the_same_numbers_every_time() -> None:
    told: list[str] = []
    table = validate(5, progress=told.append)
    assert list(table.columns) == [field.name for field in dataclasses.fields(Check)]
    assert len(told) == len(table) > 100
    assert set(table["kind"]) == {"coverage", "size"}
    assert (table["repetitions"] == 5).all()
    assert not table.duplicated(["kind", "design", "method", "n"]).any()
    again = validate(5, rng=np.random.default_rng(20250502))
    assert again.equals(table)


@pytest.mark.slow
def test_everything_required_holds_and_what_is_avoided_fails() -> None:
    table = validate(1_000)
    required = table[table["required"]]
    assert required["holds"].all(), required[~required["holds"]].to_string()
    wald = table[table["method"].str.startswith("paper_wald") & (table["n"] == "10")]
    assert not wald["holds"].any()
