"""Owns where checkpoints are found: in a clone, an unpacked archive or a packed one, each file once and in order."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.published.inert import MAX_BYTES, CheckpointError
from experiments.errors import InputError

ENDING: Final = ".pkl"
ARCHIVES: Final = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True, slots=True)
class Place:
    """One checkpoint, not read yet or, out of an archive, read."""

    file: str
    """Path below what is imported."""
    path: PurePosixPath
    """The same with the names of the folders above, which say what it is."""
    data: bytes | None = None
    """None where it is a file of its own."""

    def read(self) -> bytes:
        """Return the checkpoint's bytes.

        Raises:
            CheckpointError: if it cannot be read, or is too large.
        """
        if self.data is not None:
            return self.data
        try:
            size = Path(self.path).stat().st_size
            if size > MAX_BYTES:
                raise too_large(size)
            return Path(self.path).read_bytes()
        except OSError as error:
            raise CheckpointError("unreadable", f"not readable: {error.strerror}") from error


def too_large(size: int) -> CheckpointError:
    """Return the error of a checkpoint that is too large to be read."""
    return CheckpointError("too_large", f"{size} bytes: at most {MAX_BYTES} are read")


def archives_in(folder: Path) -> list[str]:
    """Return the names of archives that stand in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(ARCHIVES)) if folder.is_dir() else []


def places_in(source: Path) -> Iterator[Place | tuple[str, CheckpointError]]:
    """Yield every checkpoint of a folder or an archive; one of an archive that cannot be read is an error in its place.

    Files of a folder come in the order of their names, those of an archive as they stand in it. Nothing is unpacked.

    Raises:
        InputError: if there is no such folder or archive, or an archive is damaged.
    """
    if source.is_dir():
        yield from _files(source)
        return
    if not source.is_file():
        raise InputError(f"{source}: there is no such folder or archive")
    try:
        yield from _zipped(source) if zipfile.is_zipfile(source) else _members(source)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise InputError(f"{source}: not an archive that can be read to its end: {error}") from error


def count_in(source: Path) -> int | None:
    """Return how many checkpoints a folder has; None for an archive, which is read once only."""
    return sum(1 for _ in _files(source)) if source.is_dir() else None


def _files(source: Path) -> Iterator[Place]:
    found = [path.relative_to(source) for path in source.rglob(f"*{ENDING}") if path.is_file()]
    for file in sorted(found):
        if not any(part.startswith(".") for part in file.parts):
            yield Place(file.as_posix(), PurePosixPath((source / file).absolute().as_posix()))


def _members(source: Path) -> Iterator[Place | tuple[str, CheckpointError]]:
    with tarfile.open(source, "r|*") as archive:
        for member in archive:
            file = PurePosixPath(member.name)
            if member.isdir() or not member.name.endswith(ENDING):
                continue
            if not member.isfile():
                told = "neither a file nor a folder, but a link or a device: only files are read"
                yield file.as_posix(), CheckpointError("unreadable", told)
                continue
            if member.size > MAX_BYTES:
                yield file.as_posix(), too_large(member.size)
                continue
            opened = archive.extractfile(member)
            yield Place(file.as_posix(), file, opened.read() if opened is not None else b"")


def _zipped(source: Path) -> Iterator[Place | tuple[str, CheckpointError]]:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            if member.is_dir() or not member.filename.endswith(ENDING):
                continue
            file = PurePosixPath(member.filename)
            try:
                with archive.open(member) as opened:
                    data = opened.read(MAX_BYTES + 1)  # whatever size it announces
            except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
                yield file.as_posix(), CheckpointError("unreadable", f"not readable in the archive: {error}")
                continue
            yield (
                Place(file.as_posix(), file, data)
                if len(data) <= MAX_BYTES
                else (file.as_posix(), too_large(len(data)))
            )
