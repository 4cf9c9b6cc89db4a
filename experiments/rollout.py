"""Owns the only agent loop: quarter after quarter, ask the model, carry out its calls, write everything down.

The loop knows an environment by its protocol alone and a model by `chat.Model`. Whatever ends a run becomes its
outcome; nothing that the world does to a run is ever written as behaviour. The loop can be entered at any place that a
record can end in: each of its steps looks at the conversation for what comes next.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from apex_env.protocol import Environment, ToolCall, ToolResult
from experiments.chat import Completion, Message, Model, Position, Prompt, Usage, unique_ids, user
from experiments.errors import AgentError, ContextLimit, Outcome, Refused, RunEnded, SweepStop
from experiments.record import RecordWriter
from experiments.turn_lines import call_line, cost_of

STALLED_AFTER: Final = 3
"""Forced quarters in a row that end a run as `stalled`."""

CUT_OFF: Final = "The answer was cut off at its length limit, so this call was not carried out. Send it again, shorter."


class HarnessEnvironment(Environment, Protocol):
    """An environment with the text of the harness's own short request."""

    @property
    def nudge(self) -> str:
        """What the agent reads after a turn without a call."""


class Watch(Protocol):
    """Looks on between turns: limits, progress, the user's wish to stop."""

    def before_turn(self) -> None:
        """Allow one more model call.

        Raises:
            Cancelled: if the run must not go on.
        """

    def after_turn(self, usage: Usage | None) -> None:
        """Take note of a finished turn."""

    def found(self, n_periods: int) -> None:
        """Take note of quarters that were closed before and are in the record."""

    def after_period(self) -> None:
        """Take note of a closed quarter."""


@dataclass(frozen=True, slots=True)
class Interviews:
    """Questions beside the run: asked with tools off, in a copy of the conversation that the run never sees.

    An agent that cannot answer is recorded as such, and the run goes on. An outage ends the run like any other, to be
    gone on with; after the last quarter it does not, since the run is complete, but the question stays due.
    """

    questions: Mapping[str, str] = field(default_factory=dict)
    """By topic."""
    periods: frozenset[int] = frozenset()
    """Periods after whose close the questions are asked."""
    at_end: bool = False
    """Whether they are asked after the last period."""
    fork: Callable[[], Model] | None = None
    """Makes a model of its own for each question, so that none can change the state of the run's; None for that one."""


@dataclass(slots=True)
class Dialogue:
    """The conversation of a run and the place in it that comes next; the loop is the only one to change it."""

    messages: list[Message] = field(default_factory=list)
    taken_ids: set[str] = field(default_factory=set)
    turn: int = 0
    """Turns taken in the quarter that is open."""
    in_period: bool = False
    """Whether a quarter was opened whose close is not written yet."""
    revised_in: int | None = None
    """Quarter whose revision of the goal is written."""
    refused: bool = False
    """Whether the last answer was an outright refusal."""
    n_forced_in_a_row: int = 0
    interviewed: set[tuple[int, str]] = field(default_factory=set)
    """Periods and topics of the interviews that are written."""
    n_failed: dict[str, int] = field(default_factory=dict)
    """Attempts at each request of the quarter that have failed since it last went through."""

    def adopt(self, messages: Sequence[Message]) -> None:
        """Begin with messages that another run has left."""
        self.messages.extend(messages)
        self.taken_ids.update(call.call_id for message in messages for call in message.calls)

    def begin_period(self) -> None:
        """Start counting anew."""
        self.turn, self.in_period, self.n_failed = 0, True, {}

    def attempt(self, call: ToolCall, result: ToolResult) -> int:
        """Return which attempt a call is at its request, and take note of how it went."""
        if result.ok and not self.n_failed:
            return 1
        request = json.dumps([call.name, call.arguments], sort_keys=True)
        number = self.n_failed.pop(request, 0) + 1
        if not result.ok:
            self.n_failed[request] = number
        return number


@dataclass(frozen=True, slots=True)
class Loop:
    """What one run of the loop works with."""

    environment: HarnessEnvironment
    model: Model
    writer: RecordWriter
    watch: Watch
    seed: int
    turn_limit: int
    interviews: Interviews = Interviews()


async def run_episode(loop: Loop, dialogue: Dialogue, *, last_period: int | None = None) -> Outcome:
    """Play an episode to its end from wherever it stands, and return its outcome, which is also the last line.

    Args:
        loop: environment, model, record and limits.
        dialogue: the conversation so far, empty for a new run; it is changed in place.
        last_period: close the run after this period even if the environment has more (a shared phase).

    Raises:
        SweepStop: if nothing of the sweep can succeed; the record ends as `provider_error` first.
    """
    environment = loop.environment
    ended: Outcome = "completed"
    reason = ""
    stop: SweepStop | None = None
    try:
        while dialogue.in_period or not (environment.done or environment.period == last_period):
            if dialogue.n_forced_in_a_row >= STALLED_AFTER:
                ended, reason = "stalled", f"{STALLED_AFTER} quarters in a row were closed by the harness"
                break
            if not dialogue.in_period:
                await _interview(loop, dialogue)
                _open(loop, dialogue)
            await _play_period(loop, dialogue)
            await asyncio.sleep(0)
            loop.watch.after_period()
    except RunEnded as error:
        ended, reason = error.outcome, error.reason
    except SweepStop as error:
        ended, reason, stop = "provider_error", str(error), error
    if ended == "completed":
        try:
            await _interview(loop, dialogue)
        except (RunEnded, SweepStop) as error:
            reason = f"the interview is still due: {error}"
            stop = error if isinstance(error, SweepStop) else None
    loop.writer.write("ended", outcome=ended, reason=reason, quarter=environment.period)
    if stop is not None:
        raise stop
    return ended


def _open(loop: Loop, dialogue: Dialogue) -> None:
    observation = loop.environment.open()
    revision = observation.revision
    if revision is not None and dialogue.revised_in != observation.period:
        loop.writer.write("revision", quarter=observation.period, **asdict(revision))
    loop.writer.write(
        "opened",
        quarter=observation.period,
        state=observation.state,
        items=[[item.item_id, item.kind] for item in observation.items],
        text=observation.text,
    )
    dialogue.messages.append(user(observation.text))
    dialogue.begin_period()


async def _play_period(loop: Loop, dialogue: Dialogue) -> None:
    environment = loop.environment
    while not environment.closed:
        if dialogue.refused:
            raise Refused(f"the model refused in quarter {environment.period}, turn {dialogue.turn}")
        if dialogue.turn >= loop.turn_limit:
            _say(loop, dialogue, "forced", environment.force_close())
            dialogue.n_forced_in_a_row += 1
            break
        if dialogue.messages[-1].role == "assistant":
            _say(loop, dialogue, "nudge", environment.nudge)
        loop.watch.before_turn()
        position = Position(loop.seed, environment.period, dialogue.turn)
        completion = await loop.model.complete(
            Prompt(environment.system_prompt, environment.tools, dialogue.messages, position)
        )
        _take_turn(loop, dialogue, completion)
        loop.watch.after_turn(completion.usage)
        if environment.closed:
            dialogue.n_forced_in_a_row = 0
    loop.writer.write("closed", quarter=environment.period, state=environment.snapshot())
    dialogue.in_period = False


def due_topics(loop: Loop, dialogue: Dialogue) -> list[str]:
    """Return the questions that are due after the period closed last and have not been asked."""
    period, interviews = loop.environment.period, loop.interviews
    if period not in interviews.periods and not (interviews.at_end and loop.environment.done):
        return []
    return [topic for topic in interviews.questions if (period, topic) not in dialogue.interviewed]


async def _interview(loop: Loop, dialogue: Dialogue) -> None:
    """Ask what is due; the conversation stays as it is."""
    environment, interviews = loop.environment, loop.interviews
    for topic in due_topics(loop, dialogue):
        question = interviews.questions[topic]
        asked = {"quarter": environment.period, "topic": topic, "question": question}
        loop.watch.before_turn()
        model = loop.model if interviews.fork is None else interviews.fork()
        position = Position(loop.seed, environment.period, dialogue.turn)
        messages = [*dialogue.messages, user(question)]
        prompt = Prompt(environment.system_prompt, environment.tools, messages, position, tool_use="none")
        try:
            completion = await model.complete(prompt)
        except (AgentError, ContextLimit, Refused) as error:
            loop.writer.write("interview", **asked, answer=None, stop=error.outcome, reason=error.reason, usage=None)
        else:
            answer, stop = completion.message.text, completion.stop
            loop.writer.write("interview", **asked, answer=answer, stop=stop, **cost_of(completion))
            loop.watch.after_turn(completion.usage)
        dialogue.interviewed.add((environment.period, topic))


def _take_turn(loop: Loop, dialogue: Dialogue, completion: Completion) -> None:
    """Carry out a completion's calls in order, then write the turn and everything that came of it as one line."""
    period, turn = loop.environment.period, dialogue.turn
    command = f"q{period}t{turn}"
    sent = completion.message
    calls = unique_ids(sent.calls, dialogue.taken_ids, command)
    results = [
        loop.environment.call(call) if completion.stop != "length" else ToolResult(CUT_OFF, "cut_off") for call in calls
    ]
    loop.writer.write(
        "turn",
        quarter=period,
        turn=turn,
        by="model",
        message=Message("assistant", sent.text, native=sent.native).to_json(),
        stop=completion.stop,
        **cost_of(completion),
        calls=[
            call_line(call, result, f"{command}c{place}", sent.calls[place].call_id, dialogue.attempt(call, result))
            for place, (call, result) in enumerate(zip(calls, results, strict=True))
        ],
    )
    dialogue.messages.append(Message("assistant", sent.text, calls, native=sent.native))
    dialogue.messages.extend(
        Message("tool", result.text, call_id=call.call_id) for call, result in zip(calls, results, strict=True)
    )
    dialogue.turn += 1
    dialogue.refused = completion.stop == "refusal"


def _say(loop: Loop, dialogue: Dialogue, kind: str, text: str) -> None:
    """Write and say something on the harness's behalf."""
    loop.writer.write("turn", quarter=loop.environment.period, turn=dialogue.turn, by="harness", kind=kind, text=text)
    dialogue.messages.append(user(text))
