from __future__ import annotations

from pathlib import Path

from experiments.chat import Completion, Prompt
from experiments.errors import ProviderError, SweepStop
from experiments.models import build_model
from experiments.record import RecordWriter, read_record
from experiments.runner import record_path
from experiments.treatment import Treatment
from tests.path import contents, edit_line, plan, record_of, sweep_runs

SWITCH = Treatment("goal_switching", n_instrumental=3, n_evaluation=3)


class Failing:
    """An agent whose service is down for one seed."""

    def __init__(self, inner: object, error: Exception, seed: int) -> None:
        self.name = "failing"
        self._inner, self._error, self._seed = inner, error, seed

    async def complete(self, prompt: Prompt) -> Completion:
        if prompt.position.seed == self._seed:
            raise self._error
        return await self._inner.complete(prompt)  # type: ignore[attr-defined,no-any-return]


def test_two_sweeps_of_one_configuration_give_equal_records(tmp_path: Path) -> None:
    runs = plan("random", SWITCH, Treatment("combined", n_instrumental=3, n_evaluation=3))
    for folder in ("first", "second"):
        assert sweep_runs(tmp_path / folder, runs).complete
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_order_and_number_at_once_do_not_change_a_record(tmp_path: Path) -> None:
    runs = plan("random", SWITCH)
    sweep_runs(tmp_path / "first", runs, concurrency=1)
    sweep_runs(tmp_path / "second", runs[::-1], concurrency=9)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_seeds_and_cells_can_be_added_and_nothing_is_played_twice(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("random", SWITCH, seeds=[1]))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    more = plan("random", SWITCH, Treatment("combined", n_instrumental=3, n_evaluation=3), seeds=[1, 2, 3])
    report = sweep_runs(tmp_path, more)
    assert report.outcomes == {"completed": len(more)}
    assert all(path.read_bytes() == data for path, data in before.items())


def test_outage_of_one_run_leaves_the_others_alone(tmp_path: Path) -> None:
    runs = plan("random", Treatment("adversarial_pressure", n_evaluation=3), seeds=[1, 2, 3])
    report = sweep_runs(
        tmp_path, runs, build_model=lambda config: Failing(build_model(config), ProviderError("down"), seed=2)
    )
    assert report.outcomes == {"completed": 4, "provider_error": 2}
    assert not report.complete
    assert sweep_runs(tmp_path, runs).outcomes == {"completed": 6}


def test_wrong_key_stops_the_sweep(tmp_path: Path) -> None:
    runs = plan("random", Treatment("adversarial_pressure", n_evaluation=3), seeds=range(1, 9))
    report = sweep_runs(
        tmp_path,
        runs,
        concurrency=1,
        build_model=lambda config: Failing(build_model(config), SweepStop("the key is not valid"), seed=2),
    )
    assert report.stopped == "the key is not valid"
    assert report.outcomes["completed"] < len(runs) - 2
    (stopped,) = [record for record in map(read_record, tmp_path.rglob("*.jsonl")) if record.outcome != "completed"]
    assert (stopped.outcome, stopped.lines[-1]["reason"]) == ("provider_error", "the key is not valid")
    assert sweep_runs(tmp_path, runs).complete


def test_phase_that_fails_leaves_its_children_unplayed(tmp_path: Path) -> None:
    runs = [run for run in plan("random", SWITCH, seeds=[1, 2]) if run.treatment.switches]
    report = sweep_runs(
        tmp_path, runs, build_model=lambda config: Failing(build_model(config), ProviderError("down"), seed=1)
    )
    assert report.outcomes["unreachable"] == 1
    assert not record_path(tmp_path, runs[0]).exists()


def test_phase_that_was_killed_before_its_last_line_gets_that_line(tmp_path: Path) -> None:
    runs = plan("random", SWITCH, seeds=[1])
    sweep_runs(tmp_path, runs)
    whole = contents(tmp_path)
    (path,) = (tmp_path / "phases").rglob("*.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert read_record(path).outcome == "unfinished"
    assert sweep_runs(tmp_path, runs).complete
    assert contents(tmp_path) == whole


def test_damaged_record_is_reported_and_the_rest_is_played(tmp_path: Path) -> None:
    runs = plan("random", Treatment("adversarial_pressure", n_evaluation=3), seeds=[1, 2])
    sweep_runs(tmp_path, runs)
    path = record_path(tmp_path, runs[0])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    edit_line(path, 3, lambda line: line.update(quarter=9, type="closed"))
    report = sweep_runs(tmp_path, runs)
    assert report.outcomes == {"completed": 3, "refused_record": 1}
    assert f"{path}, line 3" in report.problems[0]


def test_run_that_another_process_writes_is_skipped(tmp_path: Path) -> None:
    runs = plan("random", Treatment("adversarial_pressure", n_evaluation=3), seeds=[1])
    with RecordWriter(record_path(tmp_path, runs[0])):
        assert sweep_runs(tmp_path, runs).outcomes == {"completed": 1, "locked": 1}


def test_cut_parent_hash_is_that_of_the_parents_lines(tmp_path: Path) -> None:
    run = next(run for run in plan("random", SWITCH, seeds=[1]) if run.treatment.switches)
    sweep_runs(tmp_path, [run])
    phase = run.phase_spec()
    assert phase is not None
    parent = read_record(record_path(tmp_path, phase))
    branched = record_of(tmp_path, run).branched
    assert branched is not None
    assert branched["parent_sha256"] == parent.sha256_up_to_close(3)
    assert branched["parent"] == phase.run_id


def test_results_folder_that_is_a_file_ends_the_sweep_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    report = sweep_runs(tmp_path / "results", plan("random", Treatment(n_evaluation=2), seeds=[1]))
    assert not report.complete
    assert "cannot be written" in report.problems[0]
