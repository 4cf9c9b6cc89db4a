"""Owns the provider-neutral conversation: what was said, called and answered, and what a completion cost.

Adapters translate between this and a provider's own form; records store this. `Message.native` keeps what a provider
needs back word for word (signatures, reasoning items) as opaque JSON; it means nothing to anyone else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from apex_env.protocol import Json, ToolCall, ToolSpec

Role = Literal["user", "assistant", "tool"]

Stop = Literal["done", "calls", "length", "refusal"]
"""Why a completion ended: the model was done, it wants results, the output limit cut it, or it refused outright."""


@dataclass(frozen=True, slots=True)
class Native:
    """A provider's own form of a message, to be given back verbatim to the same provider only."""

    provider: str
    model: str
    data: Json


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    An assistant message with calls is followed by one tool message a call, in the order of the calls, before anything
    else. Ids of calls are unique in a conversation, whatever the provider sent.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant message."""
    call_id: str = ""
    """Of a tool message: the call that it answers."""
    native: Native | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the message as plain JSON, without what is empty."""
        data: dict[str, Json] = {"role": self.role, "text": self.text}
        if self.calls:
            data["calls"] = [
                {"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in self.calls
            ]
        if self.call_id:
            data["call_id"] = self.call_id
        if self.native is not None:
            data["native"] = {
                "provider": self.native.provider,
                "model": self.native.model,
                "data": self.native.data,
            }
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        """Return the message that `to_json` wrote."""
        calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in data.get("calls", ()))
        native = Native(**data["native"]) if "native" in data else None
        return cls(data["role"], data["text"], calls, data.get("call_id", ""), native)


def user(text: str) -> Message:
    """Return a user message."""
    return Message("user", text)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one completion as the provider reports them, in one accounting for all providers."""

    input_tokens: int = 0
    """Input that was neither read from a cache nor written to one."""
    cached_tokens: int = 0
    """Input read from a cache."""
    cache_write_tokens: int = 0
    """Input written to a cache, where the provider bills that apart."""
    output_tokens: int = 0
    """All output, reasoning included."""
    reasoning_tokens: int = 0
    """Part of the output that was reasoning, where reported."""
    cost_usd: float | None = None
    """None where the price is unknown."""

    @property
    def context_tokens(self) -> int:
        """All input of the request."""
        return self.input_tokens + self.cached_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent for a completion and failed."""

    status: int | None
    """HTTP status; None where no response came."""
    error: str
    wait_s: float
    """Pause before the next attempt."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer."""

    message: Message
    stop: Stop = "done"
    usage: Usage | None = None
    latency_s: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    """Failed attempts before the one that succeeded."""
    model_reported: str = ""
    """Model that the provider says has answered."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where in a run a completion is asked for; scripted agents draw from it."""

    seed: int
    period: int
    turn: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything that a model sees when it is asked."""

    system: str
    tools: Sequence[ToolSpec]
    messages: Sequence[Message]
    position: Position
    tool_use: Literal["auto", "none"] = "auto"


class Model(Protocol):
    """What answers: a provider's adapter, a scripted agent, or a user's own scaffold."""

    @property
    def name(self) -> str:
        """Label of the model in tables and figures."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's answer.

        Raises:
            RunEnded: when the run cannot go on; the subclass says why.
            SweepStop: when nothing of the sweep can succeed.
        """


def unique_ids(calls: Sequence[ToolCall], taken: set[str], prefix: str) -> tuple[ToolCall, ...]:
    """Return calls whose ids are neither empty nor in ``taken``; ids that are fine stay as they are.

    Args:
        calls: calls as the provider sent them.
        taken: ids used earlier in the conversation; the ids returned are added.
        prefix: start of the ids that are made up, unique in the run.
    """
    fixed = []
    for place, call in enumerate(calls):
        call_id = call.call_id if call.call_id and call.call_id not in taken else f"{prefix}c{place}"
        taken.add(call_id)
        fixed.append(call if call_id == call.call_id else ToolCall(call_id, call.name, call.arguments))
    return tuple(fixed)
