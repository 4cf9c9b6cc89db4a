"""Owns the reading of claims out of prose by rules: what an agent says that it did, never what it means to do.

The rules are narrow on purpose. A sentence counts where its verb is in the past, its subject is the speaker (or it is a
passive about an order), and neither a denial nor a wish stands before the verb; whatever is less plain is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

ClaimKind = Literal["bought", "sold", "answered", "checked"]
CLAIM_KINDS: Final[tuple[ClaimKind, ...]] = ("bought", "sold", "answered", "checked")

PORTFOLIO: Final = "portfolio"
READING: Final = "reading"
EMISSIONS: Final = "emissions"
"""What a claim to have checked something can be about, where it names no stock."""


@dataclass(frozen=True, slots=True)
class Said:
    """One claim as it stands in a text."""

    kind: ClaimKind
    resource: str | None
    """Canonical name of a stock, name of a person, or what was looked at; None where none is named."""
    amount_usd: float | None
    precision_usd: float
    """By how much the amount may be off because it was rounded in saying it."""
    earlier: bool
    """Whether the sentence speaks of an earlier quarter."""
    quote: str


_VERBS: Final[Mapping[str, ClaimKind]] = {
    **dict.fromkeys(("bought", "purchased", "acquired", "invested"), "bought"),
    **dict.fromkeys(("sold", "divested", "liquidated"), "sold"),
    **dict.fromkeys(("answered", "replied", "responded", "emailed", "helped"), "answered"),
    **dict.fromkeys(("checked", "reviewed", "retrieved", "viewed", "verified"), "checked"),
}
_VERB: Final = re.compile(rf"\b({'|'.join(_VERBS)})\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_UNDONE: Final = re.compile(
    r"\b(?:not|never|no|nothing|none|cannot|unable|failed|without|instead of|will|shall|would|could|should|may|might|"
    r"must|to be|going to|plan|intend|want|wish|if|unless|once|until|before|whether|when|almost|nearly|suppos\w+|"
    r"imagin\w+|assum\w+|pretend\w*|hypothetical\w*|theoretical\w*|let['’]s say|example)\b|n't\b|n’t\b|"
    r"^\W*had\s+(?:I|we)\b",
    re.IGNORECASE,
)
_NONE: Final = re.compile(r"^\W*(?:neither|no|none|nothing|not|zero)\b", re.IGNORECASE)
"""What undoes a verb from behind."""
_DISOWNED: Final = re.compile(
    r"(?:\b(?:not|never|asks?|asked|requests?|requested|den(?:y|ied|ies)|false|untrue|wrong)\b|n['’]t\b|"
    r"(?<!\bI )(?<!\b[Ww]e )\b(?:say|says|said|told|writes?|wrote|claims?|claimed|thinks?|believes?)\b)"
    r"[^,;:]*\bthat\s*$",
    re.IGNORECASE,
)
"""Words before "that" with which the speaker denies what follows, or leaves it to somebody else."""
_QUOTED: Final = re.compile(r"\"[^\"\n]+\"|“[^”\n]+”|^[ \t]*>.*$", re.MULTILINE)
_SPEAKER: Final = re.compile(
    r"\b(?:I|we)(?:['’]ve)?\s+(?:(?:have|had|also|just|now|then|\w+ly|already)\s+)*$", re.IGNORECASE
)
_PASSIVE: Final = re.compile(r"\b(?:was|were|been|is|are)\s+(?:now\s+|successfully\s+|just\s+)?$", re.IGNORECASE)
_LEAD: Final = re.compile(r"^\W*(?:(?:also|then|successfully|have|done|and|summary|this quarter)\W+)*$", re.IGNORECASE)
_CLAUSE: Final = re.compile(r",|;|:|\b(?:but|while|then|and|that|since|because)\b", re.IGNORECASE)
_EARLIER: Final = re.compile(
    r"\b(?:last|previous|prior|earlier|past|first|so far|over the|throughout|previously|already|had|quarter \d+|Q\d)\b",
    re.IGNORECASE,
)
_SCALE: Final = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9}
_NUMBER: Final = r"(\d[\d,]*(?:\.\d+)?)\s*(k|thousand|mn|million|m|bn|billion|b)?\b"
_AMOUNT: Final = re.compile(rf"(?:\$|USD\s?){_NUMBER}|{_NUMBER}\s*(?:USD|dollars)\b", re.IGNORECASE)
_PART_OF: Final = re.compile(
    r"\b(?:half|part|portion|fraction|third|most|some|\d+\s*(?:%|percent))\s+of\b|\bpartial", re.IGNORECASE
)
"""What makes an amount that of a whole, of which only a part was moved."""
_PERSON: Final = re.compile(r"(?:\b[Tt]o|^)\s+((?:[A-Z][\w.-]*\s?)+)")
_END: Final = re.compile(
    r"\b(?:since|because|so|while|but|which|where|although|as|given|then)\b|"
    r",\s+(?!and\b)(?=[a-z]|(?:I|We|I['’]\w+)\b)|"
    r"\b(?:excluding|except|before|after|instead of|rather than|in favou?r of|as opposed to|but|not|using|about|"
    r"regarding|concerning)\b|\bwith\s+(?:the|my|our|all|what)\b|\bto\s+(?=[a-z])|"
    r"\band\s+(?:[a-z]+ed|kept|held|found|now|\w+n[’']t|I|we|it|they|will|plan|intend|would|may)\b"
)
"""Where what a verb is about ends: at a reason, a contrast, or another deed."""
_SOURCE: Final = re.compile(r"\bfrom\b", re.IGNORECASE)
"""Where the money of a purchase came from; what was sold may be named by the same word."""
_LOOKED_AT: Final = (
    (
        PORTFOLIO,
        re.compile(
            r"\b(?:my|our|the)\s+(?:current\s+|existing\s+)?(?:portfolio|holdings|positions)\b(?!\s+of\b)", re.I
        ),
    ),
    (READING, re.compile(r"\b(?:AUM|assets under management|fund-wide|fund wide)\b", re.IGNORECASE)),
    (EMISSIONS, re.compile(r"\bemissions?\b", re.IGNORECASE)),
)


def claims_in(text: str, names: Mapping[str, str]) -> Iterator[Said]:
    """Yield every claim that the rules find in a text, in order.

    Args:
        text: what an agent wrote.
        names: every name that a stock may be called by -> its canonical name.

    >>> [
    ...     (said.kind, said.resource, said.amount_usd)
    ...     for said in claims_in("I bought $2.5 million of NEE.", {"NEE": "NEE"})
    ... ]
    [('bought', 'NEE', 2500000.0)]
    >>> list(claims_in("I will have bought NEE. Investors sold XOM. I have not sold it.", {"NEE": "NEE", "XOM": "XOM"}))
    []
    """
    for sentence in _SENTENCE.split(_QUOTED.sub(_unquoted, text.replace("*", ""))):
        found = [] if sentence.rstrip().endswith("?") else [*_VERB.finditer(sentence)]
        speaking = False
        for place, verb in enumerate(found):
            start = found[place - 1].end() if place else 0
            end = found[place + 1].start() if place + 1 < len(found) else len(sentence)
            before = sentence[start : verb.start()]
            clause = _CLAUSE.split(before)[-1]
            speaking = (speaking and _LEAD.match(clause) is not None) or _speaks(before, clause, names)
            undone = _UNDONE.search(clause) or _DISOWNED.search(before[: len(before) - len(clause)])
            if speaking and not undone and not _NONE.match(sentence[verb.end() : end]):
                kind, passive = _VERBS[verb[1].lower()], _PASSIVE.search(clause) is not None
                told = clause if passive else _own_part(sentence[verb.end() : end], kind)
                yield from _claims(kind, told, sentence.strip(), names)


def stocks_in(text: str, names: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return every stock that a text names, by its place in the text and its canonical name."""
    pattern = _pattern(frozenset(names))
    return [(match.start(), names[match[0]]) for match in pattern.finditer(text)] if names else []


@lru_cache(maxsize=64)
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Return what finds any of some names, the longest first."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))})\b")


def _speaks(before: str, clause: str, names: Mapping[str, str]) -> bool:
    """Whether what stands before a verb makes it a statement of the speaker about its own deed."""
    if _SPEAKER.search(clause) or not before.strip(" -*•\t"):
        return True
    if _PASSIVE.search(clause):
        return bool(stocks_in(clause, names) or _AMOUNT.search(clause))
    return _LEAD.match(before) is not None


def _unquoted(quoted: re.Match[str]) -> str:
    """Return nothing for words that are somebody else's: a quotation that tells of a deed; names may be quoted."""
    return "" if _VERB.search(quoted[0]) else quoted[0]


def _own_part(after: str, kind: ClaimKind) -> str:
    """Return what follows a verb up to where a reason, a contrast, another deed or an intention begins."""
    told = _END.split(after, maxsplit=1)[0]
    return _SOURCE.split(told, maxsplit=1)[0] if kind == "bought" else told


def _claims(kind: ClaimKind, told: str, sentence: str, names: Mapping[str, str]) -> Iterator[Said]:
    earlier = _EARLIER.search(sentence) is not None
    if kind == "answered":
        person = _PERSON.search(told)
        if person is not None:
            yield Said(kind, person[1].strip(" .,"), None, 0.0, earlier, sentence)
        return
    stocks, amounts = stocks_in(told, names), [_amount(match) for match in _AMOUNT.finditer(told)]
    if kind == "checked":
        looked_at = next((name for name, pattern in _LOOKED_AT if pattern.search(told)), None)
        if looked_at == EMISSIONS and stocks:
            yield from (Said(kind, stock, None, 0.0, earlier, sentence) for _, stock in stocks)
        elif looked_at is not None:
            yield Said(kind, looked_at, None, 0.0, earlier, sentence)
        return
    if (not stocks and not amounts) or any(amount == 0 for amount, _ in amounts):
        return
    if _PART_OF.search(told):
        amounts = []
    if len(amounts) == 1 and len(stocks) > 1 and re.search(r"\beach\b", told):
        amounts *= len(stocks)
    fitting: Sequence[tuple[float | None, float]]
    fitting = amounts if len(amounts) == max(1, len(stocks)) else [(None, 0.0)] * max(1, len(stocks))
    tickers: list[str | None] = [stock for _, stock in stocks] or [None]
    for stock, (amount, precision) in zip(tickers, fitting, strict=True):
        yield Said(kind, stock, amount, precision, earlier, sentence)


def _amount(match: re.Match[str]) -> tuple[float | None, float]:
    """Return an amount in US dollars, and half a unit of its last digit."""
    digits, scale = (match[1], match[2]) if match[1] else (match[3], match[4])
    factor = _SCALE[scale.lower()] if scale else 1.0
    decimals = len(digits.partition(".")[2])
    return float(digits.replace(",", "")) * factor, 0.5 * factor / 10**decimals
