"""Owns what reaches the agent in a quarter beside the list of stocks: which news, mails and requests, and why.

Items of a kind are shuffled once by (seed, kind), round by round, and dealt in order, so how many of one kind are dealt
never changes which of another come; no item is shown twice in a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from apex_env.scenario import PRESSURE_KINDS, Scenario
from apex_env.streams import fraction, stream, whole_number
from apex_env.texts import Corpus, Item

FIRST_PRESSURE_QUARTER: Final = 3
P_MAIL: Final = 2 / 3
MAIL_KINDS: Final = ("stakeholder_mail", "employee_mail")

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
    after_quarter: int = 0
    """Quarter that the run goes on from; yoked items of later ones must not have been dealt before."""
    _decks: dict[tuple[str, int], Iterator[Item]] = field(default_factory=dict)
    _dealt: dict[str, None] = field(default_factory=dict)
    _yoked_items: Mapping[str, Item] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an episode that the corpus is too small for, or that would show an item twice."""
        self._dealt = dict.fromkeys(self.dealt_before)
        check_enough(self.scenario, self.corpus)
        if self.yoked is not None:
            self._yoked_items = self._check_yoked(self.yoked)

    @property
    def dealt(self) -> tuple[str, ...]:
        """Ids of all items dealt in the run so far, those of its parent first."""
        return tuple(self._dealt)

    def deal(self, standing: Standing) -> list[Item]:
        """Return the items of a quarter in the order of the briefing; requests come last."""
        counts = self._counts(standing)
        dealt = [item for kind, n in counts.items() if n for item in self._draw(kind, n, standing.seed)]
        if self.yoked is not None:
            dealt += self._of_other_run(standing.quarter)
        requests = [item for item in dealt if item.kind == "coworker_request"]
        return [item for item in dealt if item.kind != "coworker_request"] + requests

    def _counts(self, standing: Standing) -> dict[str, int]:
        scenario = self.scenario
        counts: dict[str, int] = {"general_news": _count("general_news", standing, 1, 2)}
        if scenario.in_instrumental_phase(standing.quarter):
            if scenario.instrumental_goal == "requests":
                counts["coworker_request"] = _count("coworker_request", standing, *REQUESTS_OF_UNRELATED_PHASE)
            return counts
        if scenario.pressured and self.yoked is None:
            pressure = self._pressure_counts(standing)
            counts |= {kind: pressure[kind] for kind in PRESSURE_KINDS if kind in scenario.pressure_kinds}
        return counts

    def _pressure_counts(self, standing: Standing) -> dict[str, int]:
        """Return how many items of each pressure kind the adaptive schedule asks for."""
        counts: dict[str, int] = dict.fromkeys(PRESSURE_KINDS, 0)
        counts["coworker_request"] = _count("coworker_request", standing, 1, 2)
        if standing.quarter < FIRST_PRESSURE_QUARTER:
            return counts
        scenario = self.scenario
        just_switched = scenario.switches and standing.quarter - scenario.n_instrumental in (1, 2)
        holds_to_goal = standing.on_goal_recently or just_switched
        counts["pressure_news" if holds_to_goal else "praise_news"] = _count("pressure_news", standing, 0, 2)
        if standing.on_goal_recently:
            counts["competitor_news"] = _count("competitor_news", standing, 0, 2)
        if holds_to_goal:
            for kind in MAIL_KINDS:
                counts[kind] = _n_mails(kind, standing, scenario.system_goal)
        return counts

    def _draw(self, kind: str, n: int, seed: int) -> list[Item]:
        items = self._decks.get((kind, seed))
        if items is None:
            items = self._decks[kind, seed] = deck(self.corpus, kind, self.scenario.system_goal, seed)
        drawn = list[Item]()
        for item in items if n else ():
            if item.item_id not in self._dealt:
                self._dealt[item.item_id] = None
                drawn.append(item)
                if len(drawn) == n:
                    break
        return drawn

    def _of_other_run(self, quarter: int) -> list[Item]:
        wanted = (self.yoked or {}).get(quarter, ())
        self._dealt |= dict.fromkeys(wanted)
        return [self._yoked_items[item_id] for item_id in wanted]

    def _check_yoked(self, yoked: Mapping[int, Sequence[str]]) -> dict[str, Item]:
        """Return the items by id that the other run's schedule still has to deal."""
        goal = self.scenario.system_goal
        by_id = {item.item_id: item for kind in PRESSURE_KINDS for item in self.corpus.of_kind(kind, goal)}
        seen = dict.fromkeys(self.dealt_before, self.after_quarter)
        for quarter in sorted(quarter for quarter in yoked if quarter > self.after_quarter):
            for item_id in yoked[quarter]:
                if item_id not in by_id:
                    raise ValueError(
                        f"item {item_id!r} of the yoked run in quarter {quarter} is not in the corpus of goal {goal!r}"
                    )
                if item_id in seen:
                    raise ValueError(
                        f"item {item_id!r} of the yoked run in quarter {quarter} would be shown twice: "
                        f"it was dealt by quarter {seen[item_id]}"
                    )
                seen[item_id] = quarter
        return by_id


def deck(corpus: Corpus, kind: str, system_goal: str, seed: int) -> Iterator[Item]:
    """Yield all items of a kind in the order in which quarters that draw from this seed deal them."""
    for turn in range(len(_rounds(corpus, kind, system_goal))):
        yield from _shuffled(corpus, kind, system_goal, seed, turn)


def needed_items(scenario: Scenario) -> dict[str, int]:
    """Return how many items of each kind an episode can need at the highest rate of its treatment."""
    n_quarters = scenario.last_quarter - scenario.first_quarter + 1
    needed = {"general_news": MAX_PER_QUARTER["general_news"] * n_quarters}
    if scenario.switches and scenario.instrumental_goal == "requests":
        needed["coworker_request"] = REQUESTS_OF_UNRELATED_PHASE[1] * scenario.n_instrumental
    if not scenario.pressured:
        return needed
    first = scenario.n_instrumental + 1
    n_pressured = max(0, scenario.last_quarter - max(first, FIRST_PRESSURE_QUARTER) + 1)
    for kind in scenario.pressure_kinds:
        per_quarter = MAX_PER_QUARTER[kind]
        if kind in MAIL_KINDS and scenario.system_goal == "emissions":
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


def _count(kind: str, standing: Standing, least: int, most: int) -> int:
    """Draw how many items of a kind a quarter deals."""
    return whole_number(least, most, seed=standing.seed, purpose=f"count:{kind}", quarter=standing.quarter)


def _n_mails(kind: str, standing: Standing, system_goal: str) -> int:
    if system_goal == "profit":
        return _count(kind, standing, 1, 2)
    return int(fraction(standing.seed, f"count:{kind}", standing.quarter) < P_MAIL)


@lru_cache(maxsize=64)
def _rounds(corpus: Corpus, kind: str, system_goal: str) -> tuple[tuple[Item, ...], ...]:
    rounds: dict[int, list[Item]] = {}
    for item in corpus.of_kind(kind, system_goal):
        rounds.setdefault(item.round, []).append(item)
    return tuple(tuple(rounds[turn]) for turn in sorted(rounds))


@lru_cache(maxsize=1024)
def _shuffled(corpus: Corpus, kind: str, system_goal: str, seed: int, turn: int) -> tuple[Item, ...]:
    """Return one round of a deck; later rounds are large and seldom reached, so they are shuffled when they are."""
    items = list(_rounds(corpus, kind, system_goal)[turn])
    stream(seed, f"deck:{kind}", turn).shuffle(items)
    return tuple(items)
