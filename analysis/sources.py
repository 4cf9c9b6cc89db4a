"""Owns the choice of a reader: whatever holds runs is read into the same values."""

from __future__ import annotations

from pathlib import Path

from analysis.ledger_source import read_published
from analysis.runs import Run, SourceError
from experiments.published_ledger import LedgerError


def read_runs(source: str | Path) -> tuple[Run, ...]:
    """Return all runs of a source, in its order.

    Args:
        source: a published ledger, JSON lines, compressed by gzip or plain.

    Raises:
        SourceError: if there is no such source or it cannot be read; the text names the place.
    """
    path = Path(source)
    if not path.exists():
        raise SourceError(f"{path}: there is no such file")
    if path.is_dir():
        raise SourceError(f"{path}: a folder; a published ledger (.jsonl or .jsonl.gz) is expected")
    try:
        return read_published(path)
    except LedgerError as error:
        raise SourceError(str(error)) from error
