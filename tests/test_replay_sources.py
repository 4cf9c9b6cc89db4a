"""What can be replayed: a ledger line by line, one imported record, or a folder of them."""

from pathlib import Path

import pytest

from experiments.published_ledger import read_ledger
from experiments.published_runs import LedgerError, PublishedRun
from experiments.replay import main
from experiments.replay_sources import read_any
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs
from tests.published import make_run, write_ledger
from tests.test_imported import parent_value, write_parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parent(tmp_path, parent_value())
    write_parent(tmp_path, parent_value(), "results/env_profit_8_steps_4omini_on_haiku")
    return tmp_path


def test_a_folder_of_records_is_replayed_run_by_run(folder, capsys):
    assert main([str(folder)]) == 0
    told = capsys.readouterr().out
    assert "2 of 2 runs agree" in told
    assert "36 quarters replayed" in told


def test_one_record_is_replayed(folder, capsys):
    (record, *_) = sorted(folder.rglob("*.jsonl"))
    assert main([str(record)]) == 0
    assert "1 of 1 runs agree" in capsys.readouterr().out


def test_a_ledger_is_read_as_before(tmp_path):
    path = write_ledger(tmp_path / "ledger.jsonl", make_run())
    assert [run for _, run in read_any(path)] == list(read_ledger(path))
    assert [where for where, _ in read_any(path)] == [f"{path}:1"]


def test_a_changed_record_is_named_and_the_others_are_replayed(folder, capsys):
    (record, *_) = sorted(folder.rglob("*.jsonl"))
    record.write_text(record.read_text().replace('"amount":5000000.25', '"amount":4000000.25'))
    assert main([str(folder)]) == 1
    told = capsys.readouterr().out
    assert f"{record}: run " in told
    assert "1 of 2 runs agree" in told


def test_records_that_are_damaged_or_not_imported_are_named_and_the_others_are_replayed(folder, capsys):
    (record, *_) = sorted(folder.rglob("*.jsonl"))
    record.write_bytes(record.read_bytes()[:-200])
    (own,) = plan("idle", Treatment(), seeds=(1,))
    sweep_runs(folder / "own", [own])
    assert main([str(folder)]) == 2
    told = capsys.readouterr().out
    assert "1 of 3 runs agree; 2 could not be read" in told
    assert "not the record of an imported run" in told


def test_folders_that_begin_with_an_underscore_are_passed_over(folder):
    write_parent(folder / "_cache", parent_value())
    assert len(list(read_any(folder))) == 2
    assert all(isinstance(run, PublishedRun) for _, run in read_any(folder))


def test_a_folder_without_records_is_bad_input(tmp_path, capsys):
    with pytest.raises(LedgerError, match="no record"):
        list(read_any(tmp_path))
    assert main([str(tmp_path)]) == 2
    assert "no record" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_bad_input(tmp_path):
    assert main([str(tmp_path / "nothing.jsonl")]) == 2
