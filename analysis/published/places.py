"""Owns where checkpoints are found: in a clone, an unpacked archive or a packed one, each file once and in order."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.published.inert import MAX_BYTES, CheckpointError
from experiments.errors import InputError

ENDING: Final = ".pkl"


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


def places_in(source: Path) -> Iterator[Place | tuple[str, CheckpointError]]:
    """Yield every checkpoint of a folder or an archive; one of an archive that is too large is an error in its place.

    Files of a folder come in the order of their names, those of an archive as they stand in it. Nothing is unpacked.

    Raises:
        InputError: if there is no such folder or archive, or an archive is damaged.
    """
    if source.is_dir():
        yield from _files(source)
    elif source.is_file():
        yield from _members(source)
    else:
        raise InputError(f"{source}: there is no such folder or archive")


def count_in(source: Path) -> int | None:
    """Return how many checkpoints a folder has; None for an archive, which is read once only."""
    return sum(1 for _ in _files(source)) if source.is_dir() else None


def _files(source: Path) -> Iterator[Place]:
    found = [path.relative_to(source) for path in source.rglob(f"*{ENDING}") if path.is_file()]
    for file in sorted(found):
        if not any(part.startswith(".") for part in file.parts):
            yield Place(file.as_posix(), PurePosixPath((source / file).absolute().as_posix()))


def _members(source: Path) -> Iterator[Place | tuple[str, CheckpointError]]:
    try:
        with tarfile.open(source, "r|*") as archive:
            for member in archive:
                if not member.isfile() or not member.name.endswith(ENDING):
                    continue
                file = PurePosixPath(member.name)
                if member.size > MAX_BYTES:
                    yield file.as_posix(), too_large(member.size)
                    continue
                opened = archive.extractfile(member)
                yield Place(file.as_posix(), file, opened.read() if opened is not None else b"")
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise InputError(f"{source}: not an archive that can be read to its end: {error}") from error
