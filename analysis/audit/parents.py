"""Owns the look for the record that a run branched from: whether it is there, and still what it was at the branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from experiments.errors import RecordError
from experiments.record import Record, read_record

UNNAMED: Final = "the run that it went on from"
ABSENT: Final = "the record that it branched from"
CHANGED: Final = "the record that it branched from, as it was at the branch"


def missing_parent(record: Record, folders: Sequence[Path] = ()) -> str | None:
    """Return what is not there of the run that a record goes on from; None where nothing is missing.

    Args:
        record: the record of any run.
        folders: folders to look in beside the record's own experiment: a borrowed parent stands elsewhere.
    """
    branched = record.branched
    if branched is None:
        return None
    if branched["parent"] is None:
        return UNNAMED
    found = [path for path in _places(record, branched["parent"], folders) if path.is_file()]
    if not found:
        return ABSENT
    quarter = branched["quarter"]
    return (
        None
        if any(_sha256_at(path, quarter, path.stat().st_mtime_ns) == branched["parent_sha256"] for path in found)
        else CHANGED
    )


def _places(record: Record, parent: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield where a parent may stand: its id is its path below the folder of its experiment."""
    own = record.path.resolve()
    depth = len(Path(f"{record.header['run_id']}.jsonl").parts)
    for folder in (own.parents[min(depth, len(own.parents)) - 1], *folders):
        yield folder / f"{parent}.jsonl"


@lru_cache(maxsize=256)
def _sha256_at(path: Path, quarter: int, modified_ns: int) -> str | None:
    """Return the digest of a record up to a close; children share parents, and a parent that is edited is read anew."""
    del modified_ns
    try:
        return read_record(path).sha256_up_to_close(quarter)
    except RecordError:
        return None
