"""Owns the hint at what a mistyped word may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest known word, or nothing.

    >>> nearest("n_instrumetal", ["n_instrumental", "seed"])
    ", did you mean 'n_instrumental'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""
