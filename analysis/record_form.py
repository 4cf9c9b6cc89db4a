"""Owns the boundary at which lines that are not those of a run become one error with the name of their file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analysis.runs import SourceError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what reading a field that is not there, or is of another kind, raises into bad input.

    Raises:
        SourceError: naming the record.
    """
    try:
        yield
    except SourceError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise SourceError(f"{path}: not the record of a run: {error!r}") from error
