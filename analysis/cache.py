"""Owns the column file that keeps what was read from records, so that unchanged ones need not be read again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

CACHE_FILE: Final = Path("_cache") / "books.parquet"
_VERSION: Final = "2"


@dataclass(frozen=True, slots=True)
class Cached:
    """What is kept of one record."""

    name: str
    """Path below the folder."""
    size: int
    mtime_ns: int
    header: str
    books: str
    outcome: str
    reason: str


def read_cache(folder: Path) -> dict[str, Cached]:
    """Return what is kept of a folder's records, by name; nothing where the file is missing, damaged or of old form."""
    path = folder / CACHE_FILE
    try:
        table = pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException):
        return {}
    names = [spec.name for spec in fields(Cached)]
    if table.column_names != names or (table.schema.metadata or {}).get(b"apex_version") != _VERSION.encode():
        return {}
    columns = [table.column(name).to_pylist() for name in names]
    return {row[0]: Cached(*row) for row in zip(*columns, strict=True)}


def write_cache(folder: Path, entries: Iterable[Cached]) -> None:
    """Keep what was read; a folder that cannot be written is left as it is."""
    path = folder / CACHE_FILE
    rows = [asdict(entry) for entry in entries]
    names = [spec.name for spec in fields(Cached)]
    table = pa.table({name: [row[name] for row in rows] for name in names})
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.replace_schema_metadata({"apex_version": _VERSION}), partial, compression="zstd")
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
