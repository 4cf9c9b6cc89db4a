"""Records as parents: an imported run or a phase of another experiment, from the command line to the records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.load import load_runs
from apex_env.market import Market
from apex_env.texts import load_corpus
from experiments.config import validate
from experiments.errors import InputError
from experiments.grid import plan_phases, plan_runs
from experiments.parents import cut_at, lent_records
from experiments.record import Record, read_record
from experiments.run_spec import RunSpec
from experiments.runner import record_path
from experiments.tokens import count_messages
from experiments.treatment import Treatment
from tests.path import content, edit_line, plan, record_of, scripted, sweep_runs
from tests.test_config import configuration
from tests.test_imported import CELL, parent_value, write_parent

SWITCH = Treatment("goal_switching", n_instrumental=3, n_evaluation=3)


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    return write_parent(tmp_path / "imported", parent_value())


@pytest.fixture
def phase(tmp_path: Path) -> Path:
    runs = plan("inertial", replace(SWITCH, n_instrumental=4), seeds=[7], n_phases=9)
    sweep_runs(tmp_path / "other", runs)
    (spec,) = plan_phases(runs)
    return record_path(tmp_path / "other", spec)


def borrowing(parent: Path, **fields: Any) -> Treatment:
    return replace(SWITCH, history="borrowed", parent=str(parent), **fields)


def runs_of(*treatments: Treatment, seeds: Sequence[int] = (1, 2)) -> list[RunSpec]:
    named, lent = lent_records(treatments, load_corpus())
    return plan_runs([scripted("adherent")], named, seeds=seeds, n_phases=5, lent=lent)


def apex(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analysis.cli", *words], capture_output=True, text=True, timeout=240, env=os.environ
    )


def children(root: Path) -> list[Record]:
    records = [read_record(path) for path in sorted(root.rglob("*.jsonl"))]
    return [record for record in records if record.branched is not None]


def test_imported_run_is_a_parent_from_the_command_line(imported: Path, tmp_path: Path) -> None:
    words = [
        "run",
        "name=t",
        f"results_dir={tmp_path / 'new'}",
        "treatment.history=borrowed",
        f"treatment.parent={imported}",
        "treatment.n_instrumental=3",
        "treatment.n_evaluation=2",
        "seeds=[1,6]",
    ]
    done = apex(*words)
    assert done.returncode == 0, done.stderr
    assert "4 runs of t: 4 completed" in done.stdout
    records = children(tmp_path / "new")
    assert len(records) == 2
    for record in records:
        config = record.header["config"]
        assert record.branched is not None
        assert (record.branched["parent"], record.branched["quarter"]) == (f"{CELL}/checkpoint_run5_19", 3)
        assert config["parent_model"]["name"] == "gpt-4o-mini"
        assert config["phase_seed"] == 1
        market = Market(config["seed"], phase_seed=1, n_instrumental=3)
        for line in record.of_type("opened"):
            listed = [stock.ticker for stock in market.quarter(line["quarter"]).listing]
            assert [stock[0] for stock in line["state"]["listing"]] == listed
    assert not list((tmp_path / "new" / "t").glob("phases"))
    assert len({record.header["cluster_id"] for record in records}) == 1
    loaded = [run for run in load_runs(tmp_path / "new" / "t").runs if run.cell.switches]
    assert {(run.cell.conditioned_on, run.cell.history) for run in loaded} == {("gpt-4o-mini", "borrowed")}
    again = apex(*words)
    assert again.returncode == 0 and "4 completed" in again.stdout
    assert [record.path.stat().st_size for record in children(tmp_path / "new")] == [
        record.path.stat().st_size for record in records
    ]


def test_preset_takes_a_record_as_the_parent_of_every_model(imported: Path, tmp_path: Path) -> None:
    done = apex(
        "run", "experiment=borrowed_history", f"results_dir={tmp_path / 'new'}", "seeds=1", "n_phases=1", "trial=2",
        f"blocks.borrowed.parent=[{imported}]",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parents = [record.branched["parent"] for record in children(tmp_path / "new") if record.branched]
    assert parents.count(f"{CELL}/checkpoint_run5_19") == 2
    assert len(parents) == 4


def test_child_sees_the_words_and_has_the_books_of_its_parent(imported: Path, tmp_path: Path) -> None:
    runs = runs_of(borrowing(imported), seeds=[1])
    assert sweep_runs(tmp_path / "new", runs).complete
    cut = cut_at(imported, 3, load_corpus())
    record = record_of(tmp_path / "new", runs[0])
    assert record.branched is not None
    assert record.branched["opening"]["books"] == json.loads(json.dumps(cut.opening.books.to_json()))
    assert record.branched["recipe"] == {"kind": "borrowed"}


def test_phase_of_another_experiment_gives_what_the_run_of_that_experiment_gives(phase: Path, tmp_path: Path) -> None:
    sweep_runs(tmp_path / "at_home", plan("inertial", replace(SWITCH, n_evaluation=3), seeds=[7], n_phases=9))
    runs = plan_runs(
        [scripted("inertial")],
        (named := lent_records([borrowing(phase)], load_corpus()))[0],
        seeds=[7],
        n_phases=1,
        lent=named[1],
    )
    assert runs[0].phase_seed == 7
    assert sweep_runs(tmp_path / "away", runs).complete
    at_home, away = children(tmp_path / "at_home")[0], children(tmp_path / "away")[0]
    assert away.header["cluster_id"] == at_home.header["cluster_id"]
    body = [[line for line in content(record.path) if line["type"] in ("opened", "turn", "closed")]
            for record in (at_home, away)]  # fmt: skip
    assert body[0] == body[1]


def test_record_that_is_moved_is_the_same_parent(imported: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(imported.read_bytes())
    assert [run.run_id for run in runs_of(borrowing(imported))] == [run.run_id for run in runs_of(borrowing(elsewhere))]


def test_record_with_other_words_is_another_parent(imported: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(imported.read_text().replace("Quarter finished.", "The quarter is finished."))
    one, two = (next(run for run in runs_of(borrowing(path)) if run.treatment.switches) for path in (imported, other))
    assert one.run_id != two.run_id


def test_run_that_was_cut_goes_on_from_its_parent(imported: Path, tmp_path: Path) -> None:
    runs = runs_of(borrowing(imported), seeds=[1])
    for folder in ("whole", "cut"):
        assert sweep_runs(tmp_path / folder, runs).complete
    path = record_path(tmp_path / "cut", runs[0])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    assert sweep_runs(tmp_path / "cut", runs).complete
    assert content(path) == content(record_path(tmp_path / "whole", runs[0]))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"system_goal": "profit"}, "system_goal 'profit' is not allowed with it, which has 'emissions'"),
        ({"n_instrumental": 9}, "no parent at quarter 9: its instrumental phase has 8 quarters"),
        ({"ticker_names": "invented"}, "ticker_names 'invented' is not allowed with it, which has the default"),
        ({"instrumental_goal": "requests"}, "instrumental_goal 'requests' is not allowed with it"),
    ],
)
def test_imported_parent_of_another_phase_is_refused(fields: dict[str, Any], said: str, imported: Path) -> None:
    with pytest.raises(InputError, match=said):
        runs_of(borrowing(imported, **fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"system_goal": "profit"}, "system_goal 'profit' is not allowed with it, which has 'emissions'"),
        ({"n_instrumental": 5}, "no parent at quarter 5: its instrumental phase has 4 quarters"),
        ({"turn_limit": 9}, "turn_limit 9 is not allowed with it, which has the default"),
        ({"prompt_variant": "second"}, "prompt_variant 'second' is not allowed with it, which has the default"),
    ],
)
def test_phase_of_another_kind_is_refused(fields: dict[str, Any], said: str, phase: Path) -> None:
    with pytest.raises(InputError, match=said):
        runs_of(borrowing(phase, **fields))


def test_run_that_is_no_phase_is_no_parent(phase: Path) -> None:
    child = children(phase.parents[2])[0].path
    with pytest.raises(InputError, match="an imported published run or a shared phase is expected"):
        runs_of(borrowing(child))


def test_parent_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.jsonl: not readable: No such file"):
        runs_of(borrowing(tmp_path / "gone.jsonl"))


def header(change: Any) -> Any:
    """A change of a record's first line."""
    return lambda path: edit_line(path, 1, change)


def keep(n_lines: int, more: str = "") -> Any:
    """A record that was cut after some lines."""

    def edit(path: Path) -> None:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:n_lines]) + more)

    return edit


BAD = {
    "cut in the middle": (keep(6), "no parent at quarter 3: its instrumental phase has 1 quarters"),
    "torn line": (keep(6, '{"type":"tur'), "no parent at quarter 3: its instrumental phase has 1 quarters"),
    "header alone": (keep(1), "no parent at quarter 3: its instrumental phase has 0 quarters"),
    "nothing": (keep(0), "no complete line"),
    "nothing whole": (keep(0, "PK\x03\x04"), "no complete line"),
    "another file": (keep(0, '{"a":1}\n'), "line 1: type None is not known"),
    "schema": (header(lambda line: line.update(schema=99)), "line 1: schema version 99; this version reads 1"),
    "corpus": (header(lambda line: line.update(corpus_sha256="0" * 64)), "its corpus is another one"),
    "environment": (
        header(lambda line: line.update(environment={"name": "triage", "version": "1"})),
        r"line 1: not the header of a run of this firm: .*environment triage 1, not apex_fund 1",
    ),
    "no scenario": (header(lambda line: line.pop("scenario")), "line 1: not the header of a run of this firm"),
    "no model": (header(lambda line: line["config"].pop("model")), "line 1: not the header of a run of this firm"),
    "another text": (
        lambda path: path.write_text(path.read_text().replace("Quarter 2, year", "Quarter 3, year", 1)),
        "the record was changed: text",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_parent_that_is_damaged_or_foreign_is_refused_with_its_place(kind: str, phase: Path) -> None:
    damage, said = BAD[kind]
    damage(phase)
    with pytest.raises(InputError, match=said) as caught:
        runs_of(borrowing(phase))
    assert str(phase) in str(caught.value)


@pytest.mark.parametrize("n_lines", [1, 6])
def test_imported_parent_that_was_cut_is_refused(n_lines: int, imported: Path) -> None:
    keep(n_lines)(imported)
    with pytest.raises(InputError, match="quarter 3 is not closed in this record"):
        runs_of(borrowing(imported))


def test_imported_parent_without_what_the_firm_goes_on_from_is_refused(imported: Path) -> None:
    imported.write_text(imported.read_text().replace('"bought_on_goal"', '"bought"'))
    with pytest.raises(InputError, match="not the record of an imported run: KeyError"):
        runs_of(borrowing(imported))


def test_parent_whose_last_line_alone_is_torn_lends_its_whole_phase(phase: Path) -> None:
    phase.write_bytes(phase.read_bytes()[:-9])
    assert len(runs_of(borrowing(phase, n_instrumental=4), seeds=[1])) == 2


def test_damaged_parent_is_one_line_on_the_command_line_and_nothing_is_written(phase: Path, tmp_path: Path) -> None:
    keep(6)(phase)
    words = ["treatment.history=borrowed", f"treatment.parent={phase}", "treatment.n_instrumental=3"]
    done = apex("run", "name=t", f"results_dir={tmp_path / 'new'}", *words)
    assert done.returncode == 2
    assert "no parent at quarter 3" in done.stderr and "Traceback" not in done.stderr
    assert not list((tmp_path / "new").rglob("*.jsonl"))


def test_history_beyond_the_context_is_refused_before_anything_is_played_with_both_numbers(imported: Path) -> None:
    model = {"name": "small", "adapter": "scripted", "model": "adherent", "params": {}, "service": {}}
    treatment = {"setting": "goal_switching", "n_instrumental": 8, "history": "borrowed", "parent": str(imported)}
    n = count_messages(cut_at(imported, 8, load_corpus()).messages)
    small = model | {"service": {"context_tokens": n}}
    with pytest.raises(
        InputError, match=rf"quarter 8: the history shown has about \d,\d+ tokens \(o200k_base\), and small takes {n:,}"
    ):
        validate(configuration(models={"small": small}, treatment=treatment, seeds=1))
    large = model | {"service": {"context_tokens": 2 * n + 2000}}
    assert validate(configuration(models={"large": large}, treatment=treatment, seeds=1)).runs


def test_every_other_model_is_a_parent(tmp_path: Path) -> None:
    models = [scripted(name) for name in ("adherent", "inertial", "negligent")]
    treatment = replace(SWITCH, history="borrowed", parent="others")
    runs = [run for run in plan_runs(models, [treatment], seeds=[1], n_phases=1) if run.treatment.switches]
    pairs = {(run.model.name, run.treatment.parent) for run in runs}
    assert pairs == {(one.name, other.name) for one in models for other in models if one is not other}
    assert all(run.parent_model is not None and run.parent_model.name == run.treatment.parent for run in runs)
    assert plan_runs(models[:1], [treatment], seeds=[1], n_phases=1) == []
