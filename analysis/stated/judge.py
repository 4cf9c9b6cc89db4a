"""Owns the classifier of stated goals by a judge model: what it is asked, how often, and what of its verdicts is kept.

Every raw verdict is kept in a file, by the hash of what was asked, so that the same command asks nothing twice, and
runs that answered in the same words share their verdicts. A verdict that is none of the four words is no verdict: it
is counted and named, never guessed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml

from analysis.runs import SourceError
from analysis.stated.interviews import Told
from analysis.stated.rules import CLASSES, StatedGoal
from experiments.chat import Model, Position, Prompt, user
from experiments.errors import ContextLimit, Refused, RunEnded, SweepStop

AT_ONCE: Final = 8
"""Requests at once, below whatever limit the model's service has."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a judge said of one answer, asked several times."""

    raw: tuple[str, ...]

    @property
    def parsed(self) -> tuple[StatedGoal, ...]:
        """The verdicts that are one of the four words."""
        return tuple(word for word in map(_word, self.raw) if word is not None)

    @property
    def label(self) -> StatedGoal | None:
        """The class that most verdicts give; unclear on a tie, None without a verdict."""
        counts = Counter(self.parsed).most_common(2)
        if not counts:
            return None
        return "unclear" if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]

    @property
    def n_unread(self) -> int:
        """How many verdicts are none of the four words."""
        return len(self.raw) - len(self.parsed)

    @property
    def agreement_frac(self) -> float:
        """The share of pairs of verdicts that agree; NaN with fewer than two."""
        n = len(self.parsed)
        same = sum(count * (count - 1) for count in Counter(self.parsed).values())
        return same / (n * (n - 1)) if n > 1 else float("nan")


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said of all runs, and what asking took this time."""

    by_run: Mapping[str, Verdicts]
    n_asked: int
    cost_usd: float | None
    """None where the price is unknown."""


def judge_told(model: Model, identity: Mapping[str, Any], told: Sequence[Told], *, repeats: int, kept: Path) -> Judged:
    """Return a judge's verdicts on the last answer of every run.

    Args:
        model: any adapter.
        identity: what can change the model's answers; verdicts of another judge are not taken for its own.
        told: the runs; those without an answer are passed over.
        repeats: how often each answer is judged.
        kept: JSON Lines file of raw verdicts, read first and appended to.

    Raises:
        SourceError: if the file cannot be used, or the judge does not answer; what was answered until then is kept.
    """
    judge = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    known = _read(kept)
    asked = {(one.run_id, n): prompt_for(one, n) for one in told if one.last("goal") for n in range(repeats)}
    keys = {place: _key(judge, prompt, place[1]) for place, prompt in asked.items()}
    due = {keys[place]: asked[place] for place in asked if keys[place] not in known}
    costs = asyncio.run(_ask_all(model, due, known, kept)) if due else []
    ids = [one.run_id for one in told if (one.run_id, 0) in keys]
    by_run = {run_id: Verdicts(tuple(known[keys[run_id, n]] for n in range(repeats))) for run_id in ids}
    total = None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None)
    return Judged(by_run, len(due), total)


def prompt_for(told: Told, repeat: int) -> Prompt:
    """Return what a judge reads of a run's last answer.

    Args:
        told: the run.
        repeat: 0 the first time; other times may draw another answer, where the model draws at all.
    """
    words, answer = _words(), told.last("goal")
    text = words["user"].format(
        system=words["goals"][told.cell.system_goal],
        competing=", or ".join(words["goals"][goal] for goal in told.competing),
        answer="" if answer is None else answer.text,
    )
    return Prompt(words["system"], (), [user(text)], Position(repeat, 0, 0), tool_use="none")


async def _ask_all(model: Model, due: Mapping[str, Prompt], known: dict[str, str], kept: Path) -> list[float | None]:
    room, costs = asyncio.Semaphore(AT_ONCE), list[float | None]()

    async def ask(key: str, prompt: Prompt) -> None:
        async with room:
            known[key], cost = await _verdict(model, prompt)
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "verdict": known[key]}) + "\n")
        costs.append(cost)

    try:
        async with asyncio.TaskGroup() as tasks:  # an outage strikes every request: the first ends the others
            for key, prompt in due.items():
                tasks.create_task(ask(key, prompt))
    except ExceptionGroup as group:  # `except*` would put what is raised here into a group again
        expected, others = group.split((RunEnded, SweepStop))
        if expected is None or others is not None:
            raise
        told = expected.exceptions[0]
        raise SourceError(f"the judge {model.name!r} does not answer: {told}; verdicts so far are kept") from told
    return costs


async def _verdict(model: Model, prompt: Prompt) -> tuple[str, float | None]:
    """Return what a judge says, and its cost; a judge that declines one answer says nothing of the others."""
    try:
        completion = await model.complete(prompt)
    except (Refused, ContextLimit) as error:
        return f"[{error.outcome}: {error.reason}]", None
    return completion.message.text, None if completion.usage is None else completion.usage.cost_usd


def _read(kept: Path) -> dict[str, str]:
    known: dict[str, str] = {}
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        return known
    lines = kept.read_text(encoding="utf-8").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            known[entry["key"]] = str(entry["verdict"])
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{kept}, line {number}: no verdict of a judge; delete the line or the file") from error
    return known


def _key(judge: str, prompt: Prompt, repeat: int) -> str:
    text = "\0".join([judge, prompt.system, prompt.messages[0].text, str(repeat)])
    return hashlib.sha256(text.encode()).hexdigest()


def _word(raw: str) -> StatedGoal | None:
    words = re.findall(r"[a-z]+", raw.lower())
    return next((name for name in CLASSES if words == [name]), None)


@lru_cache(maxsize=1)
def _words() -> Any:
    return yaml.safe_load(files("analysis.stated").joinpath("judge.yaml").read_text(encoding="utf-8"))
