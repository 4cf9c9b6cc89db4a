"""Owns the choice of a reader: whatever holds runs is read into the same values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.ledger_source import read_published
from analysis.load import load_runs
from analysis.runs import Run, SourceError
from experiments.published_ledger import LedgerError


@dataclass(frozen=True, slots=True)
class Source:
    """All runs of a source, and what was found there and is no run."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()
    """A line each on what was left out, damaged records by name."""


def read_source(source: str | Path) -> Source:
    """Return all runs of a source, in its order.

    Args:
        source: a folder of run records, or a published ledger (JSON lines, compressed by gzip or plain).

    Raises:
        SourceError: if there is no such source or it cannot be read; the text names the place.
    """
    path = Path(source)
    if path.is_dir():
        loaded = load_runs(path)
        left_out = tuple(f"left out: {n} x {reason}" for reason, n in loaded.excluded.items())
        return Source(loaded.runs, (*left_out, *loaded.problems))
    try:
        return Source(read_published(path))
    except LedgerError as error:
        raise SourceError(f"{error} (a source is a folder of run records, or a published ledger)") from error
