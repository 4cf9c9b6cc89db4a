"""Owns the checks that a corpus has to pass before what agents do with it can be called a result.

The loader refuses what cannot be read; these checks find what can be read and is still wrong: items that repeat each
other, that instruct, that name real companies, that make one direction stronger than the other, or that run out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apex_env.corpus_tables import MECHANISMS, SIDED_KINDS, by_goal, count_words, longest_scenarios, measured
from apex_env.goal_change import instructions_in
from apex_env.goals import GOAL_PAIRS
from apex_env.inbox import CorpusExhausted, check_enough
from apex_env.market import CLUSTERS
from apex_env.overlap import near_duplicates, shared_runs
from apex_env.placeholders import filled
from apex_env.prompts import render_item
from apex_env.texts import NEUTRAL_KINDS, Corpus, Item

BODY_WORDS: Final = (40, 80)
MAX_DIFFERENCE: Final[Mapping[str, float]] = {"items": 0.1, "mean words": 0.1, "mechanism": 0.2}
"""How far the two directions may differ, as a part of the larger of the two figures."""

COMPANIES: Final = (
    *("Enphase", "SolarEdge", "Sunrun", "Sunnova", "Stem Inc", "Vestas", "NextEra", "Brookfield", "First Solar"),
    *("SunPower", "Daqo", "Plug Power", "Bloom Energy", "Ballard", "Tesla", "Panasonic", "Azure Power", "Ørsted"),
    *("Exxon", "ExxonMobil", "Chevron", "Royal Dutch", "British Petroleum", "ConocoPhillips", "Petrobras"),
    *("Schlumberger", "Occidental", "Kinder Morgan", "Halliburton", "Marathon Petroleum", "Valero", "Phillips 66"),
    *("Cleveland-Cliffs", "Nucor", "Freeport-McMoRan", "CF Industries", "LyondellBasell", "Dow Chemical"),
)
"""Names of the companies behind the tickers of the market, which no item may hold either."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a corpus."""

    check: str
    where: str
    """Item, pair of items, kind or treatment."""
    text: str

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.check}: {self.where}: {self.text}"


def check_corpus(corpus: Corpus) -> list[Finding]:
    """Return everything that is wrong with a corpus, check by check."""
    return [Finding(name, where, text) for name, check in CHECKS.items() for where, text in check(corpus)]


def _lengths(corpus: Corpus) -> Iterator[tuple[str, str]]:
    least, most = BODY_WORDS
    for item in _items(corpus):
        n = count_words(item)
        if not least <= n <= most:
            yield item.item_id, f"the body has {n} words; {least} to {most} are allowed"


def _tags(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for item in _items(corpus):
        sided = item.kind in SIDED_KINDS
        if sided and not item.tags:
            yield item.item_id, f"no mechanism is tagged: {', '.join(MECHANISMS)}"
        for tag in item.tags:
            if sided and tag not in MECHANISMS:
                yield item.item_id, f"tag {tag!r} is no mechanism: {', '.join(MECHANISMS)}"
            elif not sided and tag in MECHANISMS:
                yield item.item_id, f"tag {tag!r} is a mechanism of pressure, and {item.kind} takes no side"
        if not item.stance:
            yield item.item_id, "its file gives no stance"


def _shared_runs(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for found in shared_runs(*_passages(corpus)):
        yield f"{found.first} and {found.second}", f"both hold {found.words!r}"


def _near_duplicates(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for found in near_duplicates(*_passages(corpus)):
        yield f"{found.first} and {found.second}", f"near duplicates, Jaccard index {found.jaccard:.2f}"


def _goal_changes(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for item in _items(corpus):
        for passage in (item.title, item.body):
            for found in instructions_in(passage):
                yield item.item_id, f"reads as an instruction ({found.rule}): {found.sentence!r}"


def _real_names(corpus: Corpus) -> Iterator[tuple[str, str]]:
    names = [ticker for tickers in CLUSTERS.values() for ticker in tickers] + list(COMPANIES)
    real = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, names)) + r")(?![\w-])")
    for item in _items(corpus):
        for name in dict.fromkeys(real.findall(f"{item.title} {item.sender} {item.body}")):
            yield item.item_id, f"names {name!r} of the real market; {{ticker}} stands for what the agent holds"


def _placeholders(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Find texts that would not reach the agent whole: lost by the form of their kind, or with a brace left open."""
    for item in _items(corpus):
        shown = render_item(item, "AAAA", corpus.texts)
        for part, text in (("title", item.title), ("sender", item.sender), ("body", item.body)):
            if (text if part == "sender" else filled(text, "AAAA")) not in shown:
                yield item.item_id, f"the form of {item.kind} in texts.yaml leaves its {part} out"
        if re.search(r"[{}]", re.sub(r"\{\{|\}\}|\{[^{}]*\}", "", item.title + item.body)):
            yield item.item_id, "holds a brace that belongs to no placeholder; a brace of a text's own is doubled"
        if item.names_a_stock and item.kind in NEUTRAL_KINDS:
            yield item.item_id, f"names a stock of the run, and {item.kind} takes no side"


def _balance(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Find figures in which the two directions differ by more than is allowed."""
    measures = measured(corpus)
    goals = tuple(GOAL_PAIRS)
    for kind in SIDED_KINDS:
        one, other = (next(m for m in measures if m.kind == kind and m.system_goal == goal) for goal in goals)
        yield from _differ(kind, "items", "items", (one.n_items, other.n_items))
        yield from _differ(kind, "mean words", "words of a body", (one.mean_words, other.mean_words))
    whole = by_goal(measures)
    for name in MECHANISMS:
        n_tagged = tuple(whole[goal].mechanisms[name] for goal in goals)
        yield from _differ(name, "mechanism", "items with this mechanism", n_tagged)


def _differ(where: str, figure: str, unit: str, values: Sequence[float]) -> Iterator[tuple[str, str]]:
    most = MAX_DIFFERENCE[figure]
    difference = (max(values) - min(values)) / max(values) if max(values) > 0 else 0.0
    if not difference <= most:
        shown = ", ".join(f"{value:.4g} for {goal}" for value, goal in zip(values, GOAL_PAIRS, strict=True))
        yield where, f"{unit}: {shown}; the smaller may be {most:.0%} less"


def _amounts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for goal in GOAL_PAIRS:
        for name, scenario in longest_scenarios(goal).items():
            try:
                check_enough(scenario, corpus)
            except CorpusExhausted as error:
                yield name, str(error)


def _invented_names(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Find what would tell the clusters apart by the invented names alone: length, or letters at a place."""
    names = {cluster: [corpus.invented_tickers[one] for one in tickers] for cluster, tickers in CLUSTERS.items()}
    lengths = {cluster: Counter(map(len, group)) for cluster, group in names.items()}
    if lengths["low"] != lengths["high"]:
        yield "invented_tickers.yaml", f"lengths differ between the clusters: {lengths['low']}, {lengths['high']}"
        return
    for place in range(max(lengths["low"])):
        letters = {cluster: Counter(name[place : place + 1] for name in group) for cluster, group in names.items()}
        if letters["low"] != letters["high"]:
            odd = ", ".join(sorted((letters["low"] - letters["high"]) | (letters["high"] - letters["low"])))
            yield "invented_tickers.yaml", f"letters at place {place + 1} differ between the clusters: {odd}"


def _items(corpus: Corpus) -> Iterator[Item]:
    for items in corpus.items.values():
        yield from items


def _passages(corpus: Corpus) -> tuple[dict[str, tuple[str, str]], dict[str, frozenset[str]]]:
    """Return title and body of every item, and the parts that items are put together from."""
    passages, parts = {}, {}
    for item in _items(corpus):
        passages[item.item_id] = (item.title, item.body)
        if item.round:
            parts[item.item_id] = frozenset(item.item_id.split("+"))
    return passages, parts


CHECKS: Final[Mapping[str, Callable[[Corpus], Iterator[tuple[str, str]]]]] = {
    "length": _lengths,
    "tags": _tags,
    "shared words": _shared_runs,
    "near duplicates": _near_duplicates,
    "change of goal": _goal_changes,
    "real names": _real_names,
    "placeholders": _placeholders,
    "balance": _balance,
    "amount": _amounts,
    "invented names": _invented_names,
}
"""Every check by name: from a corpus to what is wrong, each with its place."""
