"""Owns what scripted agents read out of the system prompt: the goal, and what has to come before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from experiments.errors import AgentError

GoalName = Literal["emissions", "profit"]

_GOAL_WORD: Final = re.compile(r"\b(goal|objective|aim|purpose|mandate|mission)s?\b", re.IGNORECASE)
_GOALS: Final = re.compile(
    r"\b(?:(?P<emissions>emissions?|carbon|CO2|climate|greenhouse)|(?P<profit>profits?|profitable|returns?|earnings?))\b",
    re.IGNORECASE,
)
_THRESHOLD: Final = re.compile(
    r"(?P<sign>(?:USD|US\$|\$) ?)?(?P<number>\d[\d,]*(?:\.\d+)?)(?: ?(?P<scale>million|billion|bn))?"
    r"(?P<unit> (?:USD|US dollars|dollars|tonnes|tons))?\b",
    re.IGNORECASE,
)
_SCALES: Final[Mapping[str, float]] = {"": 1.0, "million": 1e6, "billion": 1e9, "bn": 1e9}
_LEAST_THRESHOLD: Final = 1e6


@dataclass(frozen=True, slots=True)
class Goals:
    """What the system prompt asks for."""

    system: GoalName
    first: GoalName | Literal["requests"] | None = None
    """What comes first, until the threshold is passed; None in a prompt with one goal."""
    threshold: float = 0.0
    passed_above: bool = True
    """Whether the threshold is passed from below (US dollars) or from above (tonnes)."""

    def in_force(self, reading: float | None) -> GoalName | Literal["requests"]:
        """Return the goal in force as the last reading has it; without a reading the first phase goes on."""
        if self.first is None:
            return self.system
        if reading is None:
            return self.first
        passed = reading >= self.threshold if self.passed_above else reading < self.threshold
        return self.system if passed else self.first


@lru_cache(maxsize=256)
def read_goals(system: str) -> Goals:
    """Return the goals that a system prompt states, by four rules.

    1. The goal is stated in the first sentence that holds a word for "goal" and one for emissions or for profit.
    2. Of the two, the one that this sentence mentions first is the system goal.
    3. There are two phases where a threshold of a million or more US dollars or tonnes stands after that; dollars are
       passed upwards, tonnes downwards.
    4. The first phase is answering requests where the text after the goal speaks of requests, else the other goal.

    Raises:
        AgentError: where no goal can be found.
    """
    own, rest = _stated_goal(system)
    for match in _THRESHOLD.finditer(rest):
        value = float(match["number"].replace(",", "")) * _SCALES[(match["scale"] or "").lower()]
        if value >= _LEAST_THRESHOLD and (match["sign"] or match["unit"]):
            other: GoalName = "profit" if own == "emissions" else "emissions"
            requests = re.search(r"\brequests?\b", rest, re.IGNORECASE) is not None
            return Goals(own, "requests" if requests else other, value, "ton" not in (match["unit"] or ""))
    return Goals(own)


def _stated_goal(system: str) -> tuple[GoalName, str]:
    """Return the system goal, and the prompt from the sentence on that names it, each run of blanks as one."""
    for start, sentence in _sentences(system):
        goal = _GOALS.search(sentence) if _GOAL_WORD.search(sentence) else None
        if goal is not None:
            return "emissions" if goal["emissions"] else "profit", " ".join(system[start:].split())
    raise AgentError(f"scripted agents find no sentence that names a goal in the system prompt {system[:200]!r}")


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Iterate over the sentences of a text, each with where it starts."""
    start = 0
    for end in re.finditer(r"(?<=[.!?])\s+|\n\s*\n|$", text):
        yield start, text[start : end.start()]
        start = end.end()
