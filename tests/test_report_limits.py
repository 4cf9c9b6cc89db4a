"""What a report says cannot be concluded: a limit where the runs have it, and not where they do not."""

import math
from typing import Any

import pandas as pd

from analysis.cell_table import cells_table
from analysis.report.estimates import cell_estimates, failures_of
from analysis.report.families import answers_of, figures_of
from analysis.report.limits import limits_of
from tests.report_builders import cells_from, make_rows


def limits(*tables: Any) -> dict[str, str]:
    """Limits of the last figure by their first words."""
    figure = figures_of(cells_from(*tables))[-1]
    estimates = list(cell_estimates(figure, "gaffke"))
    failures = list(failures_of(figure, cells_table(pd.concat(tables, ignore_index=True))))
    told = limits_of(figure, answers_of(figure), estimates, failures)
    return {text.split(":")[0].split(".")[0]: text for text in told}


def test_independent_pairs_of_one_length_have_no_limit_but_that_of_absence() -> None:
    told = limits(make_rows([0.1, 0.2, 0.3], margin=0.1))
    assert list(told) == ["A p value above "]
    assert "fewer than 29 independent runs" in told["A p value above "]
    assert "is shown for 0 of 2 rows" in told["A p value above "]


def test_one_trajectory_few_trajectories_and_these_trajectories_are_told() -> None:
    one = limits(make_rows([0.1, 0.2], clusters="only"))
    assert "the runs of 1 cells go on from one instrumental trajectory each" in one["One trajectory"]
    few = limits(make_rows([0.1, 0.2, 0.4, 0.3], clusters=list("aabb")))
    assert "never have p below 0.25" in few["Few trajectories"]
    both = [make_rows([0.1, 0.2, 0.4, 0.3], clusters=list("aabb"), history=name) for name in ("own", "random_strings")]
    assert "These trajectories" in limits(*both)


def test_pairs_without_common_quarters_are_told() -> None:
    told = limits(make_rows([0.1, 0.2], shares_quarters=False))
    assert "in 1 cells run and baseline are of different quarters" in told["Pairs without common quarters"]


def test_weak_runs_against_a_strong_baseline_are_told() -> None:
    weak = make_rows([0.1, 0.2], setting="adversarial_pressure", n_instrumental=0, elicitation="weak")
    strong = make_rows([math.nan] * 2, setting="baseline", elicitation="strong", cell="baseline")
    told = limits(strong.assign(baseline_cell=None), weak)
    assert "1 cells are held against a baseline of another elicitation" in told["Weak against strong baselines"]
    same = limits(strong.assign(baseline_cell=None, elicitation="weak"), weak)
    assert "Weak against strong baselines" not in same


def test_several_lengths_and_ablations_bring_their_warnings() -> None:
    lengths = limits(*(make_rows([0.1, 0.2], n_instrumental=length) for length in (2, 4)))
    assert any("for one and the same policy" in text for text in lengths.values())
    ablated = limits(*(make_rows([0.1, 0.2], history=name) for name in ("own", "random_strings")))
    assert any(text.startswith("Correlation and ICC") for text in ablated.values())


def test_failed_unpaired_and_unplaced_runs_and_scored_outages_are_counted() -> None:
    rows = make_rows([0.1, math.nan, math.nan, 0.2, 0.3])
    rows.loc[1, "failed"] = "stalled"
    rows.loc[2, "baseline_run"] = None
    rows.loc[3, "cluster"] = ""
    rows.loc[4, "outcome"] = "provider_error"
    told = limits(rows)
    assert told["Failed runs"].startswith("Failed runs: 1 runs have no score")
    assert told["Unpaired runs"].startswith("Unpaired runs: 1 runs")
    assert told["Unknown trajectories"].startswith("Unknown trajectories: 1 runs")
    assert told["Outages"].startswith("Outages: 1 runs")
