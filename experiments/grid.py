"""Owns the grid: from factor levels to treatments, and from treatments to the runs and phases that are to be played."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from experiments.errors import InputError
from experiments.run_spec import ModelConfig, ParentRecord, RunSpec, digest
from experiments.treatment import Treatment

OTHERS: Final = "others"
"""A parent of this name stands for every other model of the experiment."""


@dataclass(frozen=True, slots=True)
class Lent:
    """A phase that is not played, because a record holds it."""

    model: ModelConfig
    record: ParentRecord
    phase_seed: int


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
    lent: Mapping[Treatment, Lent] | None = None,
) -> list[RunSpec]:
    """Return every run of a grid, with the baselines and the donors of dose that its runs need, each once.

    Run ``s`` uses phase ``1 + (s - 1) mod n_phases``, or the one that it is lent; a matched baseline has the same seed
    and phase.

    Args:
        models: models of the grid.
        treatments: treatments of the grid.
        seeds: seeds of each cell.
        n_phases: number of instrumental trajectories that the seeds of a cell share.
        parents: models by label whose phases can be borrowed and whose dose can be dealt, beside those of the grid.
        lent: by treatment, the record that its runs go on from.

    Raises:
        InputError: for fewer than one phase, a seed that is not allowed, or a parent or donor that is not known.
    """
    models, treatments, seeds = list(models), list(treatments), list(seeds)
    known = {model.name: model for model in models} | dict(parents or {})
    if isinstance(n_phases, bool) or not isinstance(n_phases, int) or n_phases < 1:
        raise InputError(f"n_phases {n_phases!r} is not allowed: 1 or more")
    planned: dict[str, RunSpec] = {}
    for model, treatment in _cells(models, treatments, known):
        there = (lent or {}).get(treatment)
        lenders = _lenders(treatment, known, there)
        for seed in seeds:
            shares_phase = treatment.switches or treatment.n_instrumental > 0
            phase_seed = 1 + (seed - 1) % n_phases if shares_phase else None
            try:
                spec = RunSpec(model, treatment, seed, phase_seed if there is None else there.phase_seed, **lenders)
            except ValueError as error:
                raise InputError(str(error)) from error
            for run in _with_needed(spec):
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


def groups_of(runs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Return runs in groups that need nothing of each other: those of a phase together, and a run with its donor."""
    runs = list(runs)
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for run in runs:
        donor = run.donor_spec()
        for needed in (run.cluster_id, *([donor.run_id] if donor is not None else [])):
            root[find(run.run_id)] = find(needed)
    groups: dict[str, list[RunSpec]] = {}
    for run in runs:
        groups.setdefault(find(run.run_id), []).append(run)
    return list(groups.values())


def _cells(
    models: Sequence[ModelConfig], treatments: Sequence[Treatment], known: Mapping[str, ModelConfig]
) -> Iterator[tuple[ModelConfig, Treatment]]:
    for model, treatment in itertools.product(models, treatments):
        if treatment.parent != OTHERS:
            yield model, treatment
            continue
        for label in known:
            if label != model.name:
                yield model, replace(treatment, parent=label)


def _lenders(treatment: Treatment, known: Mapping[str, ModelConfig], lent: Lent | None) -> dict[str, Any]:
    """Return what a treatment's runs take from other runs: a phase, a dose."""
    lenders: dict[str, Any] = {}
    if lent is not None:
        lenders |= {"parent_model": lent.model, "parent_record": lent.record}
    elif treatment.parent is not None:
        lenders["parent_model"] = _known("parent", treatment.parent, known)
    if treatment.yoked_to is not None:
        lenders["donor_model"] = _known("yoked_to", treatment.yoked_to, known)
    return lenders


def _known(name: str, label: str, known: Mapping[str, ModelConfig]) -> ModelConfig:
    if label not in known:
        raise InputError(f"{name} {label!r} is not known: {', '.join(known)}")
    return known[label]


def _with_needed(run: RunSpec) -> Iterator[RunSpec]:
    """Yield a run, its baseline, and the run whose dose it is dealt, with its baseline in turn."""
    yield run
    for needed in (run.baseline_spec(), run.donor_spec()):
        if needed is not None:
            yield from _with_needed(needed)
