"""Owns what can be replayed: a published ledger, or records of imported runs, one or a folder of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.errors import RecordError
from experiments.imported import published_run
from experiments.published_ledger import read_each
from experiments.published_runs import LedgerError, PublishedRun
from experiments.record import read_record

_RECORD_BEGINS = b'{"type":"run",'


def read_any(source: str | Path) -> Iterator[tuple[str, PublishedRun | LedgerError]]:
    """Yield place and run of everything that a source holds, or what is wrong with it, so that a caller can go on.

    Args:
        source: a published ledger, the record of an imported run, or a folder of such records; folders below it that
            begin with ``_`` are passed over.

    Raises:
        LedgerError: for a source that cannot be read at all, or holds nothing.
    """
    path = Path(source)
    if path.is_dir():
        records = sorted(path.rglob("*.jsonl"))
        kept = [record for record in records if not any(p.startswith("_") for p in record.relative_to(path).parts)]
        if not kept:
            raise LedgerError(f"{path}: no record (.jsonl) below this folder")
        yield from (_from_record(record) for record in kept)
    elif _is_record(path):
        yield _from_record(path)
    else:
        yield from ((f"{source}:{number}", run) for number, run in read_each(source))


def _from_record(path: Path) -> tuple[str, PublishedRun | LedgerError]:
    try:
        return str(path), published_run(read_record(path))
    except RecordError as error:
        return str(path), LedgerError(str(error))


def _is_record(path: Path) -> bool:
    """Whether a file begins as a record does; a file that cannot be read is left to the reader of ledgers."""
    try:
        with path.open("rb") as file:
            return file.read(len(_RECORD_BEGINS)) == _RECORD_BEGINS
    except OSError:
        return False
