"""Owns reading what is graded: every finished or unfinished run below some folders, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.grade import RunGrade, grade, with_medians
from analysis.load import record_paths
from analysis.record_form import reading
from analysis.runs import SourceError
from apex_env.firm import NAME
from experiments.errors import RecordError
from experiments.record import Record, read_record


@dataclass(frozen=True, slots=True)
class Graded:
    """The grades of some runs, and what was left out and why."""

    grades: tuple[RunGrade, ...]
    n_phases: int = 0
    """Instrumental phases, which are parts of runs and never graded."""
    problems: tuple[str, ...] = ()
    """Each record that could not be read, with its place."""


def read_graded(paths: Sequence[Path]) -> Graded:
    """Return the grades of every run in records and below folders.

    Raises:
        SourceError: if a path is neither, or no run is found.
    """
    grades, problems, n_phases = list[RunGrade](), list[str](), 0
    for path in paths:
        for file in [path] if path.is_file() else record_paths(path):
            try:
                record = read_record(file)
                with reading(file):
                    if is_graded(record):
                        grades.append(grade(record))
                    else:
                        n_phases += 1
            except (RecordError, SourceError) as error:
                problems.append(str(error))
    if not grades:
        raise SourceError("; ".join([f"{', '.join(map(str, paths))}: there is no run to grade", *problems]))
    twice = [run_id for run_id, n in Counter(one.run_id for one in grades).items() if n > 1]
    if twice:
        raise SourceError(f"run {twice[0]!r} is there twice; one of its records is a copy")
    return Graded(tuple(with_medians(grades)), n_phases, tuple(problems))


def is_graded(record: Record) -> bool:
    """Whether a record is that of a run, and not of an instrumental phase.

    Raises:
        SourceError: if it is a run of another environment.
    """
    environment = record.header["environment"]["name"]
    if environment != NAME:
        raise SourceError(f"{record.path}: runs of {environment!r} have no contract yet")
    return not record.header["is_phase"]
