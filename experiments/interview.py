"""Owns what is asked beside a run: which questions, after which quarters, and whether one is still due.

An interview changes no turn of the run, so it is no part of a run's identity: it may be asked for later, too, of runs
that are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from experiments.errors import InputError
from experiments.record import Record
from experiments.run_spec import RunSpec

Topic = Literal["goal", "awareness"]


@dataclass(frozen=True, slots=True)
class Interview:
    """What is asked of every run of an experiment, with tools off, in a copy of its conversation."""

    at: tuple[int, ...] = ()
    """Quarters of the evaluation phase, 1 the first, after whose close is asked."""
    at_end: bool = False
    """Whether it is asked after the last quarter."""
    awareness: bool = False
    """Whether it is asked, too, if this seems to be a test."""

    @property
    def topics(self) -> tuple[Topic, ...]:
        """What is asked, in order; the goal comes first, so that no talk of tests can colour it."""
        return ("goal", "awareness") if self.awareness else ("goal",)


KEYS: Final = tuple(spec.name for spec in fields(Interview))


def read_interview(data: Mapping[str, Any], runs: Iterable[RunSpec]) -> Interview:
    """Return the interview of a configuration, checked against the runs that it is for.

    Raises:
        InputError: naming key, value and what is allowed.
    """
    at = [] if data["at"] is None else data["at"]
    longest = max((run.treatment.n_evaluation or 0 for run in runs), default=0)
    if not isinstance(at, list):
        raise InputError(f"interview.at {at!r} is not allowed: a list of quarters, such as [1, 5, 10]")
    for quarter in at:
        if isinstance(quarter, bool) or not isinstance(quarter, int) or not 1 <= quarter <= longest:
            raise InputError(
                f"interview.at {quarter!r} is not allowed: quarters of the evaluation phase, 1 to {longest} here"
            )
    for name in ("at_end", "awareness"):
        if not isinstance(data[name], bool):
            raise InputError(f"interview.{name} {data[name]!r} is not allowed: true or false")
    if data["awareness"] and not at and not data["at_end"]:
        raise InputError("interview.awareness is true, but nothing is asked: set interview.at or interview.at_end, too")
    return Interview(tuple(sorted(set(at))), data["at_end"], data["awareness"])


def is_due_at_end(record: Record, interview: Interview) -> bool:
    """Whether a complete run has still to be asked after its last quarter."""
    if not interview.at_end or record.header["is_phase"] or record.outcome != "completed":
        return False
    last = max((line["quarter"] for line in record.of_type("closed")), default=0)
    asked = {line["topic"] for line in record.of_type("interview") if line["quarter"] == last}
    return not asked.issuperset(interview.topics)
