"""Both ways of keeping a record to one writer, and what becomes of the claim of one that is gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from experiments.errors import RunLocked
from experiments.locking import Claims, Heartbeat, is_claimed
from experiments.record import SCHEMA, RecordWriter, read_record
from experiments.runner import record_path
from experiments.treatment import Treatment
from tests.path import contents, plan, sweep_runs

KINDS = get_args(Claims)
RUNS = plan("random", Treatment("combined", n_instrumental=2, n_evaluation=3))

HOLD = """
import sys, time
from pathlib import Path
from experiments.record import RecordWriter
writer = RecordWriter(Path(sys.argv[1]), claims=sys.argv[2])
writer.write("run", schema=1)
print("held", flush=True)
time.sleep(60)
"""


def held_by_another(path: Path, kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path), kind], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def claim_of_another_host(record: Path, age_s: float) -> Path:
    """A claim file as another host makes it, renewed so many seconds ago."""
    file = record.with_name(record.name + ".claim")
    file.write_text(json.dumps({"token": "theirs", "host": "elsewhere", "space": "x", "pid": 1, "renewed": ""}))
    os.utime(file, (time.time() - age_s, time.time() - age_s))
    return file


@pytest.mark.parametrize("kind", KINDS)
def test_second_writer_is_refused_while_the_first_lives(kind: Claims, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, claims=kind), pytest.raises(RunLocked, match="another process writes this run"):
        RecordWriter(path, claims=kind)
    RecordWriter(path, claims=kind).close()
    assert [file.name for file in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("kind", KINDS)
def test_claim_of_a_killed_process_of_this_host_is_free_at_once(kind: Claims, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = held_by_another(path, kind)
    assert is_claimed(path)
    with pytest.raises(RunLocked):
        RecordWriter(path, claims=kind)
    process.kill()
    process.communicate()
    assert not is_claimed(path)
    with RecordWriter(path, claims=kind) as writer:
        assert writer.existing is not None


@pytest.mark.parametrize("kind", KINDS)
def test_looking_at_a_claim_does_not_disturb_writers(kind: Claims, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            is_claimed(path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(300):
            RecordWriter(path, claims=kind).close()
    finally:
        done.set()
        watcher.join()
    assert not is_claimed(path)


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_give_equal_records_whatever_the_claim(kind: Claims, tmp_path: Path) -> None:
    assert sweep_runs(tmp_path / "usual", RUNS).complete
    assert sweep_runs(tmp_path / "this", RUNS, claims=kind).complete
    assert contents(tmp_path / "this") == contents(tmp_path / "usual")
    assert not list(tmp_path.rglob("*.claim"))


def test_claim_of_another_host_holds_while_it_is_renewed_and_is_taken_over_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    claim_of_another_host(path, age_s=50)
    assert is_claimed(path)
    with pytest.raises(RunLocked):
        RecordWriter(path, claims="heartbeat")
    claim_of_another_host(path, age_s=70)
    assert not is_claimed(path)
    with RecordWriter(path, claims="heartbeat"):
        assert json.loads(Path(f"{path}.claim").read_text())["pid"] == os.getpid()
    assert [file.name for file in tmp_path.iterdir()] == ["r.jsonl"]


def test_claim_is_renewed_for_as_long_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    held = Heartbeat(path, stale_after_s=0.4)
    time.sleep(1.0)
    with pytest.raises(RunLocked):
        Heartbeat(path, stale_after_s=0.4)
    held.check()
    held.release()
    Heartbeat(path, stale_after_s=0.4).release()


def test_writer_whose_claim_was_taken_over_writes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, claims="heartbeat") as writer:
        writer.write("run", schema=SCHEMA)
        theirs = claim_of_another_host(path, age_s=0)
        with pytest.raises(RunLocked, match="has taken this run over"):
            writer.write("resumed")
    assert len(read_record(path).lines) == 1
    assert json.loads(theirs.read_text())["token"] == "theirs"


def test_claim_file_that_was_never_filled_is_given_up_when_its_time_is_over(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    file = claim_of_another_host(path, age_s=0)
    file.write_text("")
    with pytest.raises(RunLocked):
        RecordWriter(path, claims="heartbeat")
    os.utime(file, (time.time() - 70, time.time() - 70))
    RecordWriter(path, claims="heartbeat").close()


def test_process_of_the_same_number_on_another_host_is_not_taken_for_gone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    file = claim_of_another_host(path, age_s=0)
    for host, space in ((socket.gethostname(), "another container"), ("elsewhere", "")):
        file.write_text(json.dumps({"token": "theirs", "host": host, "space": space, "pid": 2**22 + 1}))
        assert is_claimed(path)


def test_of_many_that_take_over_a_claim_exactly_one_gets_it(tmp_path: Path) -> None:
    for attempt in range(40):
        path = tmp_path / f"{attempt}.jsonl"
        claim_of_another_host(path, age_s=100)
        barrier, won = threading.Barrier(8), []

        def grab(path: Path = path, barrier: threading.Barrier = barrier, won: list[Any] = won) -> None:
            barrier.wait()
            try:
                won.append(Heartbeat(path, stale_after_s=60))
            except RunLocked:
                pass

        threads = [threading.Thread(target=grab) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        holders = []
        for heartbeat in won:
            try:
                heartbeat.check()
                holders.append(heartbeat)
            except RunLocked:
                pass
        assert len(holders) == 1
        for heartbeat in won:
            heartbeat.release()


def test_phase_whose_writer_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    assert sweep_runs(tmp_path / "whole", RUNS).complete
    phase = RUNS[0].phase_spec()
    assert phase is not None
    path = record_path(tmp_path / "killed", phase)
    path.parent.mkdir(parents=True)
    whole = record_path(tmp_path / "whole", phase).read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:7]))
    claim_of_another_host(path, age_s=100)
    assert sweep_runs(tmp_path / "killed", RUNS, claims="heartbeat").complete
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
