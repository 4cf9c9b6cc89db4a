from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.errors import RecordError, RunLocked
from experiments.record import SCHEMA, RecordWriter, read_record


def write(path: Path, n_opened: int = 2) -> Path:
    with RecordWriter(path) as writer:
        writer.write("run", schema=SCHEMA, run_id="r")
        for quarter in range(1, n_opened + 1):
            writer.write("opened", quarter=quarter, text="Quarter")
    return path


def test_lines_are_numbered_and_read_back(tmp_path: Path) -> None:
    record = read_record(write(tmp_path / "a" / "r.jsonl"))
    assert [line["seq"] for line in record.lines] == [0, 1, 2]
    assert record.header["run_id"] == "r"
    assert not record.torn


def test_torn_last_line_is_passed_over_by_readers_and_cut_by_the_writer(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"turn","seq":3,"ti')
    assert read_record(path).torn
    assert len(read_record(path).lines) == 3
    with RecordWriter(path) as writer:
        writer.write("opened", quarter=3, text="again")
    record = read_record(path)
    assert not record.torn
    assert record.lines[3]["quarter"] == 3


def test_record_cut_in_the_middle_of_its_first_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"type":"run","se')
    with RecordWriter(path) as writer:
        assert writer.existing is None
        writer.write("run", schema=SCHEMA)
    assert len(read_record(path).lines) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 2: no JSON"),
        ('{"type":"turnip","seq":1}', "line 2: type 'turnip' is not known"),
        ('{"type":"opened","seq":5}', "line 2: sequence number 5, expected 1"),
        ('{"type":"run","seq":1}', "line 2: a record has one `run` line"),
        ("[1, 2]", "line 2: type 'list' is not known"),
        ("", "line 2: no JSON"),
    ],
)
def test_damaged_line_is_named_with_file_and_number(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path / "r.jsonl")
    lines = path.read_text().splitlines()
    lines[1] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match=said) as caught:
        read_record(path)
    assert str(path) in str(caught.value)


def test_other_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"type": "run", "seq": 0, "schema": 99}) + "\n")
    with pytest.raises(RecordError, match="schema version 99; this version reads 1"):
        read_record(path)


def test_second_writer_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path), pytest.raises(RunLocked, match="another process writes this run"):
        RecordWriter(path)
    RecordWriter(path).close()


HOLD_AND_DIE = """
import os, sys
from pathlib import Path
from experiments.record import RecordWriter
writer = RecordWriter(Path(sys.argv[1]))
os._exit(0)
"""


def test_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    subprocess.run([sys.executable, "-c", HOLD_AND_DIE, str(path)], check=True)
    RecordWriter(path).close()


def test_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        RecordWriter(tmp_path / "results" / "r.jsonl")


def test_lone_surrogates_and_control_characters_come_back_as_they_were(tmp_path: Path) -> None:
    text = "a\ud800b\x00c\x1b\u2028"
    path = write(tmp_path / "r.jsonl", 0)
    with RecordWriter(path) as writer:
        writer.write("opened", quarter=1, text=text)
    path.read_bytes().decode("utf-8")
    assert read_record(path).lines[1]["text"] == text


def test_not_a_number_never_reaches_a_record(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", 0)
    with RecordWriter(path) as writer, pytest.raises(ValueError, match="JSON"):
        writer.write("opened", quarter=float("nan"))
    assert len(read_record(path).lines) == 1


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from experiments.record import RecordWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = RecordWriter(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    writer.write("opened", quarter=1, text="x" * 5000)
except OSError as error:
    print(error.strerror)
"""


def test_line_that_does_not_fit_on_the_disk_leaves_no_trace(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", 0)
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), str(len(before) + 1000)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "File too large"
    assert path.read_bytes() == before


def test_unfinished_record_has_no_end_until_the_last_line_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl")
    assert read_record(path).outcome == "unfinished"
    with RecordWriter(path) as writer:
        writer.write("ended", outcome="cancelled", reason="")
        writer.write("resumed")
        writer.write("opened", quarter=3, text="")
    assert read_record(path).outcome == "unfinished"
    with RecordWriter(path) as writer:
        writer.write("ended", outcome="completed", reason="")
    assert read_record(path).outcome == "completed"
