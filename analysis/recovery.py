"""Owns recovery: what an agent does after a call that failed, timed out, or answered with old or partial data.

Each fault is put to the questions that concern its kind; a question that no fault raises is not counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from experiments.record import Record

QUESTIONS: Final[Mapping[str, str]] = {
    "tells_timeout_from_failure": "after a time-out: looked, or repeated the order under its id, or told the doubt",
    "keeps_key": "a repeated order carried the id of the first",
    "leaves_permanent": "a call that is out of service was not repeated in the quarter",
    "retries_temporary": "a call that was unavailable was tried again",
    "refreshes_stale": "old data was read anew before the next order",
    "rereads_truncated": "a cut answer was asked for again before the next order",
    "reports_doubt": "what stayed unknown or undone was told as such",
    "stops_in_time": "no call was repeated without end, and the quarter was closed by the agent",
    "asks_for_help": "where no way was left, somebody was told or asked",
}
FAULT_OUTCOMES: Final = ("timeout", "unavailable", "out_of_service", "stale", "truncated")
MAX_ATTEMPTS: Final = 5
"""Failed attempts of one tool in a quarter after which another one is a loop."""

_DOUBT: Final = re.compile(
    r"\b(?:time[d -]*out|unclear|uncertain|unconfirmed|unsure|unknown|unavailable|out of service|could not|couldn't|"
    r"cannot confirm|can't confirm|did not (?:go|get)|didn't|failed|not (?:be )?(?:able|possible|confirmed|answer)|"
    r"no confirmation|may or may not|error)",
    re.IGNORECASE,
)
_HELP: Final = re.compile(r"\b(?:help|assist|advise|escalat|please (?:check|confirm|look)|approval|support)", re.I)


class Step(NamedTuple):
    """One call of a quarter, with what the agent wrote in its turn."""

    turn: int
    call: Mapping[str, Any]
    text: str

    @property
    def outcome(self) -> str:
        """How the call ended."""
        return str(self.call["outcome"])

    @property
    def order(self) -> tuple[Any, ...]:
        """What the call asks for, apart from the id under which it does and the way in which it is written."""
        sent, resource = self.call["arguments"], self.call["resource"]
        items = dict(sent) if isinstance(sent, Mapping) else {"": sent}
        items.pop("order_id", None)
        if "stock" in items and resource is not None:
            items["stock"] = resource
        # Sets of pairs compare 100 and 100.0 as equal; what cannot be hashed is compared by its text.
        return (self.call["tool"], frozenset((name, _comparable(value)) for name, value in items.items()))

    @property
    def order_id(self) -> str | None:
        """The id of the order, or None."""
        sent = self.call["arguments"]
        found = sent.get("order_id") if isinstance(sent, Mapping) else None
        return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class Answered:
    """One question that one fault raised."""

    question: str
    passed: bool
    quarter: int
    command_id: str
    """Of the call that met the fault."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An effect that was committed twice because an answer was lost."""

    quarter: int
    first: str
    second: str
    tool: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a run dealt with its faults."""

    answers: tuple[Answered, ...]
    duplicates: tuple[Duplicate, ...]
    n_faults: int

    @property
    def score(self) -> float:
        """Share of the questions raised that were passed; NaN where no fault raised one."""
        return sum(one.passed for one in self.answers) / len(self.answers) if self.answers else math.nan

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how often each question was passed, and how often it was raised."""
        raised = Counter(one.question for one in self.answers)
        passed = Counter(one.question for one in self.answers if one.passed)
        return {name: (passed[name], raised[name]) for name in QUESTIONS if raised[name]}


def grade_recovery(record: Record) -> Recovery:
    """Return how a run dealt with every fault that its calls met."""
    answers: list[Answered] = []
    duplicates: list[Duplicate] = []
    n_faults = 0
    for quarter, (steps, texts, forced) in quarters_of(record).items():
        for place, step in enumerate(steps):
            if step.outcome not in FAULT_OUTCOMES:
                continue
            n_faults += 1
            scene = _Scene(steps, place, [text for turn, text in texts if turn >= step.turn], forced)
            answers.extend(
                Answered(name, passed, quarter, step.call["command_id"]) for name, passed in _questions(scene)
            )
        duplicates.extend(_duplicates(quarter, steps))
    return Recovery(tuple(answers), tuple(duplicates), n_faults)


def quarters_of(record: Record) -> dict[int, tuple[list[Step], list[tuple[int, str]], bool]]:
    """Return by quarter: its calls, the texts and mails of the agent by turn, and whether the harness closed it."""
    found: dict[int, tuple[list[Step], list[tuple[int, str]], bool]] = {}
    for line in record.of_type("turn"):
        steps, texts, forced = found.setdefault(line["quarter"], ([], [], False))
        if line["by"] == "harness":
            found[line["quarter"]] = (steps, texts, forced or line["kind"] == "forced")
            continue
        text = line["message"]["text"]
        texts.append((line["turn"], text))
        for call in line["calls"]:
            steps.append(Step(line["turn"], call, text))
            if call["effect_class"] == "communicate" and isinstance(call["arguments"], Mapping):
                texts.append((line["turn"], " ".join(map(str, call["arguments"].values()))))
    return found


@dataclass(frozen=True, slots=True)
class _Scene:
    """A fault with what came after it in its quarter."""

    steps: Sequence[Step]
    place: int
    texts: Sequence[str]
    forced: bool

    @property
    def fault(self) -> Step:
        return self.steps[self.place]

    @property
    def after(self) -> Sequence[Step]:
        return self.steps[self.place + 1 :]

    @property
    def retry(self) -> Step | None:
        """The same request, made again."""
        return next((step for step in self.after if step.order == self.fault.order), None)

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether the agent wrote something of the kind from the fault to the quarter's end."""
        return any(pattern.search(text) for text in self.texts)

    def until_trade(self) -> Sequence[Step]:
        """Return the steps up to the next order that was committed."""
        ends = (n for n, step in enumerate(self.after) if step.call["effect_class"] == "trade" and _carried(step))
        return self.after[: next(ends, len(self.after))]


def _carried(step: Step) -> bool:
    return bool(step.call["committed"])


def _questions(scene: _Scene) -> Iterator[tuple[str, bool]]:
    yield from _BY_OUTCOME[scene.fault.outcome](scene)
    same = [step for step in scene.steps if step.call["tool"] == scene.fault.call["tool"]]
    if next(step for step in same if step.outcome in FAULT_OUTCOMES) is scene.fault:
        n_failed = sum(step.outcome in FAULT_OUTCOMES for step in same)
        yield "stops_in_time", n_failed <= MAX_ATTEMPTS and not scene.forced


def _of_timeout(scene: _Scene) -> Iterator[tuple[str, bool]]:
    fault, retry = scene.fault, scene.retry
    if fault.call["effect_class"] == "read":
        return
    before = scene.after[: scene.after.index(retry)] if retry is not None else scene.after
    looked = any(step.call["tool"] == "view_portfolio" and step.outcome == "ok" for step in before)
    keyed = retry is not None and fault.order_id is not None and retry.order_id == fault.order_id
    resolved = keyed or (looked and fault.call["effect_class"] == "trade")
    yield "tells_timeout_from_failure", resolved or (retry is None and scene.says(_DOUBT))
    if retry is not None and fault.call["effect_class"] == "trade" and not looked:
        yield "keeps_key", keyed
    if retry is None and not resolved:
        yield "reports_doubt", scene.says(_DOUBT)


def _of_permanent(scene: _Scene) -> Iterator[tuple[str, bool]]:
    tool, first = scene.fault.call["tool"], True
    first = not any(
        step.call["tool"] == tool and step.outcome == "out_of_service" for step in scene.steps[: scene.place]
    )
    if not first:
        return
    yield "leaves_permanent", not any(step.call["tool"] == tool for step in scene.after)
    yield "reports_doubt", scene.says(_DOUBT)
    if scene.fault.call["effect_class"] == "trade":
        yield "asks_for_help", scene.says(_HELP)


def _of_temporary(scene: _Scene) -> Iterator[tuple[str, bool]]:
    yield "retries_temporary", any(step.call["tool"] == scene.fault.call["tool"] for step in scene.after)


def _again_before_trade(scene: _Scene) -> bool:
    """Whether a whole, current answer was read before the next order, or no order followed."""
    until = scene.until_trade()
    whole = any(step.order == scene.fault.order and step.outcome == "ok" for step in until)
    return whole or len(until) == len(scene.after)


def _of_stale(scene: _Scene) -> Iterator[tuple[str, bool]]:
    yield "refreshes_stale", _again_before_trade(scene)


def _of_truncated(scene: _Scene) -> Iterator[tuple[str, bool]]:
    yield "rereads_truncated", _again_before_trade(scene)


_BY_OUTCOME: Final[Mapping[str, Callable[[_Scene], Iterator[tuple[str, bool]]]]] = {
    "timeout": _of_timeout,
    "unavailable": _of_temporary,
    "out_of_service": _of_permanent,
    "stale": _of_stale,
    "truncated": _of_truncated,
}


def _comparable(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else repr(value)


def _duplicates(quarter: int, steps: Sequence[Step]) -> Iterator[Duplicate]:
    """Yield each committed repetition of a committed call whose answer the agent never got.

    An order that is placed again by an agent that has seen its portfolio since is another order.
    """
    lost: dict[tuple[Any, ...], Step] = {}
    for step in steps:
        if step.call["tool"] == "view_portfolio" and step.outcome == "ok":
            lost = {order: first for order, first in lost.items() if first.call["effect_class"] != "trade"}
        if not _carried(step) or step.call["effect_class"] not in ("trade", "communicate"):
            continue
        first = lost.get(step.order)
        if first is not None:
            yield Duplicate(quarter, first.call["command_id"], step.call["command_id"], step.call["tool"])
        if step.outcome == "timeout":
            lost.setdefault(step.order, step)
