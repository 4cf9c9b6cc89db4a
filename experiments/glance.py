"""Owns the reading of a record at a glance: where its run stands and what it has spent, read on while it grows.

Limits, `apex plan` and `apex status` look at thousands of records, again and again, of which some are being written.
So only what they need is parsed, and a record that has grown is read on from where the last reading ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from experiments.chat import Usage
from experiments.errors import RecordError
from experiments.models.pricing import Price, priced
from experiments.record import LINE_TYPES, SCHEMA
from experiments.spending import Spent, spent_in

PriceOf = Callable[[Mapping[str, Any]], Price | None]
"""From the model in a record's header to its price, for turns whose cost was unknown when they were taken."""

_NOTED: Final = (b"run", b"branched", b"opened", b"turn", b"interview", b"closed", b"ended")
_START: Final = re.compile(rb'\{"type":"(\w+)","seq":(\d+),"time":(?:"([^"]+)"|null)')
"""How every line begins; an imported run has no times."""


def unknown_price(model: Mapping[str, Any]) -> Price | None:
    """Price nothing: a cost that the record does not know stays unknown."""
    return None


@dataclass(slots=True)
class Contexts:
    """How the context of a run's requests grows, from its first request to the newest."""

    first_tokens: int | None = None
    first_at: float = 0.0
    """In quarters: a quarter's number, and the place of the turn within it as a fraction of 1,000."""
    last_tokens: int = 0
    last_at: float = 0.0


@dataclass(slots=True)
class Glance:
    """A record as far as it has been read."""

    path: Path
    price_of: PriceOf = unknown_price
    header: Mapping[str, Any] = field(default_factory=dict)
    """The `run` line; empty where it is not whole yet."""
    outcome: str = "unfinished"
    reason: str = ""
    """Why it ended, in words; empty where it has not."""
    is_branched: bool = False
    """Whether it goes on from a phase."""
    last_opened: int = 0
    last_closed: int = 0
    n_closed: int = 0
    n_model_turns: int = 0
    interviewed: set[tuple[int, str]] = field(default_factory=set)
    """Quarters and topics of the interviews."""
    spent: Spent = Spent()
    usage: Usage = Usage(cost_usd=0.0)
    """Sum over all turns."""
    latency_s: float = 0.0
    """Time in which the model was waited for."""
    contexts: Contexts = field(default_factory=Contexts)
    _played_s: float = 0.0
    _began: str = ""
    _newest: str = ""
    _offset: int = 0
    _n_lines: int = 0

    @property
    def played_s(self) -> float:
        """Time in which the run was played, the gaps between a stop and the going on left out."""
        return self._played_s + _seconds(self._began, self._newest)

    def refresh(self) -> None:
        """Read on from where the last reading ended, up to the last complete line.

        Raises:
            RecordError: naming file and line: not readable, or not a line of a record.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError as error:
            raise RecordError(f"{self.path}: not readable: {error.strerror}") from error
        whole = data[: data.rfind(b"\n") + 1]
        for raw in whole.splitlines():
            self._take(raw)
            self._n_lines += 1
        self._offset += len(whole)

    def _take(self, raw: bytes) -> None:
        found = _START.match(raw)
        if not found or int(found[2]) != self._n_lines or found[1].decode() not in LINE_TYPES:
            raise RecordError(f"{self.path}, line {self._n_lines + 1}: not a line of a record, or out of order")
        kind, time = found[1], (found[3] or b"").decode()
        if kind in (b"run", b"resumed"):
            self._played_s, self._began = self.played_s, time
        self._newest = time
        if kind in _NOTED:
            try:
                self._note(kind, _parsed(raw))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                place = f"{self.path}, line {self._n_lines + 1}"
                raise RecordError(f"{place}: not a line that a run can have: {error!r}") from error

    def _note(self, kind: bytes, line: Mapping[str, Any]) -> None:
        if kind == b"run":
            if line["schema"] != SCHEMA:
                raise RecordError(
                    f"{self.path}, line 1: schema version {line['schema']!r}; this version reads {SCHEMA}"
                )
            self.header = line
        elif kind == b"closed":
            self.last_closed, self.n_closed = max(self.last_closed, line["quarter"]), self.n_closed + 1
        elif kind == b"ended":
            self.outcome, self.reason = line["outcome"], line["reason"]
        else:
            self.outcome, self.reason = "unfinished", ""
            if kind == b"opened":
                self.last_opened = max(self.last_opened, line["quarter"])
            elif kind == b"branched":
                self._note_branch(line["recipe"])
            elif kind == b"interview":
                self.interviewed.add((line["quarter"], line["topic"]))
                self._count(_usage(line["usage"]))
            elif line["by"] == "model":
                self._note_turn(line)

    def _note_turn(self, line: Mapping[str, Any]) -> None:
        usage = _usage(line["usage"])
        self.n_model_turns += 1
        self.latency_s += line["latency_s"] or 0.0
        self._count(usage)
        if usage is not None:
            at, tokens = line["quarter"] + line["turn"] / 1000, usage.context_tokens
            if self.contexts.first_tokens is None:
                self.contexts.first_tokens, self.contexts.first_at = tokens, at
            self.contexts.last_tokens, self.contexts.last_at = tokens, at

    def _note_branch(self, recipe: Mapping[str, Any]) -> None:
        self.is_branched = True
        if "usage" in recipe:
            self._count(_usage(recipe["usage"]))

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            usage = priced(usage, self.price_of(self.header["config"]["model"])) if usage.cost_usd is None else usage
            self.usage = added(self.usage, usage)
        self.spent += spent_in(usage)


def added(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages; a sum with an unknown cost is unknown."""
    known = one.cost_usd is not None and other.cost_usd is not None
    return Usage(
        one.input_tokens + other.input_tokens,
        one.cached_tokens + other.cached_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.output_tokens + other.output_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        (one.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
    )


def glance_at(path: Path, price_of: PriceOf = unknown_price) -> Glance:
    """Return a record at a glance.

    Raises:
        RecordError: naming file and line.
    """
    glance = Glance(path, price_of)
    glance.refresh()
    return glance


def record_files(root: Path) -> Iterator[Path]:
    """Iterate over the records below a folder in order; folders that begin with ``_`` hold none."""
    for path in sorted(root.rglob("*.jsonl")):
        if not any(part.startswith("_") for part in path.relative_to(root).parts):
            yield path


def _usage(data: Mapping[str, Any] | None) -> Usage | None:
    """Return the usage that a line tells; a summary's has the whole context in one number."""
    if data is None:
        return None
    if "context_tokens" in data:
        return Usage(input_tokens=data["context_tokens"], output_tokens=data["output_tokens"])
    return Usage(**data)


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        line: Mapping[str, Any] = orjson.loads(raw)
    except orjson.JSONDecodeError:
        # What a model says may hold lone surrogates, which only the standard library takes.
        line = json.loads(raw)
    return line


def _seconds(began: str, ended: str) -> float:
    if not began or not ended:
        return 0.0
    return max(0.0, (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())
