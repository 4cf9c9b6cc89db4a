"""Sweeps whose process is killed: what was on disk is kept, and going on gives the records of an undisturbed sweep."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.record import read_record
from tests.path import contents

COMMAND = [
    sys.executable,
    "-m",
    "analysis.cli",
    "run",
    "name=kill",
    "model=[inertial,random]",
    "treatment=none",
    "grid.setting=[adversarial_pressure,combined]",
    "grid.n_instrumental=[3,6]",
    "treatment.n_evaluation=6",
    "n_phases=2",
    "concurrency=4",
]


def start(root: Path, n_seeds: int = 3) -> subprocess.Popen[bytes]:
    command = [*COMMAND, f"results_dir={root}", f"seeds={n_seeds}"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    root = tmp_path_factory.mktemp("undisturbed")
    assert start(root).wait(timeout=120) == 0
    return contents(root)


def has_begun(root: Path) -> bool:
    return any(root.rglob("*.jsonl"))


def n_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*.jsonl"))


def kill_again_and_again(root: Path, n_kills: int, n_seeds: int) -> int:
    """Start a sweep and kill it at a random moment after it went on, again and again; return how often it was alive."""
    rng, n_alive = random.Random(n_kills), 0
    for _ in range(n_kills):
        process = start(root, n_seeds)
        begun = n_bytes(root)
        while process.poll() is None and n_bytes(root) == begun:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.12))
        n_alive += process.poll() is None
        process.kill()
        process.wait()
    return n_alive


def test_sweep_that_is_killed_again_and_again_ends_with_equal_records(
    tmp_path: Path, undisturbed: dict[str, list[dict[str, object]]]
) -> None:
    assert kill_again_and_again(tmp_path, n_kills=4, n_seeds=3) >= 1
    assert start(tmp_path).wait(timeout=120) == 0
    assert contents(tmp_path) == undisturbed


@pytest.mark.slow
def test_sweep_killed_at_thirty_moments_ends_with_equal_records(tmp_path: Path) -> None:
    assert start(tmp_path / "undisturbed", 60).wait(timeout=120) == 0
    assert kill_again_and_again(tmp_path / "killed", n_kills=30, n_seeds=60) >= 25
    assert start(tmp_path / "killed", 60).wait(timeout=120) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")


def test_interrupted_sweep_ends_cleanly_and_goes_on(
    tmp_path: Path, undisturbed: dict[str, list[dict[str, object]]]
) -> None:
    process = start(tmp_path)
    while not has_begun(tmp_path):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (0, 130)
    for path in tmp_path.rglob("*.jsonl"):
        assert not read_record(path).torn
    assert start(tmp_path).wait(timeout=120) == 0
    assert contents(tmp_path) == undisturbed


def test_two_processes_on_one_folder_do_every_run_once(
    tmp_path: Path, undisturbed: dict[str, list[dict[str, object]]]
) -> None:
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        process.wait(timeout=120)
    assert contents(tmp_path) == undisturbed
    for path in tmp_path.rglob("*.jsonl"):
        assert not list(read_record(path).of_type("resumed"))
