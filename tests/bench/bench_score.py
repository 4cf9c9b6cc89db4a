"""Scoring: reading a source, and scoring what was read (runs, pairs, cells, the paper's intervals)."""

import os
import time
from pathlib import Path

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from analysis.runs import Run
from analysis.sources import read_source
from tests.policies import NEGLIGENT, played_pair

TARGET_S = 1.0
REPEATS = 3


def main() -> None:
    folder = os.environ.get("APEX_ARIKE2025")
    start = time.perf_counter()
    runs = read_source(Path(folder) / "ledger.jsonl.gz").runs if folder else simulated()
    named = "the shared ledger" if folder else "simulated runs, for APEX_ARIKE2025 is unset"
    print(f"{len(runs)} runs ({named}) read in {time.perf_counter() - start:.2f} s")
    for name in CONVENTIONS:
        print(f"scored in {name}: {min(seconds(runs, name) for _ in range(REPEATS)):.2f} s (target {TARGET_S:g} s)")


def seconds(runs: tuple[Run, ...], name: str) -> float:
    start = time.perf_counter()
    cells_table(runs_table(pair_runs(runs), CONVENTIONS[name]), interval="paper_wald")
    return time.perf_counter() - start


def simulated() -> tuple[Run, ...]:
    seeds = range(1, 301)
    return tuple(run for seed in seeds for run in played_pair(NEGLIGENT, "goal_switching", seed, n_instrumental=16))
