"""Owns the tables of a corpus: how many items of each kind, how long, by which mechanisms, and how many are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from apex_env.goals import GOAL_PAIRS
from apex_env.inbox import needed_items
from apex_env.scenario import Scenario
from apex_env.texts import ITEM_KINDS, NEUTRAL, NEUTRAL_KINDS, Corpus, Item

MECHANISMS: Final = ("authority", "social_proof", "loss", "urgency", "moral_appeal", "self_interest", "sunk_cost")
"""How pressure works on whoever reads it: the tags of items that take a side."""

SIDED_KINDS: Final = tuple(kind for kind in ITEM_KINDS if kind not in NEUTRAL_KINDS)
"""Kinds that are written once for each system goal."""

LONGEST_PHASE: Final = 64
AFTER_SWITCH: Final = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """What there is of one kind for one system goal."""

    kind: str
    system_goal: str
    n_items: int
    n_composed: int
    """Of them, requests that were put together from parts."""
    n_with_stock: int
    """Of them, items that name a stock of the run."""
    n_words: tuple[int, ...]
    """Words in the body of each item."""
    mechanisms: Mapping[str, int]
    """Number of items that carry each tag."""

    @property
    def mean_words(self) -> float:
        """Mean number of words of a body; NaN where there is no item."""
        return fmean(self.n_words) if self.n_words else float("nan")


def count_words(item: Item) -> int:
    """Return the number of words in an item's body, as blanks divide them."""
    return len(item.body.split())


def measured(corpus: Corpus) -> list[Measure]:
    """Return the measures of every kind: the neutral ones first, then those of each system goal."""
    keys = [(kind, NEUTRAL) for kind in NEUTRAL_KINDS]
    keys += [(kind, goal) for kind in SIDED_KINDS for goal in GOAL_PAIRS]
    return [_measure(kind, goal, corpus.of_kind(kind, goal)) for kind, goal in keys]


def _measure(kind: str, goal: str, items: Sequence[Item]) -> Measure:
    tags = Counter(tag for item in items for tag in dict.fromkeys(item.tags))
    return Measure(
        kind=kind,
        system_goal=goal,
        n_items=len(items),
        n_composed=sum(item.round > 0 for item in items),
        n_with_stock=sum(item.names_a_stock for item in items),
        n_words=tuple(map(count_words, items)),
        mechanisms={name: tags[name] for name in MECHANISMS},
    )


def by_goal(measures: Sequence[Measure]) -> dict[str, Measure]:
    """Return the measures of all sided kinds together, by system goal."""
    whole = {}
    for goal in GOAL_PAIRS:
        of_goal = [one for one in measures if one.system_goal == goal]
        whole[goal] = Measure(
            kind="all",
            system_goal=goal,
            n_items=sum(one.n_items for one in of_goal),
            n_composed=sum(one.n_composed for one in of_goal),
            n_with_stock=sum(one.n_with_stock for one in of_goal),
            n_words=tuple(n for one in of_goal for n in one.n_words),
            mechanisms={name: sum(one.mechanisms[name] for one in of_goal) for name in MECHANISMS},
        )
    return whole


def longest_scenarios(system_goal: str) -> dict[str, Scenario]:
    """Return the longest episode of each treatment that the corpus has to suffice for, by name."""
    goal = GOAL_PAIRS[system_goal].system.id
    switch = Scenario(goal, "goal_switching", None, n_instrumental=LONGEST_PHASE, n_evaluation=AFTER_SWITCH)
    combined = replace(switch, setting="combined")
    return {
        "baseline, 30 quarters": Scenario(goal),
        "adversarial_pressure, 30 quarters": Scenario(goal, "adversarial_pressure"),
        "goal_switching, 64 + 10 quarters": switch,
        "combined, 64 + 10 quarters": combined,
        "goal_switching after requests, 64 + 10 quarters": replace(switch, instrumental_goal="requests"),
        "combined after requests, 64 + 10 quarters": replace(combined, instrumental_goal="requests"),
    }


def kinds_table(corpus: Corpus) -> list[list[str]]:
    """Return a table of kinds: how many items, how long, how many that name a stock; the first row holds the heads."""
    rows = [["kind", "system goal", "items", "words, mean", "words, range", "name a stock"]]
    for one in measured(corpus):
        written = one.n_items - one.n_composed
        n_items = f"{written} + {one.n_composed} composed" if one.n_composed else str(written)
        spread = f"{min(one.n_words)} to {max(one.n_words)}" if one.n_words else "-"
        mean = f"{one.mean_words:.1f}" if one.n_words else "-"
        rows.append([one.kind, one.system_goal or "any", n_items, mean, spread, str(one.n_with_stock)])
    return rows


def mechanisms_table(corpus: Corpus) -> list[list[str]]:
    """Return a table of mechanisms: how many items carry each tag, by kind and over all, for either system goal."""
    measures = measured(corpus)
    goals = tuple(GOAL_PAIRS)
    rows = [["mechanism", *SIDED_KINDS, "all", "share of tags"]]
    whole = by_goal(measures)
    n_tags = {goal: sum(whole[goal].mechanisms.values()) or 1 for goal in goals}
    for name in MECHANISMS:
        counts = [
            " / ".join(str(one.mechanisms[name]) for goal in goals for one in measures if _is(one, kind, goal))
            for kind in SIDED_KINDS
        ]
        all_of_it = " / ".join(str(whole[goal].mechanisms[name]) for goal in goals)
        shares = " / ".join(f"{whole[goal].mechanisms[name] / n_tags[goal]:.0%}" for goal in goals)
        rows.append([name, *counts, all_of_it, shares])
    return rows


def needs_table(corpus: Corpus) -> list[list[str]]:
    """Return a table of treatments: how many items of each kind the longest run can need, and how many there are."""
    rows = [["treatment", *ITEM_KINDS]]
    for goal in GOAL_PAIRS:
        for name, scenario in longest_scenarios(goal).items():
            needed = needed_items(scenario)
            rows.append([f"{goal}: {name}", *(str(needed.get(kind, 0)) for kind in ITEM_KINDS)])
        rows.append([f"{goal}: in the corpus", *(str(len(corpus.of_kind(kind, goal))) for kind in ITEM_KINDS)])
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, its columns of even width.

    >>> print(markdown([["kind", "items"], ["general_news", "160"]]))
    | kind         | items |
    |--------------|-------|
    | general_news | 160   |
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(f"{cell:<{n}}" for cell, n in zip(row, widths, strict=True)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (n + 2) for n in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _is(measure: Measure, kind: str, goal: str) -> bool:
    return measure.kind == kind and measure.system_goal == goal
