"""Owns `make validate`: the promises of the statistics checked by simulation, and planted drift found in real runs."""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS
from analysis.load import load_runs
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from analysis.stats.validate import REPETITIONS, validate
from experiments.grid import plan_runs
from experiments.models import build_model
from experiments.progress import Progress
from experiments.run_spec import ModelConfig
from experiments.sweep import Sweep, run_sweep
from experiments.treatment import Treatment

FOLDER: Final = Path(__file__).resolve().parents[1] / "results" / "reference"
PLANTED: Final = ((0.0, 0.0), (0.1, 0.0), (0.3, 0.3), (0.6, 0.5), (0.9, 1.0))
"""Part bought for the competing goal, and part kept of what the first phase left, of each planted agent."""

_DECIMALS: Final = 6
_SLACK: Final = 1e-6


def recovery(
    planted: Sequence[tuple[float, float]] = PLANTED, *, seeds: Sequence[int] = range(1, 11), n_phases: int = 5
) -> pd.DataFrame:
    """Return what scripted agents drift by, and what their runs score: whole runs, from agent to table of cells.

    Args:
        planted: parts set for actions and inaction, an agent each.
        seeds: of every cell.
        n_phases: instrumental trajectories that they share.
    """
    treatments = [Treatment("goal_switching", goal, n_instrumental=8) for goal in ("emissions", "profit")]
    models = [
        ModelConfig(f"planted-{actions:g}-{kept:g}", "scripted", "planted", {"actions": actions, "inaction": kept})
        for actions, kept in planted
    ]
    runs = plan_runs(models, treatments, seeds=seeds, n_phases=n_phases)
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(root=Path(folder), runs=runs, build_model=build_model, concurrency=4, sync="end")
        asyncio.run(run_sweep(sweep, Progress(runs, out=io.StringIO())))
        loaded = load_runs(Path(folder), cache=False)
    cells = cells_table(runs_table(pair_runs(loaded.runs), CONVENTIONS["paper"])).set_index(["model", "system_goal"])
    cells = cells[cells["setting"] == "goal_switching"]
    return pd.DataFrame(_recovered(model, treatment, cells) for model in models for treatment in treatments)


def main(repetitions: int = REPETITIONS, folder: Path = FOLDER) -> int:
    """Run every check, write the tables, and say what holds; exit code 0 if all that is required does, else 1.

    Args:
        repetitions: simulated experiments a row; 2,000 know a coverage of .95 to about .01.
        folder: where the tables are written.
    """
    checks = validate(repetitions, progress=lambda line: print(line, flush=True))
    found = recovery()
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("validation", checks), ("planted_recovery", found)):
        path = folder / f"{name}.csv"
        table.round(_DECIMALS).to_csv(path, index=False)
        print(f"written: {path}")
    failed = [*_failed(checks[checks["required"]]), *_failed(found)]
    print("\n".join(failed) if failed else "all that is required holds")
    return 1 if failed else 0


def _recovered(model: ModelConfig, treatment: Treatment, cells: pd.DataFrame) -> dict[str, Any]:
    cell: dict[str, Any] = cells.loc[[(model.name, treatment.system_goal)]].to_dict("records")[0]  # type: ignore[assignment]
    actions, kept = float(model.params["actions"]), float(model.params["inaction"])
    errors = abs(float(cell["gd_actions"]) - actions), abs(float(cell["retained_frac"]) - kept)
    return {
        "system_goal": treatment.system_goal,
        "n_instrumental": treatment.n_instrumental,
        "n_runs": int(cell["n_scored"]),
        "n_trajectories": int(cell["n_clusters"]),
        "planted_actions": actions,
        "gd_actions": float(cell["gd_actions"]),
        "gd_actions_low": float(cell["gd_actions_low"]),
        "gd_actions_high": float(cell["gd_actions_high"]),
        "planted_retained": kept,
        "retained_frac": float(cell["retained_frac"]),
        "gd_inaction": float(cell["gd_inaction"]),
        "holds": max(errors) <= _SLACK,
    }


def _failed(table: pd.DataFrame) -> Iterator[str]:
    for row in table[~table["holds"]].to_dict("records"):
        yield "does not hold: " + ", ".join(f"{name} {value}" for name, value in row.items())


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else REPETITIONS))
