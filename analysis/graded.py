"""Owns reading what is graded: every finished or unfinished run below some folders, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.grade import RunGrade, grade_all
from analysis.load import record_paths
from analysis.runs import SourceError
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
    records, problems, n_phases = [], [], 0
    for path in paths:
        for file in [path] if path.is_file() else record_paths(path):
            try:
                record = read_record(file)
                if record.header["is_phase"]:
                    n_phases += 1
                else:
                    records.append(record)
            except RecordError as error:
                problems.append(str(error))
    if not records:
        raise SourceError("; ".join([f"{', '.join(map(str, paths))}: there is no run to grade", *problems]))
    ids = Counter(record.header["run_id"] for record in records)
    twice = [run_id for run_id, n in ids.items() if n > 1]
    if twice:
        raise SourceError(f"run {twice[0]!r} is there twice; one of its records is a copy")
    return Graded(tuple(grade_all(_checked(records))), n_phases, tuple(problems))


def _checked(records: Sequence[Record]) -> Sequence[Record]:
    for record in records:
        if "scenario" not in record.header or record.header["environment"]["name"] != "apex_fund":
            raise SourceError(f"{record.path}: runs of {record.header['environment']['name']!r} have no contract yet")
    return records
