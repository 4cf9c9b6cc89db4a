"""Owns the grid: from factor levels to treatments, and from treatments to the runs and phases that are to be played."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from experiments.errors import InputError
from experiments.treatment import ModelConfig, RunSpec, Treatment, digest


def expand(factors: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]) -> list[Treatment]:
    """Return the treatments of a grid: every combination of factor levels, each once, in the order of the factors.

    A level that a setting does not know (a phase length without a switch, an elicitation with one) is left out for it.

    Raises:
        InputError: for an unknown factor or a level that is not allowed.
    """
    known = [spec.name for spec in fields(Treatment)]
    for name in (*factors, *fixed):
        if name not in known:
            raise InputError(f"treatment factor {name!r} is not known: {', '.join(known)}")
    treatments: dict[Treatment, None] = {}
    for levels in itertools.product(*factors.values()):
        values = dict(fixed) | dict(zip(factors, levels, strict=True))
        if values.get("setting", "baseline") in ("goal_switching", "combined"):
            values.pop("elicitation", None)
        else:
            for name in ("n_instrumental", "history", "parent", "before", "portfolio", "instrumental_goal"):
                values.pop(name, None)
        treatments.setdefault(Treatment(**values))
    return list(treatments)


def plan_runs(
    models: Iterable[ModelConfig],
    treatments: Iterable[Treatment],
    *,
    seeds: Iterable[int],
    n_phases: int,
    parents: Mapping[str, ModelConfig] | None = None,
) -> list[RunSpec]:
    """Return every run of a grid, with the baselines that its cells are held against, each once.

    Run ``s`` uses phase ``1 + (s - 1) mod n_phases``; a matched baseline has the same seed and phase.

    Args:
        models: models of the grid.
        treatments: treatments of the grid.
        seeds: seeds of each cell.
        n_phases: number of instrumental trajectories that the seeds of a cell share.
        parents: models by label whose phases can be borrowed, beside those of the grid.

    Raises:
        InputError: for fewer than one phase, a seed that is not allowed, or a parent that is not known.
    """
    models = list(models)
    known = {model.name: model for model in models} | dict(parents or {})
    if isinstance(n_phases, bool) or not isinstance(n_phases, int) or n_phases < 1:
        raise InputError(f"n_phases {n_phases!r} is not allowed: 1 or more")
    planned: dict[str, RunSpec] = {}
    for model, treatment, seed in itertools.product(models, list(treatments), list(seeds)):
        if treatment.parent is not None and treatment.parent not in known:
            raise InputError(f"parent {treatment.parent!r} is not known: {', '.join(known)}")
        shares_phase = treatment.switches or treatment.n_instrumental > 0
        phase_seed = 1 + (seed - 1) % n_phases if shares_phase else None
        try:
            parent = known[treatment.parent] if treatment.parent is not None else None
            spec = RunSpec(model, treatment, seed, phase_seed, parent_model=parent)
        except ValueError as error:
            raise InputError(str(error)) from error
        for run in (spec, spec.baseline_spec()):
            if run is not None:
                planned.setdefault(run.run_id + digest(run.identity()), run)
    return list(planned.values())


def plan_phases(runs: Iterable[RunSpec]) -> list[RunSpec]:
    """Return the instrumental phases that runs branch from, each once and as long as its longest run needs."""
    phases: dict[str, RunSpec] = {}
    for run in runs:
        phase = run.phase_spec()
        if phase is None:
            continue
        known = phases.get(phase.run_id)
        if known is None or known.treatment.n_instrumental < phase.treatment.n_instrumental:
            phases[phase.run_id] = phase
    return list(phases.values())
