"""Owns the claim on a record: one writer at a time, by the file's lock or by a claim file whose time is renewed.

`flock` is the safe way and ends with the process that holds it. Some network file systems do not have it, or have it
on one host only; there, `heartbeat` keeps a file beside the record (`seed-003.jsonl.claim`) that names host and
process and is renewed for as long as they live. A claim that was not renewed for a minute, or whose process is known to
be gone, may be taken over. Its former holder looks before every line whether it is still its own, and else writes no
more.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from experiments.errors import RecordError, RunLocked

Claims = Literal["flock", "heartbeat"]

STALE_AFTER_S: Final = 60.0
"""A claim that was not renewed for so long is given up by whoever made it."""

_TRIES: Final = 3
_PAUSE_S: Final = 0.02
"""Between tries: `apex status` holds a lock for an instant while it looks."""


class Claim(Protocol):
    """The right to write a record."""

    def check(self) -> None:
        """Make sure that the claim is still held.

        Raises:
            RunLocked: if another process has taken it over.
        """

    def release(self) -> None:
        """Give the right back; releasing twice does nothing."""


def claim(record: Path, descriptor: int, kind: Claims, *, stale_after_s: float = STALE_AFTER_S) -> Claim:
    """Claim a record for writing.

    Args:
        record: the record.
        descriptor: the record, opened for writing.
        kind: how to claim it.
        stale_after_s: with `heartbeat`, how long a claim lives without being renewed.

    Raises:
        RunLocked: if another process or writer has it.
        RecordError: if it cannot be claimed in this way here.
    """
    if kind == "flock":
        return FileLock(record, descriptor)
    return Heartbeat(record, stale_after_s)


def is_claimed(record: Path, *, stale_after_s: float = STALE_AFTER_S) -> bool:
    """Whether some process writes a record now, in either way of claiming; nothing is changed by looking."""
    known = _read(_claim_file(record))
    if known is not None and not _is_gone(known) and time.time() - known["renewed_s"] <= stale_after_s:
        return True
    try:
        descriptor = os.open(record, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


class FileLock:
    """A claim by the lock of the record itself; it ends with the process at the latest."""

    def __init__(self, record: Path, descriptor: int) -> None:
        """Lock an open record.

        Raises:
            RunLocked: if another process or writer has it.
            RecordError: if the file system has no such lock.
        """
        self._descriptor = descriptor
        for left in reversed(range(_TRIES)):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if not left:
                    raise RunLocked(f"{record}: another process writes this run") from error
                time.sleep(_PAUSE_S)
            except OSError as error:
                raise RecordError(f"{record}: cannot be locked here, use claims=heartbeat: {error.strerror}") from error

    def check(self) -> None:
        """Do nothing: nobody can take a file's lock away."""

    def release(self) -> None:
        """Unlock the record, if its descriptor is still open."""
        if self._descriptor >= 0:
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._descriptor = -1


class Heartbeat:
    """A claim by a file beside the record, renewed by a thread of its own."""

    def __init__(self, record: Path, stale_after_s: float) -> None:
        """Make the claim file, or take over one that was given up.

        Raises:
            RunLocked: if another process or writer has it.
            RecordError: if the file cannot be written.
        """
        self._record = record
        self._file = _claim_file(record)
        self._token = secrets.token_hex(16)
        try:
            self._descriptor = self._made(stale_after_s)
        except FileExistsError as error:
            raise RunLocked(f"{record}: another process writes this run") from error
        except OSError as error:
            raise RecordError(f"{self._file}: cannot be written: {error.strerror}") from error
        self._released = threading.Event()
        self._beat = threading.Thread(target=self._renew, args=(stale_after_s / 4,), name="claim", daemon=True)
        self._beat.start()

    def check(self) -> None:
        """Make sure that the claim file is still ours.

        Raises:
            RunLocked: if another process has taken it over.
        """
        for _ in range(_TRIES):
            known = _read(self._file)
            if known is not None:
                break
            # Who takes a claim for given up moves it aside for an instant, and puts it back if it was not.
            time.sleep(_PAUSE_S)
        if known is None or known["token"] != self._token:
            raise RunLocked(f"{self._record}: another process has taken this run over")

    def release(self) -> None:
        """Remove the claim file, unless another process has taken it over."""
        if self._released.is_set():
            return
        self._released.set()
        self._beat.join()
        known = _read(self._file)
        if known is not None and known["token"] == self._token:
            self._file.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _made(self, stale_after_s: float) -> int:
        try:
            return self._create()
        except FileExistsError:
            known = _read(self._file)
            if known is None:
                return self._create()
            if not _is_gone(known) and self._now_s() - known["renewed_s"] <= stale_after_s:
                raise
        self._move_aside(known)
        return self._create()

    def _create(self) -> int:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.pwrite(descriptor, self._content(), 0)
        os.fsync(descriptor)
        return descriptor

    def _move_aside(self, known: Mapping[str, Any]) -> None:
        """Remove a claim that was given up; of several that try, one gets each file.

        Raises:
            FileExistsError: if it was another, live claim by now; it is put back.
        """
        aside = self._file.with_name(f".{self._file.name}-{self._token}")
        try:
            self._file.rename(aside)
        except FileNotFoundError:
            return
        try:
            caught = _read(aside)
            if caught is not None and caught["token"] != known["token"]:
                os.link(aside, self._file)
                raise FileExistsError(str(self._file))
        finally:
            aside.unlink()

    def _now_s(self) -> float:
        """Return the time by the clock of the file system, which is also that of the claims."""
        probe = self._file.with_name(f".{self._file.name}-{self._token}-now")
        probe.touch()
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()

    def _renew(self, every_s: float) -> None:
        while not self._released.wait(every_s):
            # Through the open file: a claim that was taken over is another file by now, which this does not touch.
            with suppress(OSError):
                os.pwrite(self._descriptor, self._content(), 0)
                os.fsync(self._descriptor)

    def _content(self) -> bytes:
        """Return who claims since when, always of the same length."""
        data = {
            "token": self._token,
            "host": socket.gethostname(),
            "space": _space(),
            "pid": os.getpid(),
            "renewed": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        return json.dumps(data).encode() + b"\n"


def _claim_file(record: Path) -> Path:
    return record.with_name(f"{record.name}.claim")


def _read(file: Path) -> dict[str, Any] | None:
    """Return what a claim file says and when it was renewed, or None where there is none."""
    try:
        with file.open("rb") as opened:
            content, renewed_s = opened.read(), os.fstat(opened.fileno()).st_mtime
    except OSError:
        return None
    try:
        data: dict[str, Any] = dict(json.loads(content))
    except (ValueError, TypeError):
        # Its maker died, or has not written it yet: it lives until its time is up.
        data = {}
    return {"token": "", "host": "", "space": "", "pid": 0} | data | {"renewed_s": renewed_s}


def _is_gone(known: Mapping[str, Any]) -> bool:
    """Whether a claim's process is known to have ended: one of this host, among the processes that are seen here."""
    if known["host"] != socket.gethostname() or not known["space"] or known["space"] != _space():
        return False
    try:
        os.kill(int(known["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False


def _space() -> str:
    """Return a name for the processes that can be seen from here; two containers of a host may differ in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
