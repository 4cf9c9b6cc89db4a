"""Builders for tests of the path from a configuration to records."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.chat import Completion, Message, Prompt, Usage
from experiments.grid import plan_runs
from experiments.models import build_model
from experiments.progress import Progress
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.sweep import Report, Sweep, run_sweep
from experiments.treatment import Treatment

IGNORED = ("time", "latency_s", "provenance", "seq", "attempts")
"""Fields in which two equal runs may differ."""


class NoWatch:
    """A watch that lets everything pass."""

    def before_turn(self) -> None:
        pass

    def after_turn(self, usage: Usage | None) -> None:
        pass

    def found(self, n_periods: int) -> None:
        pass

    def after_period(self) -> None:
        pass


class Replies:
    """An agent that says what a list says, turn by turn, then finishes every quarter."""

    def __init__(self, *replies: Any) -> None:
        self.name = "replies"
        self._replies = list(replies)
        self.prompts: list[list[Message]] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(list(prompt.messages))
        reply = self._replies.pop(0) if self._replies else finish()
        if isinstance(reply, Exception):
            raise reply
        return reply


def say(text: str = "", *calls: tuple[str, Any], stop: str = "calls") -> Completion:
    """Return a completion with calls given as (tool, arguments)."""
    from apex_env.protocol import ToolCall

    sent = tuple(ToolCall(f"id{place}", name, arguments) for place, (name, arguments) in enumerate(calls))
    return Completion(Message("assistant", text, sent), stop=stop)  # type: ignore[arg-type]


def finish() -> Completion:
    return say("done", ("finish_quarter", {}))


def scripted(name: str, **params: Any) -> ModelConfig:
    """Return the configuration of a scripted agent."""
    return ModelConfig(name, "scripted", name, params)


def plan(
    model: str | ModelConfig, *treatments: Treatment, seeds: Sequence[int] = (1, 2), n_phases: int = 2
) -> list[RunSpec]:
    """Return the runs of one model, baselines included."""
    config = scripted(model) if isinstance(model, str) else model
    return plan_runs([config], treatments, seeds=seeds, n_phases=n_phases)


def sweep_runs(root: Path, runs: Sequence[RunSpec], **fields: Any) -> Report:
    """Play runs, with no progress shown."""
    settings = {"build_model": build_model, "sync": "end", "concurrency": 4} | fields
    return asyncio.run(run_sweep(Sweep(root=root, runs=runs, **settings), Progress(runs, out=io.StringIO())))


def content(path: Path) -> list[dict[str, Any]]:
    """Return what a record says, without times, provenance and the seams of resuming."""
    kept = []
    for line in read_record(path).lines:
        entry = {key: value for key, value in line.items() if key not in IGNORED}
        if line["type"] == "resumed" or (line["type"] == "ended" and line["outcome"] == "cancelled"):
            continue
        if line["type"] == "branched":
            del entry["parent_sha256"]
        kept.append(entry)
    return kept


def contents(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what every record below a folder says, by path."""
    return {path.relative_to(root).as_posix(): content(path) for path in sorted(root.rglob("*.jsonl"))}


def record_of(root: Path, run: RunSpec) -> Record:
    return read_record(record_path(root, run))


def edit_line(path: Path, number: int, change: Any) -> None:
    """Rewrite one line of a record (1 is the first) by a function on its content."""
    lines = path.read_text().splitlines()
    line = json.loads(lines[number - 1])
    change(line)
    lines[number - 1] = json.dumps(line, separators=(",", ":"))
    path.write_text("\n".join(lines) + "\n")
