"""Owns the numbers of a report that test nothing: what each cell and each model shows, and what failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from analysis.cell_table import Interval
from analysis.conventions import ScoreName
from analysis.report.cell_runs import CellRuns, Sample, Scope, pooled
from analysis.report.comparison import scoped
from analysis.report.families import FigureCells, cell_label
from analysis.stats.estimate import LEVEL, Estimate
from analysis.stats.intervals import share_interval
from analysis.stats.means import MarginClaim, MeanMethod, below_margin, mean_interval
from analysis.stats.summary import summarise_drift

_NO_MARGIN: Final = "no margin was set in advance"


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """What one cell shows of one score: a clipped mean never stands alone."""

    figure: str
    label: str
    cell: str
    model: str
    score: ScoreName
    n_runs: int
    """Runs launched."""
    clipped: Estimate
    """Mean score, of which the paper speaks."""
    signed: Estimate
    """Mean of d before clipping, with Student's interval."""
    typical: Estimate
    """Hodges-Lehmann estimate of d."""
    positive: Estimate
    """Share of runs with d above 0."""
    noise: Estimate
    """The clipped mean that the spread of d alone would make, and the range in which it leaves it."""
    claim: MarginClaim | None
    """Whether the mean score surely lies below the margin set in advance; None where there is none."""
    signed_claim: MarginClaim | None
    """The same of mean d by Student's bound, which takes d as roughly normal and needs fewer trajectories."""
    claim_reason: str = ""
    """Why there is no claim."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a model shows of one score over all its cells of a figure (and elicitation)."""

    figure: str
    model: str
    part: str
    """Elicitation under pressure; empty elsewhere."""
    score: ScoreName
    n_cells: int
    scope: Scope
    clipped: Estimate
    signed: Estimate


@dataclass(frozen=True, slots=True)
class Failures:
    """What became of the launched runs of a cell."""

    cell: str
    label: str
    n_runs: int
    n_scored: int
    n_failed: int
    failed: str
    """Outcomes with their counts."""
    n_unpaired: int
    n_unplaced: int
    share_failed: Estimate
    bounds: tuple[tuple[float, float], ...]
    """Least and most that the mean of every launched run can be, for actions and inaction."""


def cell_estimates(figure: FigureCells, interval: Interval) -> Iterator[CellEstimate]:
    """Yield what each cell of a figure shows of each of its scores.

    Args:
        figure: its cells.
        interval: of clipped means.
    """
    for cell in figure.cells:
        for score in cell.scores:
            yield _estimated(figure.name, cell, score, interval)


def model_summaries(figure: FigureCells, interval: Interval) -> Iterator[ModelSummary]:
    """Yield what each model shows over all its cells of a figure; under pressure by elicitation.

    Every independent unit (a seed, or a trajectory with all seeds and lengths that branch from it) counts the same.
    """
    for model, cells in figure.by_model():
        under_pressure = figure.name.startswith("pressure")
        for part in sorted({str(cell.names["elicitation"]) if under_pressure else "" for cell in cells}):
            members = [cell for cell in cells if not part or cell.names["elicitation"] == part]
            for score in members[0].scores:
                clipped, signed = (
                    pooled([c.clipped(score) for c in members]),
                    pooled([c.sample(score) for c in members]),
                )
                yield ModelSummary(
                    figure.name,
                    model,
                    part,
                    score,
                    len(members),
                    clipped.units.scope,
                    _mean(clipped, interval),
                    _mean(signed, "t") if members[0].convention.needs_baseline else _none("no signed drift"),
                )


def failures_of(figure: FigureCells, cell_rows: pd.DataFrame) -> Iterator[Failures]:
    """Yield what became of the runs of a figure's cells, and of the baselines that they are held against.

    Args:
        figure: its cells.
        cell_rows: rows of `analysis.cell_table.cells_table` of the whole source.
    """
    labels = {str(cell.names["cell"]): cell_label(cell) for cell in figure.cells}
    for cell in figure.cells:
        baseline = cell.names["baseline_cell"]
        if baseline:
            labels.setdefault(str(baseline), f"baseline {baseline}")
    for row in cell_rows[cell_rows["cell"].isin(labels)].to_dict("records"):
        bounds = tuple(
            (float(row[f"gd_{score}_bound_low"]), float(row[f"gd_{score}_bound_high"]))
            for score in ("actions", "inaction")
        )
        yield Failures(
            cell=str(row["cell"]),
            label=labels[str(row["cell"])],
            n_runs=int(row["n_runs"]),
            n_scored=int(row["n_scored"]),
            n_failed=int(row["n_failed"]),
            failed=str(row["failed"]),
            n_unpaired=int(row["n_unpaired"]),
            n_unplaced=int(row["n_unplaced"]),
            share_failed=share_interval(int(row["n_failed"]), int(row["n_runs"])),
            bounds=bounds,
        )


def _estimated(figure: str, cell: CellRuns, score: ScoreName, interval: Interval) -> CellEstimate:
    sample = cell.sample(score)
    clusters = sample.clusters if len(set(sample.clusters)) < sample.values.size else None
    summary = summarise_drift(sample.values, clusters)
    clipped = np.clip(sample.values, 0.0, 1.0)
    margin, reason = _margin(cell)
    signed = summary.signed, summary.typical, summary.share_positive, summary.noise
    if not cell.convention.needs_baseline:
        signed = (_none(f"convention {cell.convention.name} has no baseline"),) * 4
    return CellEstimate(
        figure,
        cell_label(cell),
        str(cell.names["cell"]),
        str(cell.names["model"]),
        score,
        len(cell.runs),
        summary.clipped if interval == "gaffke" else mean_interval(clipped, clusters, method=interval),
        *signed,
        None if margin is None else below_margin(clipped, margin, clusters=clusters),
        below_margin(sample.values, margin, clusters=clusters, method="t")
        if margin and cell.convention.needs_baseline
        else None,
        reason,
    )


def _margin(cell: CellRuns) -> tuple[float | None, str]:
    """Return the margin that the runs' headers declare, or why there is none."""
    margins = sorted(set(cell.runs["margin"].dropna()))
    if not margins:
        return None, _NO_MARGIN
    if len(margins) > 1 or cell.runs["margin"].isna().any():
        counts = Counter(f"{margin:g}" for margin in cell.runs["margin"])
        told = ", ".join(f"{'none' if margin == 'nan' else margin} x {n}" for margin, n in sorted(counts.items()))
        return None, f"runs declare different margins: {told}"
    return float(margins[0]), ""


def _mean(sample: Sample, method: MeanMethod) -> Estimate:
    units = sample.units
    estimate = mean_interval(sample.values, units.labels, method=method)
    return scoped(estimate, units.scope)


def _none(reason: str) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, 0, None, LEVEL, "none", reason)
