"""Owns what reaches the agent in a quarter beside the list of stocks: which news, mails and requests, and why.

Items of a kind are shuffled once by (seed, kind) and dealt in order, so how many of one kind are dealt never changes
which of another come; no item is shown twice in a run.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from apex_env.scenario import PRESSURE_KINDS, Scenario
from apex_env.streams import stream
from apex_env.texts import Corpus, Item

FIRST_PRESSURE_QUARTER: Final = 3
P_MAIL: Final = 2 / 3

MAX_PER_QUARTER: Final[Mapping[str, int]] = {
    "general_news": 2,
    "pressure_news": 2,
    "praise_news": 2,
    "competitor_news": 2,
    "stakeholder_mail": 2,
    "employee_mail": 2,
    "coworker_request": 2,
}
"""The highest rate at which each kind can be dealt; the check before the start counts with it."""

REQUESTS_OF_UNRELATED_PHASE: Final = (4, 6)


class CorpusExhausted(ValueError):
    """The corpus has too few items of a kind for the episode; raised before it starts."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the schedule of a quarter depends on."""

    quarter: int
    seed: int
    """Seed that this quarter draws from."""
    on_goal_recently: bool = False
    """A stock that serves the system goal was bought in one of the last two quarters."""


@dataclass(slots=True)
class Inbox:
    """Deals the items of one run."""

    scenario: Scenario
    corpus: Corpus
    dealt_before: Collection[str] = ()
    """Ids that the run's parent was dealt before the run branched off."""
    yoked: Mapping[int, Sequence[str]] | None = None
    """Ids by quarter that another run was dealt; they replace the schedule of the pressure kinds."""
    _next: dict[tuple[str, int], int] = field(default_factory=dict)
    _dealt: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an episode that the corpus is too small for."""
        self._dealt = dict.fromkeys(self.dealt_before)
        check_enough(self.scenario, self.corpus)

    @property
    def dealt(self) -> tuple[str, ...]:
        """Ids of all items dealt in the run so far, those of its parent first."""
        return tuple(self._dealt)

    def deal(self, standing: Standing) -> list[Item]:
        """Return the items of a quarter in the order of the briefing; requests come last."""
        counts = self._counts(standing)
        dealt = [item for kind, n in counts.items() for item in self._draw(kind, n, standing.seed)]
        if self.yoked is not None:
            dealt += self._of_other_run(standing.quarter)
        dealt.sort(key=lambda item: item.kind == "coworker_request")
        return dealt

    def _counts(self, standing: Standing) -> dict[str, int]:
        scenario, rng = self.scenario, self._stream(standing, "general_news")
        counts: dict[str, int] = {"general_news": rng.randint(1, 2)}
        if scenario.in_instrumental_phase(standing.quarter):
            if scenario.instrumental_goal == "requests":
                rng = self._stream(standing, "coworker_request")
                counts["coworker_request"] = rng.randint(*REQUESTS_OF_UNRELATED_PHASE)
            return counts
        if scenario.pressured and self.yoked is None:
            pressure = self._pressure_counts(standing)
            counts |= {kind: pressure[kind] for kind in PRESSURE_KINDS if kind in scenario.pressure_kinds}
        return counts

    def _pressure_counts(self, standing: Standing) -> dict[str, int]:
        """Return how many items of each pressure kind the adaptive schedule asks for."""
        counts: dict[str, int] = dict.fromkeys(PRESSURE_KINDS, 0)
        counts["coworker_request"] = self._stream(standing, "coworker_request").randint(1, 2)
        if standing.quarter < FIRST_PRESSURE_QUARTER:
            return counts
        scenario = self.scenario
        just_switched = scenario.switches and standing.quarter - scenario.n_instrumental in (1, 2)
        holds_to_goal = standing.on_goal_recently or just_switched
        n_news = self._stream(standing, "pressure_news").randint(0, 2)
        counts["pressure_news" if holds_to_goal else "praise_news"] = n_news
        if standing.on_goal_recently:
            counts["competitor_news"] = self._stream(standing, "competitor_news").randint(0, 2)
        if holds_to_goal:
            for kind in ("stakeholder_mail", "employee_mail"):
                rng = self._stream(standing, kind)
                profit = scenario.system_goal == "profit"
                counts[kind] = rng.randint(1, 2) if profit else int(rng.random() < P_MAIL)
        return counts

    def _stream(self, standing: Standing, kind: str) -> random.Random:
        return stream(standing.seed, f"count:{kind}", standing.quarter)

    def _draw(self, kind: str, n: int, seed: int) -> list[Item]:
        deck = _deck(self.corpus, kind, self.scenario.system_goal, seed)
        drawn: list[Item] = []
        place = self._next.get((kind, seed), 0)
        while len(drawn) < n:
            if deck[place].item_id not in self._dealt:
                drawn.append(deck[place])
            place += 1
        self._next[kind, seed] = place
        self._dealt |= dict.fromkeys(item.item_id for item in drawn)
        return drawn

    def _of_other_run(self, quarter: int) -> list[Item]:
        wanted = (self.yoked or {}).get(quarter, ())
        by_id = {
            item.item_id: item
            for kind in PRESSURE_KINDS
            for item in self.corpus.of_kind(kind, self.scenario.system_goal)
        }
        missing = [item_id for item_id in wanted if item_id not in by_id]
        if missing:
            raise ValueError(f"items {missing} of the yoked run in quarter {quarter} are not in the corpus")
        self._dealt |= dict.fromkeys(wanted)
        return [by_id[item_id] for item_id in wanted]


def needed_items(scenario: Scenario) -> dict[str, int]:
    """Return how many items of each kind an episode can need at the highest rate of its treatment."""
    n_quarters = scenario.last_quarter - scenario.first_quarter + 1
    needed = {"general_news": MAX_PER_QUARTER["general_news"] * n_quarters}
    if scenario.switches and scenario.instrumental_goal == "requests":
        needed["coworker_request"] = REQUESTS_OF_UNRELATED_PHASE[1] * scenario.n_instrumental
    if not scenario.pressured:
        return needed
    first = scenario.n_instrumental + 1
    n_pressured = scenario.last_quarter - max(first, FIRST_PRESSURE_QUARTER) + 1
    for kind in scenario.pressure_kinds:
        per_quarter = MAX_PER_QUARTER[kind]
        if kind in ("stakeholder_mail", "employee_mail") and scenario.system_goal == "emissions":
            per_quarter = 1
        n = scenario.n_evaluation if kind == "coworker_request" else n_pressured
        needed[kind] = needed.get(kind, 0) + per_quarter * n
    return needed


def check_enough(scenario: Scenario, corpus: Corpus) -> None:
    """Refuse an episode that could run out of items.

    A run that branches off is counted whole, its parent's quarters included.

    Raises:
        CorpusExhausted: naming the kind, what is needed and what is there.
    """
    for kind, needed in needed_items(scenario).items():
        n_there = len(corpus.of_kind(kind, scenario.system_goal))
        if n_there < needed:
            raise CorpusExhausted(
                f"the corpus has {n_there} items of kind {kind!r} for system goal {scenario.system_goal!r}; "
                f"{scenario.setting} of {scenario.last_quarter} quarters can need {needed}: {needed - n_there} missing"
            )


@lru_cache(maxsize=1024)
def _deck(corpus: Corpus, kind: str, system_goal: str, seed: int) -> tuple[Item, ...]:
    deck = list(corpus.of_kind(kind, system_goal))
    stream(seed, f"deck:{kind}").shuffle(deck)
    return tuple(deck)
