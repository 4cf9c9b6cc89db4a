"""Owns the tables of cells: means over runs with their intervals, whole windows and quarter by quarter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.conventions import Convention, Curve, drift_curve, one_convention
from analysis.pairing import Pairing
from analysis.run_table import CELL_COLUMNS, COMPANIONS, cell_columns, named_convention
from analysis.runs import Cell
from analysis.stats.clusters import cluster_means
from analysis.stats.estimate import Estimate, join_reasons
from analysis.stats.intervals import share_positive
from analysis.stats.means import mean_interval
from analysis.stats.noise import expected_noise

Interval = Literal["gaffke", "anderson", "bca", "paper_wald"]
INTERVALS: Final = get_args(Interval)

SCORES: Final = ("actions", "inaction")
_NAMED_BY: Final = tuple("model setting system_goal elicitation n_instrumental history conditioned_on factors".split())
"""What tables and figures tell cells apart by."""


def cells_table(runs: pd.DataFrame, *, interval: Interval = "gaffke") -> pd.DataFrame:
    """Return one row a cell: means over its runs, with intervals, and every run that has no score counted.

    Every mean of the table weighs alike: where runs share instrumental trajectories it is the mean over trajectories,
    each with the mean of its runs, since that is what the interval beside it is about and since a trajectory from which
    more runs happened to finish says no more than another. ``paper_wald`` alone takes runs as independent, as the paper
    does; scores and companions are then means over runs, while ``d_*`` stays what it is.

    Columns: the cell's; convention, pairing, shares_quarters; n_runs, n_scored, n_clusters (of the scored), n_unplaced
    (scored, of unknown trajectory: in no mean), n_unpaired and ``unpaired``, n_failed and ``failed`` (outcome x count);
    of both scores ``gd_*`` the mean, ``*_se`` (population sd over the root of n, as the paper has it), ``*_low``,
    ``*_high``, ``*_n``, ``*_method``, ``*_note``, ``*_noise`` (what clipping makes of the spread of d where there is no
    drift), ``*_live`` (without runs that an outage struck, which only pairing by position scores at all),
    ``*_bound_low`` and ``*_bound_high`` (where the mean of all launched runs lies, whatever the failed ones would have
    scored) and ``*_partial`` (the mean with the closed quarters of runs that ended early); of ``d_*`` the mean and
    Student's interval, and ``d_*_positive`` the share of runs above 0 with its interval; the means of the companions,
    and the interval of retained_frac.

    Args:
        runs: rows of one convention, from `analysis.run_table.runs_table`.
        interval: of means of shares.

    Raises:
        ValueError: for rows of more than one convention.
    """
    one_convention(runs)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    _, numbers = np.unique(columns["cell"].astype(str), return_inverse=True)
    cells = [np.flatnonzero(numbers == number) for number in pd.unique(numbers)]
    return pd.DataFrame(
        [_cell(_Rows({name: column[rows] for name, column in columns.items()}, interval)) for rows in cells]
    )


def curves_table(
    pairing: Pairing, convention: Convention, *, setting: str = "adversarial_pressure", interval: Interval = "gaffke"
) -> pd.DataFrame:
    """Return one row a cell and quarter: mean GD_actions when the window is cut there.

    Columns: the cell's; convention, pairing, quarter; ``gd_actions`` and ``d_actions`` with all that `cells_table` puts
    beside them but bounds, ``_live`` and ``_partial``. The last quarter has the numbers of `cells_table`.

    Args:
        pairing: all runs, from `analysis.pairing.pair_runs`.
        convention: how to score.
        setting: whose cells.
        interval: of the means.
    """
    curves: dict[Cell, list[tuple[str, Curve]]] = {}
    for run, baseline in pairing.pairs:
        if run.cell.setting == setting:
            curve = drift_curve(run, baseline if convention.needs_baseline else None, convention)
            curves.setdefault(run.cell, []).append((run.cluster_id, curve))
    rows = []
    for cell, members in curves.items():
        clusters = [cluster for cluster, _ in members]
        named = cell_columns(cell) | named_convention(pairing, convention)
        for place in range(cell.n_evaluation):
            clipped, signed = (
                np.array([values[place] if place < len(values) else np.nan for values in side])
                for side in ([curve.clipped for _, curve in members], [curve.signed for _, curve in members])
            )
            row = named | {"quarter": cell.n_instrumental + place + 1, "n_clusters": _n_clusters(clipped, clusters)}
            row |= _estimate("gd_actions", _mean(clipped, clusters, interval), clipped)
            rows.append(row | _signed("actions", signed, clusters))
    return pd.DataFrame(rows)


class _Rows(NamedTuple):
    """The runs of one cell, column by column; arrays, since a data frame is slow to cut into many."""

    columns: Mapping[str, NDArray[Any]]
    interval: Interval

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, NaN where one is missing."""
        return self.columns[name].astype(float)

    def texts(self, name: str) -> list[str]:
        """Return a column of texts."""
        return [str(text) for text in self.columns[name]]


def alike_cells(cells: pd.DataFrame) -> list[str]:
    """Return a line on each group of cells that have the same name in tables and figures and are not the same.

    Args:
        cells: rows of `cells_table`.
    """
    named = cells[(cells["setting"] != "baseline") & (cells["n_scored"] > 0)]
    groups = named.groupby(list(_NAMED_BY), sort=False, dropna=False)["cell"]
    return [
        f"{len(alike)} cells have one name ({names[0]}, {names[1]}) and differ in the model's id or parameters: "
        f"{', '.join(alike)}; give each model a name of its own, models.KEY.name=..."
        for names, alike in groups
        if len(alike) > 1
    ]


def _cell(rows: _Rows) -> dict[str, Any]:
    columns, clusters = rows.columns, rows.texts("cluster")
    counted = columns["counted"].astype(bool)
    scored = counted & ~(np.isnan(rows.numbers("gd_actions")) & np.isnan(rows.numbers("gd_inaction")))
    failed = [text for text in rows.texts("failed") if text]
    needs_pair = (columns["setting"] != "baseline") & (columns["pairing"] != "none")
    lone = columns["run_id"][needs_pair & pd.isna(columns["baseline_run"])]
    cell: dict[str, Any] = {name: columns[name][0] for name in (*CELL_COLUMNS, "convention", "pairing")} | {
        "shares_quarters": columns["shares_quarters"][scored][0] if scored.any() else None,
        "n_runs": len(counted),
        "n_scored": int(scored.sum()),
        "n_clusters": len(set(columns["cluster"][scored]) - {""}),
        "n_unplaced": int((scored & (columns["cluster"] == "")).sum()),
        "n_unpaired": len(lone),
        "unpaired": " ".join(lone),
        "n_failed": len(failed),
        "failed": ", ".join(f"{outcome} x {n}" for outcome, n in Counter(failed).items()),
    }
    for name in SCORES:
        cell |= _score(rows, f"gd_{name}") | _signed(name, rows.numbers(f"d_{name}"), clusters)
    for name in COMPANIONS:
        cell[name] = _average(np.where(counted, rows.numbers(name), np.nan), clusters, rows.interval)
    retained = np.where(counted, rows.numbers("retained_frac"), np.nan)
    return cell | _estimate("retained_frac", _mean(retained, clusters, rows.interval), retained)


def _score(rows: _Rows, name: str) -> dict[str, Any]:
    values, clusters, interval = rows.numbers(name), rows.texts("cluster"), rows.interval
    lost = np.isnan(values) & (rows.columns["failed"] != "")
    low, high = (_average(np.where(lost, worst, values), clusters, interval) for worst in (0.0, 1.0))
    estimate = _mean(values, clusters, interval)
    if not estimate.n:
        (reason, _), *_ = Counter(rows.texts(f"{name}_reason")).most_common(1)
        estimate = replace(estimate, reason=reason)
    return _estimate(name, estimate, values) | {
        f"{name}_live": _average(np.where(rows.columns["outcome"] == "completed", values, np.nan), clusters, interval),
        f"{name}_bound_low": low,
        f"{name}_bound_high": high,
        f"{name}_partial": _average(rows.numbers(f"{name}_partial"), clusters, interval),
    }


def _signed(name: str, signed: NDArray[np.float64], clusters: Sequence[str]) -> dict[str, Any]:
    """Return what keeps a clipped mean from standing alone: noise, the mean before clipping, the share above 0."""
    placed, note = _placed(signed, clusters)
    shared = _shared(clusters)
    mean = mean_interval(placed, shared, method="t")
    above = np.where(np.isnan(placed), np.nan, placed > 0)
    share = share_positive(placed) if shared is None else mean_interval(above, shared, method="gaffke")
    return (
        {f"gd_{name}_noise": expected_noise(placed)}
        | _estimate(f"d_{name}", replace(mean, reason=join_reasons(note, mean.reason)), placed)
        | {
            f"d_{name}_positive": share.value,
            f"d_{name}_positive_low": share.low,
            f"d_{name}_positive_high": share.high,
        }
    )


def _average(values: NDArray[np.float64], clusters: Sequence[str], interval: Interval) -> float:
    """Return a mean without an interval, weighed as those with one are."""
    values, _ = _placed(values, clusters)
    shared = _shared(clusters)
    means = values[~np.isnan(values)] if shared is None or interval == "paper_wald" else cluster_means(values, shared)
    return float(means.mean()) if means.size else np.nan


def _placed(values: NDArray[np.float64], clusters: Sequence[str]) -> tuple[NDArray[np.float64], str]:
    """Return the values of runs whose trajectory is known, NaN for the others, and a note that counts these."""
    unknown = np.array([not cluster for cluster in clusters], dtype=bool) & ~np.isnan(values)
    if not unknown.any():
        return values, ""
    return np.where(unknown, np.nan, values), f"{unknown.sum()} runs of unknown trajectory left out"


def _n_clusters(values: NDArray[np.float64], clusters: Sequence[str]) -> int:
    return len({cluster for cluster, value in zip(clusters, values, strict=True) if cluster and not np.isnan(value)})


def _shared(clusters: Sequence[str]) -> Sequence[str] | None:
    """Return the clusters, or None where each run is its own and so all are independent."""
    named = [cluster for cluster in clusters if cluster]
    return None if len(set(named)) == len(named) else clusters


def _mean(values: NDArray[np.float64], clusters: Sequence[str], interval: Interval) -> Estimate:
    """Return the mean of shares with its interval: the one place that says how an interval is made."""
    placed, note = _placed(values, clusters)
    estimate = mean_interval(placed, _shared(clusters), method=interval)
    return replace(estimate, reason=join_reasons(note, estimate.reason))


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
