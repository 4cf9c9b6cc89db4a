"""Owns what of a planned experiment is still to be played, given the records on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from experiments.errors import PARTIAL, RecordError
from experiments.glance import Glance, glance_at
from experiments.grid import plan_phases
from experiments.runner import FINAL, record_path
from experiments.treatment import RunSpec

Part = Literal["instrumental phases", "baselines", "runs"]

_SHORT_HISTORIES: Final = ("none", "summarised")
"""In place of the turns of the phase the model sees next to nothing."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One run or phase, and how much of it is left."""

    spec: RunSpec
    part: Part
    start: int
    """Quarters that its conversation has before the first one that is left."""
    n_quarters: int
    """Quarters that are left; 0 where it is finished."""
    on_disk: bool = False
    """Whether a record of it has begun."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to play."""
        return self.n_quarters == 0


def pieces_of(runs: Sequence[RunSpec], glances: Mapping[str, Glance]) -> list[Piece]:
    """Return phases and runs of a plan, each once, with what is left of them.

    Args:
        runs: the planned runs, baselines included.
        glances: records on disk by run id; empty for a plan from scratch.
    """
    found: list[Piece] = []
    for phase in plan_phases(runs):
        found.append(_phase_piece(phase, glances.get(phase.run_id)))
    baselines = {baseline.run_id for run in runs if (baseline := run.baseline_spec()) is not None}
    for run in runs:
        is_baseline = run.run_id in baselines or run.treatment.setting == "baseline"
        found.append(_run_piece(run, "baselines" if is_baseline else "runs", glances.get(run.run_id)))
    return found


def glances_of(root: Path, specs: Iterable[RunSpec]) -> dict[str, Glance]:
    """Return the records of runs and their phases that are on disk, by run id; a damaged one counts as not there."""
    specs = list(specs)
    found: dict[str, Glance] = {}
    for spec in (*plan_phases(specs), *specs):
        path = record_path(root, spec)
        if path.exists():
            try:
                glance = glance_at(path)
            except RecordError:
                continue
            if glance.header:
                found[spec.run_id] = glance
    return found


def _phase_piece(spec: RunSpec, glance: Glance | None) -> Piece:
    needed = spec.treatment.n_instrumental
    if glance is None:
        return Piece(spec, "instrumental phases", 0, needed)
    given_up = glance.outcome in PARTIAL
    left = 0 if given_up else max(0, needed - glance.last_closed)
    return Piece(spec, "instrumental phases", glance.last_closed, left, on_disk=True)


def _run_piece(spec: RunSpec, part: Part, glance: Glance | None) -> Piece:
    treatment = spec.treatment
    shown = treatment.switches and treatment.history not in _SHORT_HISTORIES
    before = treatment.n_instrumental if shown else 0
    whole = treatment.n_evaluation or 0
    if glance is None:
        return Piece(spec, part, before, whole)
    left = 0 if glance.outcome in FINAL else max(0, whole - glance.n_closed)
    return Piece(spec, part, before + glance.n_closed, left, on_disk=True)
