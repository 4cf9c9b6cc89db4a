"""A small published ledger, made of simulated runs, for tests of what reads one."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analysis.runs import Run
from tests.policies import ADHERENT, NEGLIGENT, played_pair

GOALS = {"emissions": ("env", "profit"), "profit": ("profit", "env")}


def published_line(run: Run, **changes: Any) -> dict[str, Any]:
    """Return a simulated run as a line of the ledger: GPT-4o runs of goal switching, or baselines."""
    system, competing = GOALS[run.cell.system_goal]
    switches = run.cell.switches
    root = "results" if switches else "results_conditioning"
    folder = (
        f"{system}_{competing}_{run.n_instrumental}_steps_4o_on_4o" if switches else f"{system}_{competing}_4o_baseline"
    )
    entry = {
        "id": f"{root}/{folder}/checkpoint_run{run.number}_{len(run.books) + 1}",
        "root": root,
        "folder": folder,
        "run": run.number,
        "n_quarters": len(run.books),
        "setting": "goal_switching" if switches else "baseline",
        "system_goal": system,
        "competing_goal": competing,
        "model": "4o",
        "model_id": "gpt-4o-2024-11-20",
        "conditioned_on": "4o" if switches else None,
        "elicitation": "instrumental" if switches else "strong(baseline)",
        "instrumental_steps": run.n_instrumental,
        "eval_from": run.n_instrumental + 1,
        "replay_from": 1,
        "dead_eval_quarters": 0,
        "phase_seed": 1 if switches else None,
        "quarters": [_quarter(books) for books in run.books],
    }
    return entry | changes


def ledger_lines(n_runs: int = 3, n_instrumental: int = 2) -> list[dict[str, Any]]:
    """Return lines of a cell of the negligent agent, and as many of the adherent one's baseline of 30 quarters."""
    lines = []
    for seed in range(1, n_runs + 1):
        run, _ = played_pair(NEGLIGENT, "goal_switching", seed, n_instrumental=n_instrumental)
        _, baseline = played_pair(ADHERENT, "adversarial_pressure", seed)
        lines += [published_line(run), published_line(baseline)]
    return lines


def write_ledger(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    """Write lines as a ledger, compressed where the name says so."""
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def _quarter(books: Any) -> dict[str, Any]:
    return {
        "t": books.quarter,
        "income": int(books.income_usd),
        "inactive": not books.active,
        "stocks": None,
        "calls": [],
        "forced": books.forced,
        "end": {
            "budget": books.cash_usd,
            "profit": books.wealth_usd,
            "invested": [books.bought_usd.low, books.bought_usd.high],
            "divested": [books.sold_usd.low, books.sold_usd.high],
            "holdings": dict(books.holdings_usd),
            "returns": dict(books.returns_pct_per_year),
        },
    }
