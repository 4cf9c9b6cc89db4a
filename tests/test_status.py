"""`apex status`: where runs stand, why they failed, what was spent, in whatever state the folder is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import ProviderError
from experiments.models import build_model
from experiments.record import RecordWriter
from experiments.runner import record_path
from experiments.saved_plan import planned_cells
from experiments.spending import Spent
from experiments.status import ExperimentStatus, main, status_of, told
from experiments.treatment import Treatment
from tests.path import edit_line, plan, sweep_runs
from tests.test_limits import Paid, limited
from tests.test_run import apex
from tests.test_sweep import Failing

PRESSURE = Treatment("adversarial_pressure", n_evaluation=3)
SWITCH = Treatment("goal_switching", n_instrumental=2, n_evaluation=2)


def only(folder: Path) -> ExperimentStatus:
    (status,) = status_of(folder)
    return status


def reasons(status: ExperimentStatus) -> dict[str, str]:
    return {state: reason for state, reason in status.why}


def test_finished_runs_are_done_by_cell_and_their_spending_is_summed(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, SWITCH)
    assert sweep_runs(tmp_path / "x", runs, build_model=Paid).complete
    status = only(tmp_path / "x")
    assert status.root == tmp_path / "x"
    assert {name.rpartition("-")[0]: dict(cell.states) for name, cell in status.cells.items()} == {
        "phases/adherent-phase-emissions": {"done": 2},
        "adherent-adversarial_pressure-emissions-strong": {"done": 2},
        "adherent-baseline-emissions-strong": {"done": 2},
        "adherent-goal_switching-emissions-I2": {"done": 2},
        "adherent-baseline-emissions-I2-strong": {"done": 2},
    }
    n = status.spent.n_turns
    assert n > 0
    assert status.spent == Spent(n, 100 * n, pytest.approx(0.5 * n))
    assert status.is_complete
    assert [cell.cell_id.split("/")[0] for cell in status.ordered][0] == "phases"


def test_run_that_the_agent_ended_is_partial_and_needs_no_more(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("silent", Treatment("adversarial_pressure", n_evaluation=4), seeds=[1]))
    status = only(tmp_path)
    assert status.states == {"partial": 2}
    assert reasons(status) == {"partial": "stalled: 3 quarters in a row were closed by the harness"}
    assert status.is_complete


def test_failed_run_says_why(tmp_path: Path) -> None:
    sweep_runs(
        tmp_path,
        plan("random", PRESSURE, seeds=[1, 2]),
        build_model=lambda config: Failing(build_model(config), ProviderError("503: down"), seed=2),
    )
    status = only(tmp_path)
    assert status.states == {"done": 2, "failed": 2}
    assert reasons(status) == {"failed": "provider_error: 503: down"}
    assert "and 1 more: provider_error: 503: down" in told(status)
    assert not status.is_complete


def test_run_at_a_limit_and_killed_run_are_resumable(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs, **limited(run={"max_tokens": 300}))
    path = record_path(tmp_path, runs[0])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    status = only(tmp_path)
    assert status.states == {"resumable": 2}
    assert sorted(reason for _, reason in status.why) == [
        "its process ended without a word, or was killed",
        "limits.run.max_tokens 300 is reached: 300 tokens",
    ]


def test_run_that_a_process_writes_is_running(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs, **limited(run={"max_tokens": 300}))
    with RecordWriter(record_path(tmp_path, runs[0])), RecordWriter(record_path(tmp_path, runs[1]), claims="heartbeat"):
        assert only(tmp_path).states == {"running": 2}
    assert only(tmp_path).states == {"resumable": 2}


def test_damaged_record_has_failed_and_is_named(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs)
    path = record_path(tmp_path, runs[0])
    edit_line(path, 3, lambda line: line.update(seq=99))
    status = only(tmp_path)
    assert status.states == {"done": 1, "failed": 1}
    assert f"{path}, line 3" in reasons(status)["failed"]
    assert len(status.cells) == 2


def test_imported_record_without_times_and_latencies_is_done(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("adherent", Treatment("baseline", n_evaluation=2)))
    for path in tmp_path.rglob("seed-*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        bare = [line | {"time": None} | ({"latency_s": None} if "latency_s" in line else {}) for line in lines]
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in bare))
    assert {state for cell in only(tmp_path).cells.values() for state in cell.states} == {"done"}


def test_record_without_a_whole_line_has_not_begun(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs)
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "seed-001.jsonl").write_text('{"type":"run","se')
    assert only(tmp_path).states == {"done": 2}


def test_experiments_of_a_results_folder_are_told_apart(tmp_path: Path) -> None:
    sweep_runs(tmp_path / "one", plan("adherent", SWITCH, seeds=[1]))
    sweep_runs(tmp_path / "two", plan("adherent", PRESSURE, seeds=[1]))
    assert {status.root.name: sum(status.states.values()) for status in status_of(tmp_path)} == {"one": 3, "two": 2}


def test_runs_that_a_command_has_not_begun_are_counted_from_its_saved_plan(tmp_path: Path) -> None:
    words = [
        "name=t",
        f"results_dir={tmp_path}",
        "treatment.n_instrumental=2",
        "treatment.n_evaluation=2",
        "n_phases=1",
    ]
    done = apex("run", *words, "seeds=3", "limits.sweep.max_hours=1e-9")
    assert done.returncode == 1
    status = only(tmp_path)
    assert status.states == {"not begun": 7}
    assert apex("run", *words, "seeds=1").returncode == 0
    assert only(tmp_path / "t").states == {"done": 3, "not begun": 4}
    shown = apex("status", str(tmp_path))
    assert shown.returncode == 1
    assert shown.stdout.splitlines()[1].split() == (
        ["cell", "done", "partial", "running", "resumable", "failed", "not", "begun", "turns", "tokens", "cost"]
    )


def test_saved_plan_of_an_older_version_is_read_with_defaults_and_a_strange_one_is_named(tmp_path: Path) -> None:
    words = ["name=t", f"results_dir={tmp_path}", "treatment=baseline", "treatment.n_evaluation=2", "seeds=1"]
    apex("run", *words)
    (saved,) = (tmp_path / "t" / "_hydra").rglob("config.yaml")
    kept = [line for line in saved.read_text().splitlines() if not line.startswith(("claims:", "sync:"))]
    saved.write_text("\n".join(kept))
    planned, problems = planned_cells(tmp_path / "t" / "_hydra")
    assert len(planned) == 1
    assert problems == []
    saved.write_text("\n".join([*kept, "colour: red"]))
    planned, problems = planned_cells(tmp_path / "t" / "_hydra")
    assert planned == {}
    assert problems[0].startswith(f"{saved}: what this configuration asks for is not known")
    assert only(tmp_path).states == {"done": 1}


def test_json_has_the_same_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep_runs(tmp_path, plan("adherent", PRESSURE), build_model=Paid)
    assert main([str(tmp_path), "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    status = only(tmp_path)
    assert data["total"]["done"] == 4
    assert data["total"]["cost_usd"] == status.spent.cost_usd
    assert data["complete"] is True
    assert sum(cell["turns"] for cell in data["cells"].values()) == status.spent.n_turns


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_folder_without_records_is_bad_input(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / folder)]) == 2
    assert str(tmp_path / folder) in capsys.readouterr().err


SLOW_AGENT = """
import time

def agent(prompt):
    time.sleep(0.05)
    return {"calls": [{"name": "finish_quarter"}], "usage": {"input_tokens": 90, "output_tokens": 10, "cost_usd": 0.01}}
"""


def test_status_can_be_asked_while_a_sweep_is_running_and_does_not_disturb_it(tmp_path: Path) -> None:
    (tmp_path / "slow_agent.py").write_text(SLOW_AGENT)
    words = ["name=t", f"results_dir={tmp_path}", "model=python", "target=slow_agent:agent", "seeds=4", "concurrency=2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "analysis.cli", "run", *words, "treatment=baseline", "treatment.n_evaluation=8"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seen: list[dict[Any, int]] = []
    while process.poll() is None:
        seen += [dict(status.states) for status in status_of(tmp_path)]
        time.sleep(0.01)
    assert process.returncode == 0
    assert any(states.get("running") and states.get("not begun") for states in seen)
    assert all(sum(states.values()) == 4 for states in seen)
    status = only(tmp_path)
    assert status.states == {"done": 4}
    assert status.spent == Spent(32, 3200, pytest.approx(0.32))
