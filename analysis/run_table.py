"""Owns the table of runs: one row a run, with its scores, what they are made of, and why one is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pandas as pd

from analysis.companions import (
    attempted_frac,
    instrumental_compliance,
    n_forced,
    onset_action_quarter,
    onset_inaction_quarter,
    recovery_quarter,
    retained_frac,
)
from analysis.conventions import Convention, Drift, score_drift, shares_quarters
from analysis.drift import Quarters, Score, phi, phi_competing, psi, uninvested_frac
from analysis.pairing import Pairing
from analysis.runs import Cell, Run

CELL_COLUMNS: Final = (
    "cell",
    "environment",
    "model",
    "setting",
    "system_goal",
    "competing_goal",
    "elicitation",
    "n_instrumental",
    "history",
    "conditioned_on",
    "factors",
    "baseline_cell",
)
"""What names a cell, in every table."""

ENFORCED: Final = ("guard", "enforce")
"""Factor of cells in which a guard denies calls."""

NO_PHASE: Final = "no instrumental phase"

_QUARTERS: Final[Mapping[str, Callable[[Quarters, Any], Score]]] = {
    "onset_action_quarter": onset_action_quarter,
    "onset_inaction_quarter": onset_inaction_quarter,
    "recovery_quarter": recovery_quarter,
}
QUARTER_COLUMNS: Final = tuple(column for name in _QUARTERS for column in (name, f"{name}_after_switch"))
"""Quarters, and the same counted from the switch: 1 is the first quarter after the instrumental phase."""

COMPANIONS: Final = (
    "phi",
    "phi_competing",
    "psi",
    "attempted_frac",
    "uninvested_frac",
    "retained_frac",
    "instrumental_compliance",
)
"""What stands beside the scores, as shares."""


def runs_table(pairing: Pairing, convention: Convention) -> pd.DataFrame:
    """Return one row a run, baselines and runs without a score included.

    Columns: the cell's (`CELL_COLUMNS`); run_id, seed, run, cluster; what the experiment file declared (experiment,
    margin, primary); outcome with its reason; ``counted``, whether the
    run may enter a mean; ``failed``, the outcome that cost a score; n_quarters (of the window, closed) and
    n_forced_quarters; convention, pairing, baseline_run and shares_quarters; for actions and inaction the measure of
    the run (``*_own``) and of its baseline (``*_baseline``), the signed difference ``d_*``, the score ``gd_*``, and
    ``gd_*_partial``, the score over as much of the window as was closed; `COMPANIONS` and `QUARTER_COLUMNS`. What is
    undefined is missing, and ``*_reason`` says why.

    Args:
        pairing: all runs, from `analysis.pairing.pair_runs`.
        convention: how to score.
    """
    types = dict.fromkeys(QUARTER_COLUMNS, "Int64") | {"margin": "float64"}
    return pd.DataFrame(list(_rows(pairing, convention))).astype(types)


def cell_columns(cell: Cell) -> dict[str, Any]:
    """Return what names a cell, by column."""
    return {
        "cell": cell.cell_id,
        "environment": cell.environment,
        "model": cell.model,
        "setting": cell.setting,
        "system_goal": cell.system_goal,
        "competing_goal": cell.goals.competing.id,
        "elicitation": cell.elicitation,
        "n_instrumental": cell.n_instrumental,
        "history": cell.history,
        "conditioned_on": cell.conditioned_on,
        "factors": " ".join(f"{name}={value}" for name, value in cell.factors),
        "baseline_cell": cell.baseline_id,
    }


def named_convention(pairing: Pairing, convention: Convention) -> dict[str, str]:
    """Return the columns that keep scores of two conventions apart."""
    return {"convention": convention.name, "pairing": pairing.by if convention.needs_baseline else "none"}


def _rows(pairing: Pairing, convention: Convention) -> Iterator[dict[str, Any]]:
    named = named_convention(pairing, convention)
    as_published = pairing.by == "position"
    alone = {"baseline_run": None, "shares_quarters": None}
    for run, baseline in pairing.pairs:
        beside: dict[str, Any] = alone
        if convention.needs_baseline:
            beside = {"baseline_run": baseline.run_id, "shares_quarters": shares_quarters(run, baseline)}
        drift = score_drift(run, baseline if convention.needs_baseline else None, convention)
        yield _row(run, drift, named | beside | {"failed": ""}, convention, scored=as_published or not run.is_outage)
    lone = [(one.run, one.reason, one.failed) for one in pairing.unpaired]
    lone += [(run, "a baseline, which others are held against", "") for run in pairing.baselines]
    for run, reason, failed in lone:
        scored = as_published or not run.is_outage
        if convention.needs_baseline or not scored:
            drift = Drift.undefined(reason)
        else:
            drift, failed = score_drift(run, None, convention), ""
        yield _row(run, drift, named | alone | {"failed": failed}, convention, scored=scored)


def _row(run: Run, drift: Drift, named: Mapping[str, Any], convention: Convention, *, scored: bool) -> dict[str, Any]:
    quarters = run.quarters(run.closed_window)
    row: dict[str, Any] = cell_columns(run.cell) | {
        "run_id": run.run_id,
        "seed": run.seed,
        "run": run.number,
        "cluster": run.cluster_id,
        "experiment": run.declared.experiment,
        "margin": run.declared.margin,
        "primary": run.declared.primary,
        "outcome": run.outcome,
        "outcome_reason": run.outcome_reason,
        "counted": scored and not run.is_partial,
        "n_quarters": len(run.closed_window),
        "n_forced_quarters": n_forced(quarters),
    }
    row |= named
    whole = drift
    if run.is_partial:
        row["failed"] = run.outcome
        whole = Drift.undefined(f"{run.outcome} after {len(run.closed_window)} of {len(run.window)} quarters")
    for name, full, partial in (
        ("actions", whole.actions, drift.actions),
        ("inaction", whole.inaction, drift.inaction),
    ):
        row |= {f"{name}_own": full.own.value, f"{name}_baseline": full.baseline.value, f"d_{name}": full.signed.value}
        row |= {f"gd_{name}": full.clipped.value, f"gd_{name}_reason": full.clipped.reason}
        row[f"gd_{name}_partial"] = partial.clipped.value
    companions = _companions(run, quarters, convention) if scored else _unscored(run)
    for name, score in companions.items():
        row[name], row[f"{name}_reason"] = score
    return row


def _companions(run: Run, quarters: Quarters, convention: Convention) -> dict[str, Score]:
    system, competing = run.cell.goals.system.cluster, run.cell.goals.competing.cluster
    last = run.closed(run.closed_window.last) if quarters else None
    opening = run.closed(run.n_instrumental)
    scores = {
        "phi": phi(quarters, system, funds=convention.funds),
        "phi_competing": phi_competing(quarters, system, funds=convention.funds),
        "psi": psi(last, competing, empty=convention.empty),
        "attempted_frac": attempted_frac(
            quarters, system, enforced=ENFORCED in run.cell.factors, funds=convention.funds
        ),
        "uninvested_frac": uninvested_frac(quarters, system, funds=convention.funds),
        "retained_frac": retained_frac(opening, quarters, competing),
        "instrumental_compliance": instrumental_compliance(opening, competing),
    }
    for name, find in _QUARTERS.items():
        quarter = scores[name] = find(quarters, competing)
        scores[f"{name}_after_switch"] = Score(quarter.value - run.n_instrumental, quarter.reason)
    if not run.cell.switches:
        of_a_switch = ("retained_frac", "instrumental_compliance", *QUARTER_COLUMNS[1::2])
        scores |= dict.fromkeys(of_a_switch, Score.undefined(NO_PHASE))
    return scores


def _unscored(run: Run) -> dict[str, Score]:
    reason = Score.undefined(f"{run.outcome}, never scored")
    return dict.fromkeys((*COMPANIONS, *QUARTER_COLUMNS), reason)
