"""Many machines: jobs of a multirun that Hydra's submitit and Ray launchers put into processes of their own.

They need the launchers, which `make setup-cluster` installs; `make slow` runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments.status import ExperimentStatus, status_of
from tests.path import contents

LAUNCHERS = {"submitit_local": "hydra_submitit_launcher", "ray": "hydra_ray_launcher"}

AGENT = """
import os, signal, time
import experiments.rollout

def agent(prompt):
    time.sleep(0.05)
    seed, quarter = prompt.position.seed, prompt.position.period
    if os.environ.get("APEX_TEST_FAULTS") and quarter == 3:
        if seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 3:
            experiments.rollout.call_line = None  # a bug of the harness
    return {"calls": [{"name": "finish_quarter"}]}
"""


def launch(launcher: str, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a multirun of four jobs, one a seed."""
    if find_spec("hydra_plugins") is None or find_spec(f"hydra_plugins.{LAUNCHERS[launcher]}") is None:
        pytest.skip(f"the launcher {launcher} is not installed: make setup-cluster")
    (folder / "four_seeds.py").write_text(AGENT)
    command = [sys.executable, "-m", "analysis.cli", "run", "--multirun", f"hydra/launcher={launcher}", "name=t"]
    command += [f"results_dir={folder}/results", "model=python", "target=four_seeds:agent", "treatment=baseline"]
    command += ["treatment.n_evaluation=8", "seeds=[1],[2],[3],[4]", *words]
    path = os.pathsep.join([str(folder), str(Path(__file__).parent.parent)])
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )


def ended(folder: Path) -> ExperimentStatus:
    """Where the experiment stands when no process writes it any more."""
    for _ in range(600):
        (status,) = status_of(folder / "results")
        if not status.states["running"] and not status.states["not begun"]:
            return status
        time.sleep(0.1)
    pytest.fail(f"jobs are still running after a minute: {status.states}")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_jobs_elsewhere_write_one_folder_of_the_same_records(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    done = launch(launcher, tmp_path)
    assert done.returncode == 0, done.stderr
    assert ended(tmp_path).states == {"done": 4}
    here = launch_here(tmp_path)
    assert here.returncode == 0, here.stderr
    assert contents(tmp_path / "results" / "t") == contents(tmp_path / "here" / "t")


def launch_here(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "analysis.cli", "run", "name=t", f"results_dir={folder}/here", "model=python"]
    command += ["target=four_seeds:agent", "treatment=baseline", "treatment.n_evaluation=8", "seeds=4"]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=os.environ | {"PYTHONPATH": str(folder)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("claims", ["flock", "heartbeat"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_job_that_raises_and_job_that_is_killed_leave_the_others_alone(
    launcher: str, claims: str, tmp_path: Path
) -> None:
    done = launch(launcher, tmp_path, f"claims={claims}", APEX_TEST_FAULTS="1")
    assert done.returncode != 0
    status = ended(tmp_path)
    assert status.states == {"done": 2, "resumable": 2}
    assert not status.is_complete
    ((_, run_ids),) = status.why.items()
    assert [run_id[-3:] for run_id in run_ids] == ["002", "003"]
    again = launch(launcher, tmp_path, f"claims={claims}")
    assert again.returncode == 0, again.stderr
    assert ended(tmp_path).states == {"done": 4}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_job_that_is_not_complete_is_told_by_the_exit_code(launcher: str, tmp_path: Path) -> None:
    done = launch(launcher, tmp_path, "limits.run.max_hours=0.00003")
    assert done.returncode == 1
    assert "a job ended with exit code 1; `apex status" in done.stderr
    assert ended(tmp_path).states == {"resumable": 4}
