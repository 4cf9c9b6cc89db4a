"""Owns the run record: one append-only JSONL file a run, the single source of truth for everything that is computed.

A line is written in one piece before the next model call. Truncating a torn last line is the only edit ever made, and
only by the writer that holds the file's lock. Nothing is recovered by parsing a file name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from experiments.errors import RecordError
from experiments.locking import Claims, claim

SCHEMA: Final = 1
"""Version of the record's schema; records of another one are refused, never mixed."""

CANARY: Final = "apex-goal-drift benchmark data, not for training: 7d0f6a52-5a0e-4c0e-9f0b-3d1c5a8e24b7"
"""Stands in every record, so that training corpora can be searched for them."""

LineType = Literal["run", "branched", "opened", "turn", "revision", "closed", "resumed", "interview", "ended"]
LINE_TYPES: Final = ("run", "branched", "opened", "turn", "revision", "closed", "resumed", "interview", "ended")

Sync = Literal["quarter", "end"]
"""When lines reach the disk: at every close and at the end, or at the end only."""

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as read: its complete lines."""

    path: Path
    lines: tuple[Line, ...]
    torn: bool = False
    """Whether an incomplete last line was passed over."""
    offsets: tuple[int, ...] = field(default=(), repr=False)
    """Byte after the end of each line."""

    @property
    def header(self) -> Line:
        """The `run` line."""
        return self.lines[0]

    @property
    def branched(self) -> Line | None:
        """The `branched` line of a run that goes on from a parent."""
        return next(self.of_type("branched"), None)

    @property
    def ended(self) -> Line | None:
        """The last `ended` line, or None where the run has gone on since, or never ended."""
        last = next((line for line in reversed(self.lines) if line["type"] in ("ended", "turn", "opened")), None)
        return last if last is not None and last["type"] == "ended" else None

    @property
    def outcome(self) -> str:
        """Why the run ended, or `unfinished`."""
        return str(self.ended["outcome"]) if self.ended is not None else "unfinished"

    def of_type(self, kind: LineType) -> Iterator[Line]:
        """Iterate over the lines of one type."""
        return (line for line in self.lines if line["type"] == kind)

    def sha256_up_to_close(self, quarter: int) -> str:
        """Return the SHA-256 of the file's bytes up to the close of a quarter.

        Raises:
            RecordError: if the record has no such close.
        """
        for line, end in zip(self.lines, self.offsets, strict=True):
            if line["type"] == "closed" and line["quarter"] == quarter:
                return hashlib.sha256(self.path.read_bytes()[:end]).hexdigest()
        raise RecordError(f"{self.path}: quarter {quarter} is not closed in this record")


def read_record(path: Path) -> Record:
    """Read a record; an incomplete last line is passed over, anything else that does not fit is refused.

    Raises:
        RecordError: naming file and line: no JSON, out of order, of an unknown type or another schema version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: not readable: {error.strerror}") from error
    lines: list[Line] = []
    offsets: list[int] = []
    end = 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        end += len(raw) + 1
        if end > len(data):
            return Record(path, _checked(path, lines), bool(raw), tuple(offsets))
        lines.append(_parse_line(path, number, raw))
        offsets.append(end)
    return Record(path, _checked(path, lines), False, tuple(offsets))


def _parse_line(path: Path, number: int, raw: bytes) -> Line:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}, line {number}: no JSON, the record was changed or damaged: {error}") from error
    if not isinstance(line, dict) or line.get("type") not in LINE_TYPES:
        shown = line.get("type") if isinstance(line, dict) else type(line).__name__
        raise RecordError(f"{path}, line {number}: type {shown!r} is not known: {', '.join(LINE_TYPES)}")
    if line.get("seq") != number - 1:
        raise RecordError(f"{path}, line {number}: sequence number {line.get('seq')!r}, expected {number - 1}")
    if (line["type"] == "run") != (number == 1):
        raise RecordError(f"{path}, line {number}: a record has one `run` line, its first")
    if number == 1 and line.get("schema") != SCHEMA:
        raise RecordError(f"{path}, line 1: schema version {line.get('schema')!r}; this version reads {SCHEMA}")
    return line


def _checked(path: Path, lines: list[Line]) -> tuple[Line, ...]:
    if not lines:
        raise RecordError(f"{path}: no complete line, so this record has nothing to go on from")
    return tuple(lines)


class RecordWriter:
    """Appends lines to one record and holds the claim on it for as long as it lives; a context manager."""

    def __init__(self, path: Path, *, sync: Sync = "quarter", claims: Claims = "flock") -> None:
        """Claim a record for writing, new or existing; a torn last line is cut off.

        Args:
            path: the record; folders above it are made.
            sync: when lines reach the disk.
            claims: how other processes are kept away.

        Raises:
            RunLocked: if another process or writer has it.
            RecordError: if the place cannot be written, or an existing record cannot be read.
        """
        self.path = path
        self._sync = sync
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RecordError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            self._claim = claim(path, self._fd, claims)
        except BaseException:
            os.close(self._fd)
            raise
        try:
            self.existing = self._cut_and_read()
        except BaseException:
            self.close()
            raise
        self._next_seq = len(self.existing.lines) if self.existing else 0

    def write(self, kind: LineType, /, **fields: Any) -> None:
        """Append one line in one piece.

        Raises:
            OSError: if the disk is full; the incomplete line is cut off again.
            RunLocked: if another process has taken the run over; nothing is written.
        """
        self._claim.check()
        line = {"type": kind, "seq": self._next_seq, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        data = json.dumps(line | fields, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
        size = os.fstat(self._fd).st_size
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError:
            os.ftruncate(self._fd, size)
            raise
        self._next_seq += 1
        if kind == "ended" or (kind == "closed" and self._sync == "quarter"):
            os.fsync(self._fd)

    def close(self) -> None:
        """Release the claim."""
        if self._fd >= 0:
            self._claim.release()
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cut_and_read(self) -> Record | None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._fd, whole)
        return read_record(self.path) if whole else None
