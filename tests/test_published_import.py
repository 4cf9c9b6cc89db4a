"""`apex import`: every checkpoint is imported or named with its reason, whatever form a clone has."""

import io
import os
import pickle
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis import cli
from analysis.published import places
from analysis.published.command import main
from tests.checkpoints import Anthropic, checkpoint, pickled, write_checkpoint
from tests.published_clones import BASELINE, SWITCH, imported, records, rows_of, switched, table


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return tmp_path / "clone"


def test_a_folder_gives_a_record_for_each_checkpoint(clone, capsys):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    code, out = imported(clone)
    assert code == 0
    assert records(out) == [f"{SWITCH}/checkpoint_run2_15.jsonl", f"{BASELINE}/checkpoint_run2_31.jsonl"]
    assert "2 of 2 checkpoints imported" in capsys.readouterr().out
    assert [row["status"] for row in table(out, "checkpoints.csv")] == ["imported", "imported"]


def test_a_folder_whose_checkpoints_lie_deeper_and_one_that_is_a_cell_itself_are_found(clone):
    write_checkpoint(clone, checkpoint(), cell=f"repository-main/data/{BASELINE}")
    code, out = imported(clone)
    assert (code, records(out)) == (0, [f"{BASELINE}/checkpoint_run2_31.jsonl"])
    code, out = imported(clone / "repository-main" / "data" / BASELINE)
    assert code == 0


def test_an_archive_gives_the_same_records_as_its_folder_without_unpacking_it(clone, tmp_path):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, switched(run=3, dialect=Anthropic()), cell=SWITCH)
    archive = tmp_path / "archive.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(clone, arcname=".")
    _, out = imported(clone)
    assert main(["arike2025", str(archive), str(tmp_path / "other"), "--jobs", "1"]) == 0
    assert records(out) == records(tmp_path / "other")
    for name in records(out):
        assert (out / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert not list(tmp_path.rglob("other/**/*.pkl"))


def test_a_zip_archive_gives_the_same_records_as_its_folder(clone, tmp_path):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, switched(run=3), cell=SWITCH)
    with zipfile.ZipFile(tmp_path / "main.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(clone.rglob("*")):
            archive.write(path, Path("repository-main") / path.relative_to(clone))
    _, out = imported(clone)
    assert main(["arike2025", str(tmp_path / "main.zip"), str(tmp_path / "other"), "--jobs", "1"]) == 0
    assert records(out) == records(tmp_path / "other")
    for name in records(out):
        ours, theirs = ((folder / name).read_text().splitlines() for folder in (out, tmp_path / "other"))
        assert ours[1:] == theirs[1:]


def test_a_zip_member_that_is_damaged_or_unpacks_to_too_much_is_named_and_the_others_are_imported(clone, tmp_path):
    whole, packed = pickled(switched()), tmp_path / "main.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{SWITCH}/checkpoint_run2_15.pkl", whole)
        archive.writestr(f"{SWITCH}/checkpoint_run3_15.pkl", bytes(17 * 2**20), zipfile.ZIP_DEFLATED)
        archive.writestr(f"{SWITCH}/checkpoint_run4_15.pkl", b"to be changed")
    packed.write_bytes(packed.read_bytes().replace(b"to be changed", b"t0 be changed"))
    assert main(["arike2025", str(packed), str(tmp_path / "out"), "--jobs", "1"]) == 1
    reasons = [row["detail"].split(":")[0] for row in rows_of(tmp_path / "out", "not_imported")]
    assert (reasons, len(records(tmp_path / "out"))) == (["too_large", "unreadable"], 1)


def test_a_link_in_an_archive_is_named(clone, tmp_path):
    path = write_checkpoint(clone, switched(), cell=SWITCH)
    path.with_name("checkpoint_run3_15.pkl").symlink_to(path.name)
    with tarfile.open(tmp_path / "archive.tar", "w") as tar:
        tar.add(clone, arcname=".")
    out = tmp_path / "out"
    assert main(["arike2025", str(tmp_path / "archive.tar"), str(out), "--jobs", "1"]) == 1
    assert rows_of(out, "not_imported")[0]["detail"].startswith("unreadable: neither a file nor a folder")


def test_a_folder_of_archives_says_which_they_are(clone, capsys):
    clone.mkdir()
    (clone / "checkpoints.tar.xz").touch()
    assert imported(clone)[0] == 2
    assert "archives are: checkpoints.tar.xz; give the path of one" in capsys.readouterr().err


def test_processes_of_an_import_that_was_killed_end_too_and_the_next_import_is_whole(clone, tmp_path):
    for run in range(1, 121):
        write_checkpoint(clone, pickled(switched()), cell=SWITCH, run=run, n=15)
    out = tmp_path / "out"
    words = [sys.executable, "-m", "analysis.cli", "import", "arike2025", str(clone), str(out), "--jobs", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        wait_until(lambda: bool(records(out)))
        process.kill()
        process.stdout.read()  # ends only when no process holds it open any longer
    assert main([*words[4:-2], "--jobs", "1"]) == 0
    assert len(records(out)) == 120
    assert not list(out.rglob("*.part"))


def wait_until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_an_interrupted_import_says_so(clone, capsys, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("analysis.published.command._Progress.show", interrupted)
    write_checkpoint(clone, switched(), cell=SWITCH)
    assert imported(clone)[0] == 130
    assert "interrupted; what is in" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_records_is_bad_input(clone, tmp_path, capsys):
    write_checkpoint(clone, switched(), cell=SWITCH)
    (tmp_path / "out").touch()
    assert imported(clone)[0] == 2
    assert "out is a file: a folder for the records is expected" in capsys.readouterr().err


def test_several_processes_give_the_same_records_as_one(clone, tmp_path):
    for run in range(1, 8):
        write_checkpoint(clone, switched(run=run), cell=SWITCH)
    _, out = imported(clone)
    code = main(["arike2025", str(clone), str(tmp_path / "other"), "--jobs", "2"])
    assert code == 0
    assert table(out) == table(tmp_path / "other")
    for name in records(out):
        assert (out / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_importing_again_changes_nothing(clone):
    write_checkpoint(clone, switched(), cell=SWITCH)
    _, out = imported(clone)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    code, out = imported(clone)
    assert code == 0
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_broken_and_malicious_files_are_named_and_all_others_are_imported(clone, tmp_path, capsys):
    whole = pickled(switched())
    executed = tmp_path / "executed"
    write_checkpoint(clone, switched(), cell=SWITCH)
    broken = {
        "truncated": whole[: len(whole) // 2],
        "refused": pickle.dumps({"model": Evil(executed)}),
        "damaged": b"\x80\x04\x94.",
        "misshapen": pickle.dumps({"model": "gpt-4o"}),
    }
    for run, data in enumerate(broken.values(), 5):
        write_checkpoint(clone, data, cell=SWITCH, run=run, n=15)
    write_checkpoint(clone, whole, cell="results/env_profit_nonsense_words", run=1, n=15)
    write_checkpoint(clone, whole, cell=SWITCH, run=1, n=15).rename(clone / SWITCH / "checkpoint_final.pkl")
    code, out = imported(clone)
    assert code == 1
    assert records(out) == [f"{SWITCH}/checkpoint_run2_15.jsonl"]
    assert not executed.exists()
    reasons = Counter(row["detail"].split(":")[0] for row in rows_of(out, "not_imported"))
    assert reasons == {**dict.fromkeys(broken, 1), "misnamed": 2}
    told = capsys.readouterr().out
    assert "1 of 7 checkpoints imported" in told
    assert "not imported: results/env_profit_4_steps_4o_on_4o/checkpoint_run6_15.pkl: refused: " in told
    statuses = Counter(row["status"] for row in table(out, "checkpoints.csv"))
    assert statuses == {"imported": 1, **dict.fromkeys(broken, 1), "misnamed": 2}


def test_a_file_that_is_too_large_is_not_read(clone, monkeypatch):
    path = write_checkpoint(clone, b"", cell=SWITCH, run=3, n=15)
    with path.open("wb") as file:
        file.truncate(17 * 2**20)
    write_checkpoint(clone, switched(), cell=SWITCH)
    code, out = imported(clone)
    assert code == 1
    assert rows_of(out, "not_imported")[0]["detail"] == "too_large: 17825792 bytes: at most 16777216 are read"


def test_two_files_of_one_root_folder_and_name_are_not_mixed(clone):
    write_checkpoint(clone / "a", switched(), cell=SWITCH)
    write_checkpoint(clone / "b", switched(amount=1), cell=SWITCH)
    code, out = imported(clone)
    assert (code, len(records(out))) == (1, 1)
    assert rows_of(out, "not_imported")[0]["detail"].startswith("same_name: a/results/")


def test_a_damaged_archive_keeps_what_was_read_and_says_so(clone, tmp_path):
    for run in range(1, 5):
        write_checkpoint(clone, switched(run=run, system_message=os.urandom(20_000).hex()), cell=SWITCH)
    archive = tmp_path / "archive.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(clone, arcname=".")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    out = tmp_path / "out"
    assert main(["arike2025", str(archive), str(out), "--jobs", "1"]) == 1
    assert 1 <= len(records(out)) < 4
    assert rows_of(out, "not_imported")[0]["detail"].startswith("damaged_archive: ")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("no tar")])
def test_a_place_without_checkpoints_is_bad_input(clone, make, capsys):
    make(clone)
    code, _ = imported(clone)
    assert code == 2
    assert str(clone) in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_a_number_of_processes_below_one_is_refused(clone, jobs):
    with pytest.raises(SystemExit) as caught:
        main(["arike2025", str(clone), "out", "--jobs", jobs])
    assert caught.value.code == 2


def test_the_command_is_one_of_apex(clone, capsys):
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    out = clone.parent / "out"
    assert cli.main(["import", "arike2025", str(clone), str(out), "--jobs", "1"]) == 0
    assert "1 of 1 checkpoints imported" in capsys.readouterr().out


def test_hidden_folders_are_passed_over(clone):
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    write_checkpoint(clone, checkpoint(run=3), cell=f".git/{BASELINE}")
    assert places.count_in(clone) == 1


def test_progress_is_a_line_that_a_terminal_rewrites(clone, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("analysis.published.command.LIVE_EVERY_S", 0.0)
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, b"\x80\x04", cell=SWITCH, run=1, n=15)
    assert imported(clone)[0] == 1
    assert "\r\x1b[2K2 of 2 checkpoints, 1 not imported, 0 s" in screen.getvalue()
