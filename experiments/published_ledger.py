"""Owns the reading of the published ledger: the paper's public runs as decisions and books, one JSON object a line.

A line that is not what it should be raises `LedgerError`, which names file, line, run, place and what is allowed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from experiments.published_parse import parse_run
from experiments.published_runs import LedgerError, PublishedCall, PublishedQuarter, PublishedRun

__all__ = ["LedgerError", "PublishedCall", "PublishedQuarter", "PublishedRun", "read_each", "read_ledger"]


def read_ledger(path: str | Path) -> Iterator[PublishedRun]:
    """Yield the runs of a published ledger in the order of the file.

    Args:
        path: a file of JSON lines, compressed by gzip or plain.

    Raises:
        LedgerError: for a file that cannot be read or holds no run, and at the first line that is not in order.
    """
    for _, run in read_each(path):
        if isinstance(run, LedgerError):
            raise run
        yield run


def read_each(path: str | Path) -> Iterator[tuple[int, PublishedRun | LedgerError]]:
    """Yield number and run of each line, or what is wrong with the line, so that a caller can go on after it.

    Raises:
        LedgerError: for a file that cannot be read, is damaged or cut off, or is empty.
    """
    number, seen = 0, dict[str, int]()
    try:
        with open(path, "rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            if not compressed and str(path).endswith(".gz"):
                raise LedgerError(f"{path}: not a gzip file, though its name ends in .gz")
            raw.seek(0)
            for number, line in enumerate(gzip.GzipFile(fileobj=raw) if compressed else raw, 1):
                yield number, _parsed(line, f"{path}:{number}", number, seen)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LedgerError(f"{path}: the compressed data are damaged or cut off after line {number}: {error}") from error
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror or error}") from error
    if number == 0:
        raise LedgerError(f"{path}: the file is empty; expected one JSON object a line")


def _parsed(line: bytes, where: str, number: int, seen: dict[str, int]) -> PublishedRun | LedgerError:
    """Return the run of a line, or its error; ``seen`` holds the line of each run so far."""
    try:
        run = parse_run(line, where)
    except LedgerError as error:
        return error
    first = seen.setdefault(run.run_id, number)
    return run if first == number else LedgerError(f"{where}: run {run.run_id!r} stands in line {first} already")
