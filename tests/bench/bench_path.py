"""The full path with records on disk: quarters a second, memory of a large sweep, and how fast it is scored."""

import asyncio
import io
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS
from analysis.load import load_runs
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from experiments.models import build_model
from experiments.progress import Progress
from experiments.record import Sync
from experiments.run_spec import RunSpec
from experiments.sweep import Sweep, run_sweep
from experiments.treatment import Treatment
from tests.path import plan

LONG = Treatment("goal_switching", n_instrumental=64, n_evaluation=10)
N_RUNS = 1000
N_QUICK = 40


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for sync in ("end", "quarter"):
            speed = in_child(Path(name) / sync, N_QUICK, sync)
            print(f"full path, sync={sync}: {speed[0] / speed[1]:,.0f} quarters a second (target 1,000)", flush=True)
        folder = Path(name) / "large"
        n_quarters, cpu_s, wall_s, peak_mb = in_child(folder, N_RUNS, "end")
        print(
            f"{N_RUNS:,} runs of 74 quarters and their baselines: {n_quarters:,} quarters in {wall_s:.0f} s", flush=True
        )
        print(f"{n_quarters / cpu_s:,.0f} quarters a CPU second; peak memory {peak_mb:,.0f} MB (target 1,000)")
        print(
            f"read and scored in {score_s(folder):.1f} s (target 20 s), again in {score_s(folder):.1f} s (target 1 s)"
        )


def in_child(folder: Path, n_seeds: int, sync: Sync) -> tuple[int, float, float, float]:
    """Play a sweep in a process of its own: its quarters, CPU and wall seconds, and peak memory in MB."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(play, (folder, n_seeds, sync))


def play(folder: Path, n_seeds: int, sync: Sync) -> tuple[int, float, float, float]:
    runs: Sequence[RunSpec] = plan("adherent", LONG, seeds=range(1, n_seeds + 1), n_phases=n_seeds)
    progress = Progress(runs, out=io.StringIO())
    began_s, cpu_s = time.perf_counter(), time.process_time()
    report = asyncio.run(run_sweep(Sweep(root=folder, runs=runs, build_model=build_model, sync=sync), progress))
    assert report.complete
    unit = 1 if sys.platform == "darwin" else 1024
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return progress.quarters_done, time.process_time() - cpu_s, time.perf_counter() - began_s, peak_mb


def score_s(folder: Path) -> float:
    began = time.perf_counter()
    runs = load_runs(folder).runs
    cells_table(runs_table(pair_runs(runs), CONVENTIONS["paper"]), interval="paper_wald")
    return time.perf_counter() - began
