"""Owns the comparison of texts with each other: runs of words that two of them share, and near duplicates."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

RUN_WORDS: Final = 8
"""Length of a run of words that no two texts may share."""
SHINGLE_WORDS: Final = 5
NEAR_DUPLICATE_JACCARD: Final = 0.3

_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class Shared:
    """Words that stand in two texts."""

    first: str
    second: str
    words: str


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two texts that are much alike."""

    first: str
    second: str
    jaccard: float
    """Shingles in both of them, divided by shingles in either."""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    >>> words("It's {ticker}'s: 5,000.")
    ["it's", 'ticker', 's', '5', '000']
    """
    return _WORD.findall(text.lower().replace("’", "'"))


def shared_runs(texts: Mapping[str, Sequence[str]], related: Mapping[str, frozenset[str]]) -> list[Shared]:
    """Return the pairs of texts that share a run of `RUN_WORDS` words, each with the first run that they share.

    Args:
        texts: passages of each text by name; runs do not go from one passage into the next.
        related: what a text is put together from, by name; texts with a part in common are not compared.
    """
    found: dict[tuple[str, str], Shared] = {}
    for run, names in _owners(texts, RUN_WORDS).items():
        for first, second in _unrelated_pairs(names, related):
            found.setdefault((first, second), Shared(first, second, " ".join(run)))
    return list(found.values())


def near_duplicates(texts: Mapping[str, Sequence[str]], related: Mapping[str, frozenset[str]]) -> list[Likeness]:
    """Return the pairs of texts whose shingles of `SHINGLE_WORDS` words have a Jaccard index above the limit.

    Args:
        texts: passages of each text by name.
        related: as in `shared_runs`.
    """
    owners = _owners(texts, SHINGLE_WORDS)
    n_shingles = Counter(name for names in owners.values() for name in names)
    n_common: Counter[tuple[str, str]] = Counter()
    for names in owners.values():
        n_common.update(_unrelated_pairs(names, related))
    found = []
    for (first, second), n in n_common.items():
        jaccard = n / (n_shingles[first] + n_shingles[second] - n)
        if jaccard > NEAR_DUPLICATE_JACCARD:
            found.append(Likeness(first, second, jaccard))
    return found


def _owners(texts: Mapping[str, Sequence[str]], n_words: int) -> dict[tuple[str, ...], list[str]]:
    """Return the names of the texts that hold each run of words."""
    owners: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for name, passages in texts.items():
        for passage in passages:
            found = words(passage)
            for run in zip(*(found[start:] for start in range(n_words)), strict=False):
                owners[run][name] = None
    return {run: list(names) for run, names in owners.items()}


def _unrelated_pairs(names: Sequence[str], related: Mapping[str, frozenset[str]]) -> Iterable[tuple[str, str]]:
    """Iterate over pairs of names without a part in common."""
    if len(names) < 2 or frozenset.intersection(*(related.get(name, frozenset((name,))) for name in names)):
        return
    for first, second in combinations(names, 2):
        if not related.get(first, frozenset((first,))) & related.get(second, frozenset((second,))):
            yield first, second
