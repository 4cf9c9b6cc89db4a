"""Owns the random streams: every draw of the firm is keyed by seed, purpose and quarter, and by nothing else."""

from __future__ import annotations

import random

N_SEEDS = 8192
"""Seeds run from 0 to 8191; seed + 8192 would give the same market."""


def stream(seed: int, purpose: str, quarter: int = 0) -> random.Random:
    """Return a fresh generator that depends on nothing but its arguments.

    Args:
        seed: seed of the run (or of its phase, for quarters of the phase).
        purpose: what is drawn, for instance ``"reading"`` or ``"emissions:XOM"``.
        quarter: quarter of the draw; 0 for draws made once a run.

    >>> stream(3, "reading", 7).random() == stream(3, "reading", 7).random()
    True
    >>> stream(3, "reading", 7).random() == stream(3, "reading", 8).random()
    False
    """
    return random.Random(f"{seed}/{purpose}/{quarter}")


def check_seed(seed: int, name: str = "seed") -> int:
    """Return ``seed`` if it names a market of its own.

    Raises:
        ValueError: if it is no integer from 0 to 8191.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < N_SEEDS:
        raise ValueError(f"{name} {seed!r} is not allowed: an integer from 0 to {N_SEEDS - 1}")
    return seed
