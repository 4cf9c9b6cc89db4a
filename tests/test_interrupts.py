"""What can happen to a sweep's process beside a kill: interrupts, a full disk, a kill while it resumes, company."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.record import read_record
from tests.path import contents
from tests.peer_process import PeerProcess, peer_process, run_command, start
from tests.test_kill import COMMAND, has_begun, n_bytes
from tests.test_kill_wire import requests_on_disk
from tests.wire import KEY, KEY_ENV

GRID = ["name=t", "treatment=none", "grid.setting=[combined]", "grid.n_instrumental=[2]", "treatment.n_evaluation=3"]


@pytest.fixture(scope="module")
def slow_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    with peer_process(tmp_path_factory.mktemp("slow"), settings="SLOW") as peer:
        yield peer


def begin(command: list[str], **fields: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=os.environ | {KEY_ENV: KEY},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **fields,
    )


def wait_for_turns(root: Path, n_turns: int) -> None:
    """Wait until records hold so many turns."""
    for _ in range(3000):
        lines = [line for path in root.rglob("*.jsonl") for line in path.read_text().splitlines()]
        if sum(line.startswith('{"type":"turn"') for line in lines) >= n_turns:
            return
        time.sleep(0.02)
    pytest.fail("the sweep does not come to its first turns")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_interrupt_lets_running_turns_finish_and_says_how_to_go_on(
    number: signal.Signals, slow_peer: PeerProcess, tmp_path: Path
) -> None:
    began_s = time.time()
    command = run_command(slow_peer, "chat", *GRID, "seeds=2", f"results_dir={tmp_path}")
    process = begin(command)
    wait_for_turns(tmp_path, 2)
    process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped: interrupted by the user\nThe same command goes on from here." in said
    assert "Traceback" not in errors
    records = [read_record(path) for path in tmp_path.rglob("*.jsonl")]
    assert {record.outcome for record in records} <= {"cancelled", "completed"}
    entries = slow_peer.entries(since_s=began_s)
    assert all(entry.answered for entry in entries)
    assert {entry.digest for entry in entries} == set(requests_on_disk(tmp_path)), "an answer was thrown away"


def test_second_interrupt_ends_at_once_and_leaves_whole_records(tmp_path: Path) -> None:
    with peer_process(tmp_path, settings="STALLED") as peer:
        process = begin(run_command(peer, "anthropic", *GRID, "seeds=2", f"results_dir={tmp_path}"))
        while not has_begun(tmp_path / "t"):
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "the first interrupt waits for running turns"
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "The same command goes on from here." in said
    assert "Traceback" not in errors
    for path in (tmp_path / "t").rglob("*.jsonl"):
        assert not read_record(path).torn


def test_jobs_of_an_interrupted_multirun_that_have_not_begun_are_left_out(
    slow_peer: PeerProcess, tmp_path: Path
) -> None:
    words = [*GRID, "seeds=[1],[2]", f"results_dir={tmp_path}", "--multirun"]
    process = begin(run_command(slow_peer, "chat", *words))
    wait_for_turns(tmp_path, 1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    seeds = {read_record(path).header["config"]["seed"] for path in tmp_path.rglob("*.jsonl")}
    assert seeds == {1}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("undisturbed")
    assert start([*COMMAND, f"results_dir={root}", "seeds=2"]).wait(timeout=120) == 0
    return contents(root)


def test_sweep_killed_while_it_resumes_ends_with_equal_records(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    command, rng = [*COMMAND, f"results_dir={tmp_path}", "seeds=2"], random.Random(5)
    process = start(command)
    while n_bytes(tmp_path) < 100_000:
        time.sleep(0.002)
    process.kill()
    process.wait()
    for _ in range(3):
        # Rebuilding begins as soon as the configuration is read, which is what most of this time goes into.
        process = start(command)
        seen = n_bytes(tmp_path)
        while process.poll() is None and n_bytes(tmp_path) == seen:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        process.wait()
    assert start(command).wait(timeout=120) == 0
    assert contents(tmp_path) == undisturbed


def test_full_disk_ends_the_sweep_with_a_word_and_whole_records(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    command = [*COMMAND, f"results_dir={tmp_path}", "seeds=2"]
    # No file may grow beyond this: to the sweep that is a disk that has no room for the next line.
    full = begin(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)))
    said, errors = full.communicate(timeout=120)
    assert full.returncode == 1
    assert "File too large" in said
    assert "The same command goes on from here." in said
    assert "Traceback" not in errors
    for path in tmp_path.rglob("*.jsonl"):
        assert not read_record(path).torn
        assert path.stat().st_size <= 40_000
    assert start(command).wait(timeout=120) == 0
    assert contents(tmp_path) == undisturbed


def test_two_processes_on_one_folder_ask_nothing_twice(tmp_path: Path) -> None:
    with peer_process(tmp_path) as peer:
        command = run_command(peer, "chat", *GRID, "seeds=3", "n_phases=2", f"results_dir={tmp_path}/results")
        both = [start(command), start(command)]
        for process in both:
            process.wait(timeout=120)
        assert start(command).wait(timeout=120) == 0
        entries = peer.entries()
    written = requests_on_disk(tmp_path / "results")
    assert len(entries) == sum(map(len, written.values()))
    assert {entry.digest for entry in entries} == set(written)


def test_jobs_that_start_in_the_same_second_keep_their_folders_apart(tmp_path: Path) -> None:
    words = ["treatment=baseline", "treatment.n_evaluation=2", "name=t", f"results_dir={tmp_path}"]
    jobs = [start([*COMMAND[:4], *words, f"seeds=[{seed}]"]) for seed in (1, 2, 3)]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0, 0]
    saved = list((tmp_path / "t" / "_hydra").rglob("overrides.yaml"))
    assert len(saved) == 3
    assert {path.read_text().partition("seeds=")[2][:3] for path in saved} == {"[1]", "[2]", "[3]"}
    assert len(list(tmp_path.rglob("*.jsonl"))) == 3
