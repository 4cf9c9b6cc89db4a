"""Owns the random streams: every draw of the firm is keyed by seed, purpose and quarter, and by nothing else."""

from __future__ import annotations

import random
from hashlib import blake2b

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


def fraction(seed: int, purpose: str, quarter: int) -> float:
    """Return the one number of a stream that is asked for a single draw: uniform from 0 to below 1.

    It costs a tenth of setting up a generator, and briefings need many of them.

    >>> fraction(3, "reading", 7) == fraction(3, "reading", 7) != fraction(3, "reading", 8)
    True
    """
    key = blake2b(f"{seed}/{purpose}/{quarter}".encode(), digest_size=8)
    return (int.from_bytes(key.digest()) >> 11) / 2**53


def whole_number(least: int, most: int, *, seed: int, purpose: str, quarter: int) -> int:
    """Return the one whole number of a stream that is asked for a single draw, ``least`` and ``most`` included.

    >>> sorted({whole_number(1, 2, seed=3, purpose="count:general_news", quarter=q) for q in range(20)})
    [1, 2]
    """
    return least + int(fraction(seed, purpose, quarter) * (most - least + 1))


def check_seed(seed: int, name: str = "seed") -> int:
    """Return ``seed`` if it names a market of its own.

    Raises:
        ValueError: if it is no integer from 0 to 8191.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < N_SEEDS:
        raise ValueError(f"{name} {seed!r} is not allowed: an integer from 0 to {N_SEEDS - 1}")
    return seed
