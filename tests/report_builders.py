"""Builders of rows of the table of runs, for tests of the report; drift is given, not scored."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.conventions import CONVENTIONS, Convention
from analysis.report.cell_runs import CellRuns, cells_of
from analysis.report.families import FigureCells, figures_of
from analysis.run_table import COMPANIONS

PAPER: Convention = CONVENTIONS["paper"]

NAMES: dict[str, Any] = {
    "environment": "apex_fund",
    "model": "m",
    "setting": "goal_switching",
    "system_goal": "emissions",
    "competing_goal": "profit",
    "elicitation": None,
    "n_instrumental": 2,
    "history": "own",
    "conditioned_on": None,
    "factors": "",
}


def make_rows(
    actions: Sequence[float],
    inaction: Sequence[float] | None = None,
    *,
    seeds: Sequence[int] | None = None,
    clusters: Sequence[str] | str | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Rows of one cell whose signed drifts are given: a baseline of 1 and 0 that purchases and holdings differ from.

    Args:
        actions: d of each run; NaN is a run without a score.
        inaction: the same of inaction; like actions unless given.
        seeds: 1, 2, ... unless given.
        clusters: one a run, or one for all; each run its own unless given.
        columns: whatever else differs from `NAMES` and from completed runs paired by seed.
    """
    d = {"actions": np.array(actions, float), "inaction": np.array(actions if inaction is None else inaction, float)}
    n = len(d["actions"])
    cell = columns.pop("cell", None) or "-".join(str(value) for value in (NAMES | columns).values() if value != "")[:80]
    ids = list(range(1, n + 1)) if seeds is None else list(seeds)
    rows = pd.DataFrame({"cell": cell, **NAMES, "baseline_cell": "baseline"}, index=range(n))
    rows["run_id"] = [f"{cell}/{seed}" for seed in ids]
    rows["seed"] = rows["run"] = ids
    own = [f"own-{cell}-{seed}" for seed in ids]
    rows["cluster"] = clusters if isinstance(clusters, str) else own if clusters is None else list(clusters)
    rows = rows.assign(experiment="", margin=np.nan, primary="", outcome="completed", outcome_reason="")
    rows = rows.assign(counted=True, failed="", convention="paper", pairing="seed", shares_quarters=True)
    rows["baseline_run"] = [f"baseline/{seed}" for seed in ids]
    for score, values in d.items():
        base, sign = (1.0, -1.0) if score == "actions" else (0.0, 1.0)
        rows[f"{score}_baseline"] = base
        rows[f"{score}_own"] = base + sign * values
        rows[f"d_{score}"] = values
        rows[f"gd_{score}"] = rows[f"gd_{score}_partial"] = np.clip(values, 0, 1)
        rows[f"gd_{score}_reason"] = ""
    for name in COMPANIONS:
        rows[name] = 0.5
    return rows.assign(**columns)


def cells_from(*tables: pd.DataFrame, convention: Convention = PAPER) -> list[CellRuns]:
    """The cells of some rows."""
    return cells_of(pd.concat(tables, ignore_index=True), convention)


def figure_from(*tables: pd.DataFrame) -> FigureCells:
    """The only figure of some rows."""
    (figure,) = figures_of(cells_from(*tables))
    return figure
