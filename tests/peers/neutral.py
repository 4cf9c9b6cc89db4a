"""What a brain sees of a request and what it answers, the same for all three protocols."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]

Protocol = Literal["chat", "responses", "messages"]
"""`chat` is OpenAI Chat Completions, `responses` OpenAI Responses, `messages` Anthropic Messages."""

Stop = Literal["auto", "end", "calls", "length", "refusal", "filter", "context"]
"""Why a reply ends; `auto` is `calls` where there are calls, else `refusal` or `end`."""


@dataclass(frozen=True)
class Arrival:
    """A request as it came in, before anything judged it."""

    index: int
    """Place in the order of arrival, from 0."""
    attempt: int
    """How many requests with the same digest came before."""
    protocol: Protocol
    digest: str
    """BLAKE2b of the body with sorted keys, in hex. Whether the answer is streamed does not count."""
    headers: Mapping[str, str]
    """As sent, keys in lower case; the authorisation is there too."""
    body: Json
    """The parsed body; empty where it was no JSON object."""

    @property
    def model(self) -> str:
        """The model asked for, or an empty string."""
        return str(self.body.get("model", ""))

    @property
    def key(self) -> str:
        """The API key that came, from either kind of header; empty if none."""
        bearer = self.headers.get("authorization", "")
        return self.headers.get("x-api-key", "") or bearer.removeprefix("Bearer ").strip()


@dataclass(frozen=True)
class SeenCall:
    """A tool call in the history that was sent."""

    id: str
    name: str
    arguments: Any
    """As sent: a string in the OpenAI protocols, an object in Anthropic's."""


@dataclass(frozen=True)
class SeenMessage:
    """One message of the history; a tool result is a message of its own."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[str, ...] = ()
    """Text parts in order."""
    calls: tuple[SeenCall, ...] = ()
    call_id: str | None = None
    """For role `tool`: the call that is answered."""
    is_error: bool = False
    n_thinking: int = 0
    """Thinking blocks or reasoning items that came back with an assistant message."""

    @property
    def text(self) -> str:
        """The parts, joined by line breaks."""
        return "\n".join(self.parts)


@dataclass(frozen=True)
class SeenTool:
    """A tool that was offered."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True)
class RequestView:
    """All that a brain may look at."""

    arrival: Arrival
    messages: tuple[SeenMessage, ...]
    tools: tuple[SeenTool, ...]

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the tools on offer, in order."""
        return tuple(tool.name for tool in self.tools)

    @property
    def n_turns(self) -> int:
        """How often the assistant has spoken in this conversation."""
        return sum(message.role == "assistant" for message in self.messages)

    def last(self, role: str) -> SeenMessage | None:
        """The newest message of a role, or None."""
        return next((message for message in reversed(self.messages) if message.role == role), None)


@dataclass(frozen=True)
class Call:
    """A tool call of a reply."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A mapping is serialised; a string goes out as it is, well-formed or not."""
    id: str | None = None
    """None lets the peer make one that is a function of the request; a string is used as it is, also an empty one."""


@dataclass(frozen=True)
class Thinking:
    """A thinking block (Anthropic) or a reasoning item (Responses)."""

    text: str
    redacted: bool = False
    """Sent without readable text: `redacted_thinking`, or a reasoning item with an empty summary."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, in no provider's accounting: the three input parts do not overlap."""

    fresh: int = 0
    """Input tokens neither read from nor written to a cache."""
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    """Everything generated, reasoning included."""
    reasoning: int = 0

    @property
    def cache_write(self) -> int:
        """Input tokens written to a cache, of either lifetime."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def input(self) -> int:
        """All input tokens."""
        return self.fresh + self.cache_read + self.cache_write


@dataclass(frozen=True)
class Reply:
    """What the model says."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    refusal: str | None = None
    stop: Stop = "auto"
    usage: Usage | None = None
    """Reported instead of what the peer counts."""
    reasoning_tokens: int | None = None
    """Reported instead of the length of the thinking; hidden reasoning is longer than its summary."""

    @property
    def ends(self) -> Stop:
        """The stop reason with `auto` resolved."""
        if self.stop != "auto":
            return self.stop
        if self.refusal is not None:
            return "refusal"
        return "calls" if self.calls else "end"


Brain = Callable[[RequestView], Reply | Awaitable[Reply]]
"""Decides a reply. It should depend on the view alone, so that a repeated request gets the same answer."""
