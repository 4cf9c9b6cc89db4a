"""Tables of stated goals, on rows and labels given by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.stated.interviews import Mention, Told, read_told
from analysis.stated.tables import agreement_table, awareness_table, behaviour_table, cells_table
from experiments.interview import Interview
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs
from tests.report_builders import make_rows

ROWS = make_rows([0.0, 0.0, 0.5, 0.9])
IDS = list(ROWS["run_id"])


def test_share_that_drifted_leaves_unclear_answers_out() -> None:
    table = cells_table(ROWS, {"hand": dict(zip(IDS, ["system", "hybrid", "competing", "unclear"], strict=True))})
    row = table.iloc[0]
    assert (row["n"], row["system"], row["hybrid"], row["competing"], row["unclear"]) == (4, 1, 1, 1, 1)
    assert row["drifted"] == pytest.approx(2 / 3)


def test_agreement_is_over_the_runs_that_both_classified() -> None:
    first = dict(zip(IDS, ["system", "system", "competing", "competing"], strict=True))
    second = dict(zip(IDS[:3], ["system", "competing", "competing"], strict=True))
    row = agreement_table({"rules": first, "hand": second}).iloc[0]
    assert (row["n"], row["agree"]) == (3, pytest.approx(2 / 3))
    assert json.loads(row["confusion"]) == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    # Observed 2/3, by chance (2/3)(1/3) + (1/3)(2/3) = 4/9: kappa = (2/3 - 4/9) / (5/9).
    assert row["kappa"] == pytest.approx(0.4)


def test_stated_goal_that_rises_with_drift_has_an_association_of_1() -> None:
    labels = dict(zip(IDS, ["system", "system", "hybrid", "competing"], strict=True))
    table = behaviour_table(ROWS, {"hand": labels})
    assert set(table["score"]) == {"gd_actions", "gd_inaction"}
    assert list(table["spearman"]) == [1.0, 1.0] and list(table["somers_d"]) == [1.0, 1.0]


def test_stated_goal_that_never_varies_has_no_association_and_a_reason() -> None:
    table = behaviour_table(ROWS, {"hand": dict.fromkeys(IDS, "system")})
    assert table["spearman"].isna().all() and all(table["note"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder: Path = tmp_path_factory.mktemp("asked")
    switch = Treatment("goal_switching", n_instrumental=1, n_evaluation=2)
    runs = plan("adherent", switch, seeds=[1], n_phases=1)
    sweep_runs(folder, runs, interview=Interview(at_end=True, awareness=True))
    return next(one for one in read_told(folder)[0] if not one.cell.is_baseline)


def as_run(told: Told, run_id: str, *, percent: int | None, mentions: int) -> Told:
    """The same run under another id, with an answer on awareness and mentions given by hand."""
    goal, awareness = told.answers
    answers = (goal,) if percent is None else (goal, replace(awareness, text=f"About {percent} %."))
    spoken = (Mention(run_id, 1, 0, "evaluation", "a test"),) * mentions
    return replace(told, run_id=run_id, answers=answers, mentions=spoken)


def test_scores_are_split_by_the_answer_and_by_unasked_mentions(told: Told) -> None:
    given = [(90, 0), (60, 2), (10, 0), (None, 0)]
    told_all = [as_run(told, run, percent=p, mentions=m) for run, (p, m) in zip(IDS, given, strict=True)]
    table = awareness_table(ROWS, told_all).query("score == 'gd_actions'").set_index(["split", "group"])
    assert dict(table["n"]) == {
        ("asked", "not asked"): 1,
        ("asked", "real"): 1,
        ("asked", "test"): 2,
        ("unprompted", "mentioned"): 1,
        ("unprompted", "not mentioned"): 3,
    }
    scores = list(ROWS["gd_actions"])
    assert table.loc[("asked", "test"), "mean"] == pytest.approx((scores[0] + scores[1]) / 2)
    assert table.loc[("asked", "test"), "low"] <= table.loc[("asked", "test"), "mean"]
    assert table.loc[("unprompted", "mentioned"), "mean"] == pytest.approx(scores[1])


def test_nobody_asked_leaves_only_the_split_by_mentions(told: Told) -> None:
    table = awareness_table(ROWS, [as_run(told, run, percent=None, mentions=0) for run in IDS])
    assert set(table["split"]) == {"unprompted"}
