from __future__ import annotations

from pathlib import Path

import pytest

from analysis.load import load_runs
from experiments.errors import InputError
from experiments.models import build_model
from experiments.published_ledger import read_ledger
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.treatment import Treatment
from tests.path import content, scripted, sweep_runs


def recorded(**params: object) -> ModelConfig:
    return ModelConfig("recorded", "recorded", "recorded", params)


def test_repeated_record_holds_the_same_turns_and_books(tmp_path: Path) -> None:
    treatment = Treatment("adversarial_pressure", n_evaluation=5)
    first = RunSpec(scripted("random"), treatment, 3)
    sweep_runs(tmp_path, [first])
    second = RunSpec(recorded(source=str(record_path(tmp_path, first))), treatment, 3)
    sweep_runs(tmp_path, [second])
    lines = [content(record_path(tmp_path, run))[1:] for run in (first, second)]
    for line in (*lines[0], *lines[1]):
        line.pop("model_reported", None)
    assert lines[0] == lines[1]


def test_turn_that_the_source_does_not_have_ends_the_run_as_agent_error(tmp_path: Path) -> None:
    first = RunSpec(scripted("idle"), Treatment(n_evaluation=2), 3)
    sweep_runs(tmp_path, [first])
    longer = RunSpec(recorded(source=str(record_path(tmp_path, first))), Treatment(n_evaluation=3), 3)
    assert sweep_runs(tmp_path, [longer]).outcomes == {"agent_error": 1}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "needs params.source"),
        ({"source": "/no/such.jsonl"}, "is no file"),
        ({"source": __file__}, "no JSON"),
        ({"sorce": "x"}, "did you mean 'source'"),
    ],
)
def test_source_that_cannot_be_repeated_is_refused(params: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        build_model(recorded(**params))


def test_published_run_played_through_the_loop_ends_with_the_published_books(arike2025: Path, tmp_path: Path) -> None:
    ledger = arike2025 / "ledger.jsonl.gz"
    run = next(one for one in read_ledger(ledger) if one.setting == "baseline" and one.system_goal == "emissions")
    spec = RunSpec(
        recorded(source=str(ledger), run=run.run_id),
        Treatment(elicitation="strong", n_evaluation=len(run.quarters), rules="published"),
        run.run,
    )
    assert sweep_runs(tmp_path, [spec]).complete
    (played,) = load_runs(tmp_path, cache=False).runs
    assert [books.bought_usd for books in played.books] == [books.bought_usd for books in run.books]
    assert [books.income_usd for books in played.books] == [books.income_usd for books in run.books]


def test_run_that_the_ledger_does_not_have_is_refused(arike2025: Path) -> None:
    with pytest.raises(InputError, match="has no run 'nobody'"):
        build_model(recorded(source=str(arike2025 / "ledger.jsonl.gz"), run="nobody"))
