"""Owns the agent that repeats what a record, or a run of the published ledger, once decided.

A record is repeated turn by turn, word for word. The ledger holds no turns, so each of its quarters is one turn with
all of the quarter's calls; quarters that it does not know are closed without acting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from apex_env.protocol import ToolCall
from experiments.chat import Completion, Message, Prompt
from experiments.errors import AgentError, InputError, RecordError
from experiments.models import check_names
from experiments.published_ledger import read_ledger
from experiments.published_runs import LedgerError, PublishedRun
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig
from experiments.stand_ins import stand_in

Turns = Mapping[tuple[int, int], Message]
"""What is said, by quarter and turn."""

_FINISH: Final = "finish_quarter"


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """Repeats recorded turns."""

    name: str
    source: str
    turns: Turns

    async def complete(self, prompt: Prompt) -> Completion:
        """Return what was said at this place of the run.

        Raises:
            AgentError: where the source has no turn for it.
        """
        place = (prompt.position.period, prompt.position.turn)
        message = self.turns.get(place)
        if message is None:
            raise AgentError(f"{self.source} has no turn {place[1]} in quarter {place[0]}")
        return Completion(message, "calls" if message.calls else "done", model_reported=self.name)


def build(config: ModelConfig) -> RecordedModel:
    """Return the agent that repeats ``params.source``: a record, or a ledger with the id of a run in ``params.run``.

    Raises:
        InputError: if there is no such source or run, or if it cannot be read.
    """
    check_names(config, params=("source", "run"))
    source, run_id = config.params.get("source"), config.params.get("run")
    if not source:
        raise InputError(f"model {config.name!r} needs params.source: a record (.jsonl), or a published ledger")
    path = Path(str(source))
    if not path.is_file():
        raise InputError(f"model {config.name!r}: source {path} is no file")
    if run_id is None:
        try:
            return RecordedModel(config.name, str(path), turns_of_record(read_record(path)))
        except RecordError as error:
            raise InputError(f"model {config.name!r}: {error}; of a published ledger, name params.run too") from error
    return RecordedModel(config.name, f"{path}, run {run_id}", turns_of_published(_published_run(path, str(run_id))))


def turns_of_record(record: Record) -> Turns:
    """Return what the model of a record said, by quarter and turn."""
    turns: dict[tuple[int, int], Message] = {}
    for line in record.of_type("turn"):
        if line["by"] == "model":
            calls = tuple(ToolCall(call["sent_id"], call["tool"], call["arguments"]) for call in line["calls"])
            turns[line["quarter"], line["turn"]] = Message("assistant", line["message"]["text"], calls)
    return turns


def turns_of_published(run: PublishedRun) -> Turns:
    """Return the decisions of a published run, one turn a quarter; a quarter that was forced is closed here at once."""
    turns: dict[tuple[int, int], Message] = {}
    for quarter in run.quarters:
        t = quarter.books.quarter
        calls = [stand_in(call, f"q{t}c{place}") for place, call in enumerate(quarter.calls or ())]
        if not any(call.name == _FINISH for call in calls):
            calls.append(ToolCall(f"q{t}end", _FINISH, {}))
        turns[t, 0] = Message("assistant", "", tuple(calls))
    return turns


@lru_cache(maxsize=64)
def _published_run(path: Path, run_id: str) -> PublishedRun:
    try:
        found = next((run for run in read_ledger(path) if run.run_id == run_id), None)
    except LedgerError as error:
        raise InputError(str(error)) from error
    if found is None:
        raise InputError(f"{path} has no run {run_id!r}")
    return found
