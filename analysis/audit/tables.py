"""Owns the tables over audits: one row a run, one a cell, and divergence by model and length of the first phase."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import pandas as pd

from analysis.audit.divergence import Status
from analysis.audit.mechanism import MECHANISMS
from analysis.audit.run_audit import Coverage, RunAudit, by_cell
from analysis.run_table import cell_columns

STATUSES: Final[tuple[Status, ...]] = ("diverged", "attempted", "kept")


def runs_table(audits: Sequence[RunAudit]) -> pd.DataFrame:
    """Return one row a run: what `RunAudit.to_json` holds, nested parts as JSON texts."""
    return pd.DataFrame([_flat(one.to_json()) for one in audits])


def cells_table(audits: Sequence[RunAudit]) -> pd.DataFrame:
    """Return one row a cell.

    Columns: what names the cell; n_runs, n_diverged, n_attempted and n_kept; n_incomplete, runs whose first divergent
    event has unknown parents; n_unaware, runs with divergent purchases only before they could know of the goal;
    median_onset_after_switch over diverged runs; n_recovered; n_hard, runs that broke a hard rule; and a column a
    mechanism.
    """
    rows = []
    for cell, members in by_cell(audits):
        statuses = Counter(one.status for one in members)
        mechanisms = Counter(one.mechanism for one in members if one.mechanism)
        onsets = [one.path.onset - one.path.first_quarter + 1 for one in members if one.path.onset is not None]
        rows.append(
            cell_columns(cell)
            | {"n_runs": len(members)}
            | {f"n_{status}": statuses[status] for status in STATUSES}
            | {
                "n_incomplete": sum(one.instrumentation_incomplete for one in members),
                "n_unaware": sum(bool(one.path.purchases()) and not one.path.purchases(knew=True) for one in members),
                "median_onset_after_switch": median(onsets) if onsets else None,
                "n_recovered": sum(one.path.recovery is not None for one in members),
                "n_hard": sum(any(found.hard for found in one.findings) for one in members),
            }
            | {name: mechanisms[name] for name in MECHANISMS}
        )
    return pd.DataFrame(rows)


def by_model_and_length(audits: Sequence[RunAudit]) -> pd.DataFrame:
    """Return diverged of all runs by setting and model (rows) and quarters before the evaluation (columns)."""
    counts: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for one in audits:
        row = counts.setdefault((one.cell.setting, one.model), {})
        n_diverged, n = row.get(one.cell.n_instrumental, (0, 0))
        row[one.cell.n_instrumental] = (n_diverged + (one.status == "diverged"), n + 1)
    lengths = sorted({length for row in counts.values() for length in row})
    return pd.DataFrame(
        {"setting": setting, "model": model}
        | {str(length): "{} of {}".format(*row[length]) if length in row else "" for length in lengths}
        for (setting, model), row in sorted(counts.items())
    )


def total_coverage(audits: Sequence[RunAudit]) -> Coverage:
    """Return the coverage of all audited windows together."""
    return sum((one.coverage for one in audits), Coverage())


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if name == "first":
            came_from = (value or {}).pop("came_from", None) if value else None
            flat |= {f"first_{key}": inner for key, inner in (value or dict.fromkeys(_FIRST)).items()}
            flat["first_came_from"] = None if came_from is None else json.dumps(came_from)
        elif isinstance(value, dict | list):
            flat[name] = json.dumps(value)
        else:
            flat[name] = value
    return flat


_FIRST: Final = ("quarter turn event_id tool resource_raw resource amount_usd reason severity committed knew").split()
