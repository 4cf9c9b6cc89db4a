"""What a protocol module provides to the server, and small tools that they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.peers.neutral import Json, Protocol, Reply, SeenMessage, SeenTool, Usage
from tests.peers.tokens import Segment, canonical

CREATED_S = 1_767_225_600
"""Creation time of every answer (2026-01-01), constant so that equal requests get equal answers."""

_N_CHUNK = 24


@dataclass
class Memory:
    """What a service keeps of what it said: to check what comes back, and to look up what is only named."""

    thinking: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    """Anthropic: the thinking blocks before a tool use, by its id."""
    reasoning_of: dict[str, str] = field(default_factory=dict)
    """Responses: the reasoning item that an output item needs before it, by the item's id."""
    items: dict[str, Json] = field(default_factory=dict)
    """Responses: stored items by id."""
    responses: dict[str, list[Json]] = field(default_factory=dict)
    """Responses: stored conversations, input and output, by response id."""


@dataclass(frozen=True)
class Turn:
    """What an answer depends on besides the reply."""

    digest: str
    """Of the request; ids are made from it."""
    body: Json
    usage: Usage
    reasoning_field: str | None = None
    """Chat: the field in which a compatible server shows its reasoning, such as `reasoning_content`."""

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model", ""))

    def id(self, prefix: str, i: int = 0) -> str:
        """A stable id: the same request gets the same ids, and no two in a conversation are equal."""
        return f"{prefix}{self.digest[:22]}{i:02d}"


@dataclass(frozen=True)
class Rules:
    """The part of the settings that strict mode needs."""

    roles: str = "merged"
    prefill: bool = False
    reasoning_field: str | None = None


Reading = tuple[tuple[SeenMessage, ...], tuple[SeenTool, ...]]


@dataclass(frozen=True)
class Wire:
    """One protocol."""

    protocol: Protocol
    path: str
    expand: Callable[[Json, Memory], Json]
    """The request with what it only names put in. Raises `Rejected` where that is unknown."""
    check: Callable[[Json, Mapping[str, str], Memory, Rules], None]
    """Raises `Rejected` where the real service would refuse the (expanded) request."""
    read: Callable[[Json], Reading]
    """The neutral view of a request."""
    segments: Callable[[Json], list[Segment]]
    """The prompt in cacheable pieces."""
    pieces: Callable[[Json], list[Any]]
    """The conversation in order, cache marks left out; the first piece holds all up to the first message."""
    payload: Callable[[Turn, Reply], Json]
    """The answer."""
    events: Callable[[Turn, Reply, Json], list[bytes]]
    """The same answer as server-sent events."""
    remember: Callable[[Turn, Json, Memory], None]
    """Note what was answered."""


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """Arguments as a JSON text; a string goes out as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(", ", ": "))


def chunks(text: str) -> Iterator[str]:
    """A text in the pieces in which a stream sends it; one empty piece for an empty text."""
    yield from (text[i : i + _N_CHUNK] for i in range(0, len(text), _N_CHUNK)) if text else ("",)


def event(data: Json | str, name: str | None = None) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


def as_is(body: Json, memory: Memory) -> Json:
    """For protocols whose requests hold all that they mean."""
    return body


def without(value: Any, *keys: str) -> Any:
    """A copy of a JSON value in which objects lack these keys, at any depth."""
    if isinstance(value, dict):
        return {k: without(v, *keys) for k, v in value.items() if k not in keys}
    if isinstance(value, list):
        return [without(item, *keys) for item in value]
    return value


def plain_segments(*groups: Any) -> list[Segment]:
    """Segments of lists of JSON values (None counts as empty)."""
    return [Segment(canonical(item)) for group in groups for item in (group if isinstance(group, list) else [])]
