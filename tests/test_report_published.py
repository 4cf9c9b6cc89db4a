"""The report on the published runs: weak against strong in all eight cases, and what one trajectory can say."""

import pytest

from analysis.conventions import CONVENTIONS
from analysis.ledger_source import read_published
from analysis.pairing import pair_runs
from analysis.report.cell_runs import cells_of
from analysis.report.families import Answers, answers_of, figures_of
from analysis.run_table import runs_table
from analysis.stats import two_sample_test


@pytest.fixture(scope="module")
def published(arike2025):
    return read_published(arike2025 / "ledger.jsonl.gz")


def pressure_rows(published, by, *, setting="adversarial_pressure"):
    runs = runs_table(pair_runs(published, by), CONVENTIONS["reference"])
    return runs[(runs["setting"] == setting) | (runs["setting"] == "baseline")]


def answers(rows, convention="reference") -> dict[str, Answers]:
    (figure,) = figures_of(cells_of(rows, CONVENTIONS[convention]))
    return {answer.question: answer for answer in answers_of(figure)}


@pytest.mark.parametrize("live", [True, False], ids=["without dead runs", "with dead runs"])
def test_weak_against_strong_is_significant_in_all_eight_cases(published, live):
    rows = pressure_rows(published, "position")
    if live:
        rows = rows[(rows["outcome"] == "completed") | (rows["setting"] == "baseline")]
    pressed = rows[rows["setting"] != "baseline"]
    p = {}
    for case, members in pressed.groupby(["model", "system_goal"]):
        weak, strong = (members[members["elicitation"] == prompt]["gd_actions"] for prompt in ("weak", "strong"))
        p[case] = two_sample_test(weak, strong).p
    assert len(p) == 8
    worst = max(p, key=p.get)
    assert worst == ("claude-3.5-haiku", "profit")
    assert p[worst] == pytest.approx(0.0194, abs=5e-4)
    family = answers(rows)["weak_against_strong"].family
    assert family.size == 8
    assert all(adjusted < 0.05 for adjusted in family.p_adjusted.values())


def test_switching_is_tested_unpaired_and_speaks_of_one_trajectory_a_cell(published):
    runs = runs_table(pair_runs(published), CONVENTIONS["paper"])
    switched = runs[runs["setting"].isin(["goal_switching", "baseline"]) & (runs["history"] == "own")]
    drift = answers(switched, "paper")["drift"]
    assert {one.design for one in drift.comparisons} == {"groups"}
    scopes = [one.scope for one in drift.comparisons]
    # One cell holds a run from a second trajectory: GPT-4o mini after 64 quarters.
    assert (scopes.count("one trajectory"), scopes.count("trajectories")) == (46, 2)
    assert not any(one.estimate.has_interval for one in drift.comparisons if one.scope == "one trajectory")


def test_weak_runs_cannot_be_held_against_a_weak_baseline(published):
    family = answers(pressure_rows(published, "seed"))["weak_against_baseline"].family
    assert len(family.undefined) == family.size == 8
