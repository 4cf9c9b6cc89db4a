"""Owns the tables of cells: means over runs with their intervals, whole windows and quarter by quarter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.conventions import Convention, drift_curve, one_convention
from analysis.pairing import Pairing
from analysis.run_table import CELL_COLUMNS, COMPANIONS, cell_columns, named_convention
from analysis.runs import Cell
from analysis.stats.estimate import Estimate
from analysis.stats.failures import failure_bounds
from analysis.stats.means import mean_interval

Interval = Literal["gaffke", "anderson", "bca", "paper_wald"]
INTERVALS: Final = get_args(Interval)

SCORES: Final = ("actions", "inaction")


def cells_table(runs: pd.DataFrame, *, interval: Interval = "gaffke") -> pd.DataFrame:
    """Return one row a cell: means over its runs, with intervals, and every run that has no score counted.

    Columns: the cell's; convention, pairing, shares_quarters; n_runs, n_scored, n_clusters (of the scored), n_unpaired
    and ``unpaired``, n_failed and ``failed`` (outcome x count); of both scores ``gd_*`` the mean, ``*_se`` (population
    sd over the root of n, as the paper has it), ``*_low``, ``*_high``, ``*_n``, ``*_method``, ``*_note``, ``*_live``
    (without runs that an outage struck, which only pairing by position scores at all), ``*_bound_low`` and
    ``*_bound_high`` (where the mean of all launched runs lies, whatever the failed ones would have scored) and
    ``*_partial`` (the mean with the closed quarters of runs that ended early); of ``d_*`` the mean and Student's
    interval; the means of the companions, and the interval of retained_frac.

    Args:
        runs: rows of one convention, from `analysis.run_table.runs_table`.
        interval: of means of shares. Runs of one instrumental trajectory are one cluster, and ``gd_*`` is then the mean
            over trajectories; ``paper_wald`` takes runs as independent.

    Raises:
        ValueError: for rows of more than one convention.
    """
    one_convention(runs)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    _, numbers = np.unique(columns["cell"].astype(str), return_inverse=True)
    cells = [np.flatnonzero(numbers == number) for number in pd.unique(numbers)]
    return pd.DataFrame(
        [_cell(_Rows({name: column[rows] for name, column in columns.items()}), interval) for rows in cells]
    )


def curves_table(
    pairing: Pairing, convention: Convention, *, setting: str = "adversarial_pressure", interval: Interval = "gaffke"
) -> pd.DataFrame:
    """Return one row a cell and quarter: mean GD_actions when the window is cut there.

    Columns: the cell's; convention, pairing, quarter; ``gd_actions`` with ``_se``, ``_low``, ``_high``, ``_n``,
    ``_method``, ``_note``. The last quarter has the numbers of `cells_table`.

    Args:
        pairing: all runs, from `analysis.pairing.pair_runs`.
        convention: how to score.
        setting: whose cells.
        interval: of the means.
    """
    curves: dict[Cell, list[tuple[str, list[float]]]] = {}
    for run, baseline in pairing.pairs:
        if run.cell.setting == setting:
            curve = drift_curve(run, baseline if convention.needs_baseline else None, convention)
            curves.setdefault(run.cell, []).append((run.cluster_id, curve.clipped))
    rows = []
    for cell, members in curves.items():
        clusters = [cluster for cluster, _ in members]
        named = cell_columns(cell) | named_convention(pairing, convention)
        for place in range(cell.n_evaluation):
            values = np.array([curve[place] if place < len(curve) else np.nan for _, curve in members])
            estimate = _mean(values, clusters, interval)
            rows.append(
                named | {"quarter": cell.n_instrumental + place + 1} | _estimate("gd_actions", estimate, values)
            )
    return pd.DataFrame(rows)


class _Rows(NamedTuple):
    """The runs of one cell, column by column; arrays, since a data frame is slow to cut into many."""

    columns: Mapping[str, NDArray[Any]]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where one is missing."""
        return self.columns[name].astype(float)

    def texts(self, name: str) -> list[str]:
        """Return a column of texts."""
        return [str(text) for text in self.columns[name]]


def _cell(rows: _Rows, interval: Interval) -> dict[str, Any]:
    columns = rows.columns
    counted = columns["counted"].astype(bool)
    scored = counted & ~(np.isnan(rows.numbers("gd_actions")) & np.isnan(rows.numbers("gd_inaction")))
    failed = [text for text in rows.texts("failed") if text]
    needs_pair = (columns["setting"] != "baseline") & (columns["pairing"] != "none")
    lone = columns["run_id"][needs_pair & pd.isna(columns["baseline_run"])]
    cell: dict[str, Any] = {name: columns[name][0] for name in (*CELL_COLUMNS, "convention", "pairing")} | {
        "shares_quarters": columns["shares_quarters"][scored][0] if scored.any() else None,
        "n_runs": len(counted),
        "n_scored": int(scored.sum()),
        "n_clusters": len(set(columns["cluster"][scored])),
        "n_unpaired": len(lone),
        "unpaired": " ".join(lone),
        "n_failed": len(failed),
        "failed": ", ".join(f"{outcome} x {n}" for outcome, n in Counter(failed).items()),
    }
    clusters = rows.texts("cluster")
    for name in SCORES:
        cell |= _score(rows, f"gd_{name}", interval)
        signed = rows.numbers(f"d_{name}")
        cell |= _estimate(f"d_{name}", mean_interval(signed, _shared(clusters), method="t"), signed)
    for name in COMPANIONS:
        values = np.where(counted, rows.numbers(name), np.nan)
        cell[name] = _average(values)
    retained = np.where(counted, rows.numbers("retained_frac"), np.nan)
    return cell | _estimate("retained_frac", _mean(retained, clusters, interval), retained)


def _score(rows: _Rows, name: str, interval: Interval) -> dict[str, Any]:
    values = rows.numbers(name)
    launched = values[~np.isnan(values) | (rows.columns["failed"] != "")]
    bounds = failure_bounds(launched, len(launched))
    estimate = _mean(values, rows.texts("cluster"), interval)
    if not estimate.n:
        (reason, _), *_ = Counter(rows.texts(f"{name}_reason")).most_common(1)
        estimate = replace(estimate, reason=reason)
    return _estimate(name, estimate, values) | {
        f"{name}_live": _average(values[rows.columns["outcome"] == "completed"]),
        f"{name}_bound_low": bounds.low,
        f"{name}_bound_high": bounds.high,
        f"{name}_partial": _average(rows.numbers(f"{name}_partial")),
    }


def _average(values: NDArray[np.float64]) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else np.nan


def _shared(clusters: Sequence[str]) -> Sequence[str] | None:
    """Return the clusters, or None where each run is its own and so all are independent."""
    return None if len(set(clusters)) == len(clusters) else clusters


def _mean(values: NDArray[np.float64], clusters: Sequence[str], interval: Interval) -> Estimate:
    """Return the mean of shares with its interval: the one place that says how an interval is made."""
    return mean_interval(values, _shared(clusters), method=interval)


def _estimate(name: str, estimate: Estimate, values: NDArray[np.float64]) -> dict[str, Any]:
    defined = values[~np.isnan(values)]
    se = float(defined.std() / np.sqrt(defined.size)) if defined.size else np.nan
    return {
        name: estimate.value,
        f"{name}_se": se,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_n": estimate.n,
        f"{name}_method": estimate.method,
        f"{name}_note": estimate.reason,
    }
