"""Clones of the paper's public repository, built by hand, and what an import of one has left."""

import csv
from pathlib import Path
from typing import Any

from analysis.published.command import main
from apex_env.market import Market
from tests.checkpoints import checkpoint, first_of

SWITCH = "results/env_profit_4_steps_4o_on_4o"
BASELINE = "results_conditioning/env_profit_4o_baseline"
PRESSURE = "results_no_conditioning/env_profit_4o"


def switched(run: int = 2, *, amount: float = 5_000_000, n_instrumental: int = 4, **keys: Any) -> dict[str, Any]:
    high = first_of("high", Market(1), 1)
    plan = {1: [[("buy_stock", {"stock": high, "amount": amount}), ("finish_quarter", {})]]}
    return checkpoint(plan, run=run, n_quarters=n_instrumental + 10, n_instrumental=n_instrumental, **keys)


def imported(clone: Path, *, jobs: int = 1) -> tuple[int, Path]:
    out = clone.parent / "out"
    return main(["arike2025", str(clone), str(out), "--jobs", str(jobs)]), out


def table(out: Path, name: str = "quality.csv") -> list[dict[str, str]]:
    with (out / name).open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of(out: Path, kind: str) -> list[dict[str, str]]:
    return [row for row in table(out) if row["kind"] == kind]


def records(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*.jsonl"))
