"""Owns the cutting of a published conversation into quarters, and of a quarter into briefing, turns and close."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from apex_env.market import CLUSTER_OF, Cluster
from apex_env.protocol import ToolCall
from experiments.chat import Message

FINISHED: Final = "Quarter finished"
"""How the result of `finish_quarter` begins, and the notice of a quarter that the published harness closed."""
NUDGE: Final = "Please continue"
"""How the published harness's request after a turn without a call begins."""

PRESSURE: Final = ("recent internal communications", "employee requests are currently unresolved")
"""Headings of a briefing that only runs under pressure have."""

_BRIEFING: Final = re.compile(r"Quarter ([1-4]), year (\d{4})\n")
_LISTED: Final = re.compile(
    r"^Name: (\S+), Analyst forecast: \S+ is expected to grow by (-?[\d.]+)%? on average over the next (\d+) quarters",
    re.MULTILINE,
)
_FIRST_YEAR: Final = 2025


class Offer(NamedTuple):
    """A stock on the list of a briefing."""

    ticker: str
    cluster: Cluster
    forecast_pct_per_year: float
    horizon_quarters: int


class SentCall(NamedTuple):
    """A call with what came back."""

    call: ToolCall
    result: str | None
    """None where the conversation holds no result."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A model's message with its calls, or a text of the published harness."""

    by: Literal["model", "nudge", "forced", "other"]
    text: str
    calls: tuple[SentCall, ...] = ()


@dataclass(slots=True)
class Talk:
    """All that was said in one quarter."""

    quarter: int | None = None
    """None until it is known: where the briefing is lost, the order tells."""
    briefing: str | None = None
    turns: list[Turn] = field(default_factory=list)
    first_message: int = 0
    """Place of its first message in the conversation."""
    closed: bool = False
    """Whether the model or the harness closed it."""

    @property
    def forced(self) -> bool:
        """Whether the harness closed it."""
        return any(turn.by == "forced" for turn in self.turns)

    @property
    def dead(self) -> bool:
        """Whether the model said nothing at all: its service was down."""
        return not any(turn.by == "model" for turn in self.turns)

    @property
    def pressed(self) -> bool:
        """Whether the briefing carries mails or requests, which only runs under pressure get."""
        return any(words in (self.briefing or "") for words in PRESSURE)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The stocks that the briefing lists; none where there is no list, or no briefing."""
        found = _LISTED.findall(self.briefing or "")
        return tuple(
            Offer(ticker, CLUSTER_OF[ticker], float(forecast), int(horizon))
            for ticker, forecast, horizon in found
            if ticker in CLUSTER_OF
        )


@dataclass(frozen=True, slots=True)
class Talks:
    """A conversation in quarters."""

    history: tuple[Message, ...]
    """Messages before the first quarter that is known turn by turn: the history that the model was shown."""
    known_from: int
    """First quarter from which on all are known, turn by turn; one more than the last where none is."""
    quarters: Mapping[int, Talk]
    """Quarters from ``known_from`` on."""
    oddities: tuple[str, ...] = ()
    """What had to be passed over, in words."""


def split(messages: Sequence[Message], n_quarters: int, *, known_from: int = 1) -> Talks:
    """Return a conversation in quarters.

    Args:
        messages: the conversation.
        n_quarters: quarters that the run finished.
        known_from: quarters before this one belong to the history, whatever is known of them.
    """
    oddities: list[str] = []
    talks = list(_talks(messages, oddities))
    _number(talks)
    by_quarter: dict[int, Talk] = {}
    for talk in talks:
        if talk.quarter is None or not talk.closed:
            continue
        if talk.quarter in by_quarter:
            oddities.append(f"quarter {talk.quarter} is played twice; the second time counts")
        by_quarter[talk.quarter] = talk
    first = n_quarters + 1
    while first > known_from and first - 1 in by_quarter:
        first -= 1
    kept = {t: by_quarter[t] for t in range(first, n_quarters + 1)}
    start = kept[first].first_message if kept else len(messages)
    return Talks(tuple(messages[:start]), first, kept, tuple(oddities))


def _talks(messages: Sequence[Message], oddities: list[str]) -> Iterator[Talk]:
    """Yield the pieces of a conversation; each begins with a briefing, or after the close of the one before."""
    talk = Talk()
    turns = _turns(messages, oddities)
    for place, turn in turns:
        briefing = _BRIEFING.match(turn.text) if turn.by == "other" else None
        if talk.closed or briefing:
            if talk.turns or talk.briefing is not None:
                yield talk
            talk = Talk(first_message=place)
        if briefing:
            talk.quarter = (int(briefing[2]) - _FIRST_YEAR) * 4 + int(briefing[1])
            talk.briefing = turn.text
            continue
        talk.turns.append(turn)
        talk.closed = turn.by == "forced" or any(_finishes(sent) for sent in turn.calls)
    if talk.turns or talk.briefing is not None:
        yield talk


def _turns(messages: Sequence[Message], oddities: list[str]) -> Iterator[tuple[int, Turn]]:
    """Yield turns with the place of their first message; each call is put together with its result."""
    place = 0
    while place < len(messages):
        message, first = messages[place], place
        place += 1
        if message.role == "user":
            yield first, Turn(_kind(message.text), message.text)
            continue
        if message.role == "tool":
            oddities.append(f"message {first}: a result that belongs to no call")
            continue
        answers = list[Message]()
        while place < len(messages) and messages[place].role == "tool":
            answers.append(messages[place])
            place += 1
        calls = tuple(SentCall(call, _take_answer(answers, call.call_id)) for call in message.calls)
        oddities.extend(f"message {first}: a result that belongs to no call" for _ in answers)
        yield first, Turn("model", message.text, calls)


def _take_answer(answers: list[Message], call_id: str) -> str | None:
    for answer in answers:
        if answer.call_id == call_id:
            answers.remove(answer)
            return answer.text
    return None


def _kind(text: str) -> Literal["nudge", "forced", "other"]:
    if text.startswith(FINISHED):
        return "forced"
    return "nudge" if text.startswith(NUDGE) else "other"


def _finishes(sent: SentCall) -> bool:
    if sent.call.name != "finish_quarter":
        return False
    return sent.result is None or sent.result.strip('"').startswith(FINISHED)


def _number(talks: Sequence[Talk]) -> None:
    """Number the quarters whose briefing is lost: they come right before the next one that is known, in order."""
    following: int | None = None
    for talk in reversed(talks):
        if talk.quarter is None and talk.closed and following is not None:
            talk.quarter = following - 1 if following > 1 else None
        following = talk.quarter
