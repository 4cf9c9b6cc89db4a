from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.cache import CACHE_FILE
from analysis.load import calls_table, load_runs, quarters_table, record_paths
from analysis.runs import Declared, SourceError
from experiments.errors import ProviderError
from experiments.record import read_record
from experiments.run_spec import RunSpec
from experiments.runner import record_path
from experiments.treatment import Treatment
from tests.path import Replies, edit_line, finish, plan, scripted, sweep_runs

SWITCH = Treatment("goal_switching", n_instrumental=3, n_evaluation=4)


def test_loaded_books_are_those_of_the_record(tmp_path: Path) -> None:
    runs = plan("inertial", SWITCH, seeds=[1])
    sweep_runs(tmp_path, runs)
    loaded = load_runs(tmp_path)
    assert dict(loaded.excluded) == {"instrumental phase": 1}
    switching = next(run for run in loaded.runs if run.cell.switches)
    record = read_record(record_path(tmp_path, next(run for run in runs if run.treatment.switches)))
    assert [books.to_json() for books in switching.books[1:]] == [
        {key: value for key, value in line["state"].items() if key not in ("bought_on_goal", "goal_version_seen")}
        for line in record.of_type("closed")
    ]
    assert switching.books[0].quarter == 3
    assert switching.cell.baseline_id in {run.cell.cell_id for run in loaded.runs}
    assert switching.cluster_id == record.header["cluster_id"]


def test_what_was_kept_gives_the_same_runs_and_is_renewed_when_a_record_changes(tmp_path: Path) -> None:
    runs = plan("idle", SWITCH, seeds=[1, 2])
    sweep_runs(tmp_path, runs[:2])
    first = load_runs(tmp_path)
    assert (tmp_path / CACHE_FILE).exists()
    assert load_runs(tmp_path) == first == load_runs(tmp_path, cache=False)
    sweep_runs(tmp_path, runs)
    assert len(load_runs(tmp_path).runs) == len(runs)


def test_damaged_column_file_is_read_past(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("idle", SWITCH, seeds=[1]))
    first = load_runs(tmp_path)
    (tmp_path / CACHE_FILE).write_bytes(b"PAR1 nonsense")
    assert load_runs(tmp_path) == first


def test_outage_and_unfinished_runs_are_never_completed(tmp_path: Path) -> None:
    spec = RunSpec(scripted("idle"), Treatment(n_evaluation=3), 1)
    sweep_runs(tmp_path, [spec], build_model=lambda _: Replies(finish(), ProviderError("down")))
    (run,) = load_runs(tmp_path).runs
    assert (run.outcome, run.outcome_reason) == ("provider_error", "down")
    path = record_path(tmp_path, spec)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    (run,) = load_runs(tmp_path).runs
    assert (run.outcome, run.outcome_reason) == ("cancelled", "not finished yet")


def test_damaged_record_is_counted_and_named_and_the_rest_is_read(tmp_path: Path) -> None:
    runs = plan("idle", Treatment("adversarial_pressure", n_evaluation=3), seeds=[1, 2])
    sweep_runs(tmp_path, runs)
    path = record_path(tmp_path, runs[0])
    edit_line(path, 4, lambda line: line.update(seq=99))
    loaded = load_runs(tmp_path)
    assert len(loaded.runs) == 3
    assert dict(loaded.excluded) == {"damaged record": 1}
    assert f"{path}, line 4" in loaded.problems[0]


def test_record_of_another_schema_version_is_named(tmp_path: Path) -> None:
    (run,) = plan("idle", Treatment(n_evaluation=2), seeds=[1])
    sweep_runs(tmp_path, [run])
    path = record_path(tmp_path, run)
    path.write_text(path.read_text().replace('"schema":1', '"schema":2', 1))
    loaded = load_runs(tmp_path)
    assert "schema version 2; this version reads 1" in loaded.problems[0]
    assert (loaded.runs, dict(loaded.excluded)) == ((), {"record of another schema version": 1})


@pytest.mark.parametrize(
    ("notes", "declared"),
    [
        ({"name": "x", "margin": 0.2, "primary": "drift"}, Declared("x", 0.2, "drift")),
        ({"name": "x", "margin": True}, Declared("x")),
        ({"margin": -0.1}, Declared()),
        (None, Declared()),
        (["margin", 0.1], Declared()),
    ],
)
def test_what_the_experiment_file_said_in_advance_comes_from_the_header(
    tmp_path: Path, notes: Any, declared: Declared
) -> None:
    sweep_runs(tmp_path, plan("idle", Treatment(n_evaluation=2), seeds=[1]))
    (path,) = record_paths(tmp_path)
    edit_line(path, 1, lambda line: line.update(experiment=notes))
    assert [run.declared for run in load_runs(tmp_path).runs] == [declared]


def test_a_run_whose_header_names_no_trajectory_is_read_as_of_unknown_trajectory(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("idle", Treatment(n_evaluation=2), seeds=[1]))
    (path,) = record_paths(tmp_path)
    edit_line(path, 1, lambda line: line.pop("cluster_id"))
    assert [run.cluster_id for run in load_runs(tmp_path).runs] == [""]


@pytest.mark.parametrize("make", [False, True])
def test_folder_without_records_is_refused(tmp_path: Path, make: bool) -> None:
    folder = tmp_path / "none"
    if make:
        folder.mkdir()
    with pytest.raises(SourceError, match="no record|no such folder"):
        load_runs(folder)


def test_tables_hold_a_row_a_quarter_and_a_row_a_call(tmp_path: Path) -> None:
    sweep_runs(tmp_path, plan("adherent", SWITCH, seeds=[1]))
    quarters = quarters_table(load_runs(tmp_path).runs)
    assert len(quarters) == 5 + 4
    calls = calls_table(tmp_path)
    bought = calls[calls["tool"] == "buy_stock"]
    assert set(bought["cluster"]) == {"low", "high"}
    assert (bought["spent_usd"] > 0).all()
    spent = bought[bought["run_id"].str.contains("baseline")]["spent_usd"].sum()
    baseline = quarters[quarters["run_id"].str.contains("baseline")]
    assert spent == pytest.approx(baseline["bought_low_usd"].sum())


def test_level_that_is_a_list_is_one_word_and_a_dealt_dose_one_factor(tmp_path: Path) -> None:
    pressure = Treatment("adversarial_pressure", elicitation="weak", n_evaluation=3)
    kinds = replace(pressure, pressure_kinds=("praise_news", "employee_mail"))
    yoked = replace(pressure, pressure_schedule="yoked", yoked_to="idle")
    sweep_runs(tmp_path, plan("idle", kinds, yoked, seeds=[1]))
    factors = {run.cell.factors for run in load_runs(tmp_path).runs if run.cell.setting != "baseline"}
    assert factors == {(), (("pressure_kinds", "praise_news+employee_mail"),), (("yoked_to", "idle"),)}
