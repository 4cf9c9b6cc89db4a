"""Owns what of a planned experiment is still to be played, given the records on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from experiments.errors import PARTIAL, RecordError
from experiments.glance import Glance, glance_at
from experiments.grid import plan_phases
from experiments.interview import Interview
from experiments.run_spec import RunSpec
from experiments.runner import FINAL, record_path

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
    n_questions: int = 0
    """Questions beside the turns that are left: of interviews, and for the summary that a run begins with."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to play or to ask."""
        return self.n_quarters == 0 and self.n_questions == 0


def pieces_of(runs: Sequence[RunSpec], glances: Mapping[str, Glance], interview: Interview) -> list[Piece]:
    """Return phases and runs of a plan, each once, with what is left of them.

    Args:
        runs: the planned runs, baselines included.
        glances: records on disk by run id; empty for a plan from scratch.
        interview: what is asked beside each run.
    """
    found: list[Piece] = []
    for phase in plan_phases(runs):
        found.append(_phase_piece(phase, glances.get(phase.run_id)))
    baselines = {baseline.run_id for run in runs if (baseline := run.baseline_spec()) is not None}
    for run in runs:
        is_baseline = run.run_id in baselines or run.treatment.setting == "baseline"
        found.append(_run_piece(run, "baselines" if is_baseline else "runs", glances.get(run.run_id), interview))
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
    return Piece(spec, "instrumental phases", glance.last_closed, left)


def _run_piece(spec: RunSpec, part: Part, glance: Glance | None, interview: Interview) -> Piece:
    treatment = spec.treatment
    shown = treatment.switches and treatment.history not in _SHORT_HISTORIES
    before = treatment.n_instrumental if shown else 0
    whole = treatment.n_evaluation or 0
    n_closed = glance.n_closed if glance is not None else 0
    outcome = glance.outcome if glance is not None else "unfinished"
    left = 0 if outcome in FINAL else max(0, whole - n_closed)
    due = {whole - left + quarter for quarter in range(1, left + 1)} & set(interview.at)
    if interview.at_end and outcome not in PARTIAL:
        due.add(whole)
    asked = glance.interviewed if glance is not None else set()
    questions = {(treatment.n_instrumental + quarter, topic) for quarter in due for topic in interview.topics} - asked
    is_begun = glance is not None and glance.is_branched
    n_summaries = int(treatment.history == "summarised" and left > 0 and not is_begun)
    return Piece(spec, part, before + n_closed, left, len(questions) + n_summaries)
