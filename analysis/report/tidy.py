"""Owns the report as tables of full precision: a row a test, a cell, a model, a cell's failures, a result beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis.report.estimates import CellEstimate, Failures, ModelSummary
from analysis.report.report import FigureReport, Report
from analysis.stats.estimate import Estimate


def tidy_tables(report: Report) -> dict[str, pd.DataFrame]:
    """Return every number of a report by name of its table; a table without rows is left out."""
    tables = {
        "tests": pd.DataFrame(_tests(report)),
        "curves": pd.DataFrame(_curves(report)),
        "cells": pd.DataFrame(_cell(one) for figure in report.figures for one in figure.estimates),
        "models": pd.DataFrame(_model(one) for figure in report.figures for one in figure.summaries),
        "failures": pd.DataFrame(_failed(figure, one) for figure in report.figures for one in figure.failures),
        "sensitivity": pd.DataFrame(asdict(one) for figure in report.figures for one in figure.others),
    }
    return {name: _whole_counts(table) for name, table in tables.items() if len(table)}


def _whole_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Keep counts of clusters whole where others in the column are missing."""
    return table.astype({name: "Int64" for name in table.columns if str(name).endswith("_clusters")})


def _tests(report: Report) -> Iterator[dict[str, Any]]:
    for figure in report.figures:
        for answer in figure.answers:
            for one in answer.comparisons:
                yield {
                    "figure": figure.name,
                    "question": answer.question,
                    "role": "primary" if answer.question == figure.primary.question else "secondary",
                    "comparison": one.label,
                    "model": one.model,
                    "score": one.score,
                    "cells": " ".join(one.cells),
                    "design": one.design,
                    "speaks_of": one.scope,
                    **_estimate("estimate", one.estimate),
                    **_estimate("effect", one.effect),
                    **_estimate("shift", one.shift),
                    "test": one.test.method,
                    "alternative": one.test.alternative,
                    "statistic": one.test.statistic,
                    "n_units": one.test.n,
                    "exact": one.test.exact,
                    "p": one.test.p,
                    "family_size": answer.family.size,
                    "correction": answer.family.correction,
                    "p_adjusted": answer.family.p_adjusted[one.key],
                    "p_of_sweep": report.p_of_sweep[figure.name, answer.question, one.key],
                    "reason": one.test.reason,
                    "note": one.note,
                }


def _curves(report: Report) -> Iterator[dict[str, Any]]:
    for figure in report.figures:
        for answer in figure.answers:
            for one in answer.likenesses:
                row: dict[str, Any] = {
                    "figure": figure.name,
                    "comparison": one.label,
                    "n_lengths": one.n_lengths,
                }
                yield row | _estimate("pearson", one.pearson) | {"pearson_p": one.pearson_p} | _estimate("icc", one.icc)


def _cell(one: CellEstimate) -> dict[str, Any]:
    row: dict[str, Any] = {
        "figure": one.figure,
        "cell": one.cell,
        "label": one.label,
        "model": one.model,
        "score": one.score,
        "n_runs": one.n_runs,
    }
    for name, estimate in (
        ("gd", one.clipped),
        ("d", one.signed),
        ("typical_d", one.typical),
        ("positive", one.positive),
        ("noise", one.noise),
    ):
        row |= _estimate(name, estimate)
    row["margin"] = None if one.claim is None else one.claim.margin
    for name, claim in (("gd", one.claim), ("d", one.signed_claim)):
        row[f"{name}_upper_bound"] = None if claim is None else claim.upper
        row[f"{name}_below_margin"] = None if claim is None else claim.holds
    return row | {"margin_reason": one.claim_reason}


def _model(one: ModelSummary) -> dict[str, Any]:
    row: dict[str, Any] = {
        "figure": one.figure,
        "model": one.model,
        "elicitation": one.part,
        "score": one.score,
        "n_cells": one.n_cells,
        "speaks_of": one.scope,
    }
    return row | _estimate("gd", one.clipped) | _estimate("d", one.signed)


def _failed(figure: FigureReport, one: Failures) -> dict[str, Any]:
    row: dict[str, Any] = {
        "figure": figure.name,
        "cell": one.cell,
        "label": one.label,
        "n_runs": one.n_runs,
        "n_scored": one.n_scored,
        "n_failed": one.n_failed,
        "failed": one.failed,
        "n_unpaired": one.n_unpaired,
        "n_unplaced": one.n_unplaced,
        **_estimate("share_failed", one.share_failed),
    }
    for score, (low, high) in zip(("actions", "inaction"), one.bounds, strict=True):
        row |= {f"gd_{score}_bound_low": low, f"gd_{score}_bound_high": high}
    return row


def _estimate(name: str, estimate: Estimate) -> dict[str, Any]:
    return {
        name: estimate.value,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_n": estimate.n,
        f"{name}_clusters": estimate.n_clusters,
        f"{name}_method": estimate.method,
        f"{name}_reason": estimate.reason,
    }
