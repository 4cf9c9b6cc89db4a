"""Decides what a peer answers: parses, judges, asks the brain, applies faults, counts. Does no input or output."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

from tests.peers import errors
from tests.peers.errors import ApiError, Rejected, invalid
from tests.peers.faults import Fault, Schedule
from tests.peers.log import Entry, PeerLog, opened
from tests.peers.neutral import Arrival, Brain, Json, Reply, RequestView, Usage
from tests.peers.openai_responses import failed
from tests.peers.tokens import OPENAI_MIN_TOKENS, BlockCache, BreakpointCache, Segment, canonical, output_tokens, tokens
from tests.peers.wire import Memory, Rules, Turn, Wire, event

HTML = b"<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"


@dataclass(frozen=True)
class Settings:
    """How a peer behaves when no fault strikes."""

    strict: bool = True
    """Refuse what the real services refuse."""
    roles: Literal["merged", "alternate"] = "merged"
    """`alternate` also refuses neighbouring messages of one role, as the chat templates of some local servers do."""
    prefill: bool = False
    """Anthropic: allow a last message of the assistant, as older models do."""
    api_keys: frozenset[str] | None = None
    """Keys that are valid; None for any that is not empty."""
    models: frozenset[str] | None = None
    """Models that exist; None for any."""
    unsupported: frozenset[str] = frozenset()
    """Parameters that the model does not take, such as `temperature` of a reasoning model."""
    context_tokens: int | None = None
    """The context window; a longer prompt is refused. None for no limit."""
    latency_s: float = 0.0
    """Waited before every answer."""
    cache: Literal["seen", "off"] = "seen"
    """`seen` plays prompt caches; with `off` usage depends on the request alone, not on what came before."""
    cache_min_tokens: int = OPENAI_MIN_TOKENS
    """Anthropic: the shortest prefix that is cached."""
    bills_cache_writes: bool = False
    """OpenAI: report cache writes, as the newer models do."""
    reasoning_field: str | None = None
    """Chat: where a compatible server shows reasoning, such as `reasoning_content`; also allowed in requests."""
    keep_bodies: bool = True
    """Keep parsed bodies in the log; long runs may want to do without."""


@dataclass
class Outgoing:
    """What to send, and how far."""

    entry: Entry
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    events: list[bytes] | None = None
    """For a stream: sent instead of the body."""
    wait_s: float = 0.0
    """Waited before the first byte."""
    sent_frac: float = 1.0
    """Below 1, the connection closes after this share."""
    reset: bool = False
    """Close by a reset, so that the client sees an error rather than an end."""


class Service:
    """The state of one peer: log, schedule of faults, caches, memory."""

    def __init__(self, brain: Brain, *, schedule: Schedule, settings: Settings, log: PeerLog) -> None:
        self.brain = brain
        self.schedule = schedule
        self.settings = settings
        self.log = log
        self.memory = Memory()
        self._blocks = BlockCache()
        self._breakpoints = BreakpointCache(settings.cache_min_tokens)
        self._attempts: Counter[str] = Counter()

    async def respond(self, wire: Wire, headers: Mapping[str, str], raw: bytes) -> Outgoing:
        """Judge one request. The entry in the log is open until `PeerLog.finish`."""
        try:
            body, broken = parse(raw), None
        except Rejected as rejected:
            body, broken = {}, rejected
        arrival = self._arrival(wire, headers, body, raw)
        entry = opened(
            arrival,
            raw=raw.decode("utf-8", "replace") if broken else "",
            pieces=[] if broken else _safe_pieces(wire, body),
            arrived_s=time.time(),
            keep_body=self.settings.keep_bodies,
        )
        self.log.append(entry)
        fault = self.schedule.pick(arrival)
        entry.fault = fault.name if fault else None
        early = self._early(arrival, entry, fault)
        if early is not None:
            return early
        try:
            if broken:
                raise broken
            return await self._answer(wire, arrival, entry, fault)
        except Rejected as rejected:
            entry.outcome = "rejected"
            return self._refuse(arrival, entry, rejected.error)

    def _arrival(self, wire: Wire, headers: Mapping[str, str], body: Json, raw: bytes) -> Arrival:
        asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        digest = hashlib.blake2b(canonical(asked) if asked else raw, digest_size=16).hexdigest()
        attempt = self._attempts[digest]
        self._attempts[digest] += 1
        lower = {name.lower(): value for name, value in headers.items()}
        return Arrival(len(self.log), attempt, wire.protocol, digest, lower, body)

    def _early(self, arrival: Arrival, entry: Entry, fault: Fault | None) -> Outgoing | None:
        """Faults that keep the request from the brain."""
        if fault is None:
            return None
        if fault.act == "error" and fault.error is not None:
            entry.outcome = "error"
            return self._refuse(arrival, entry, fault.error(arrival.protocol))
        if fault.act == "drop_before":
            entry.outcome = "dropped_before"
            return Outgoing(entry, sent_frac=0.0, reset=True)
        if fault.act == "stall":
            entry.outcome = "stalled"
            return Outgoing(entry, wait_s=fault.seconds, sent_frac=0.0)
        return None

    def _refuse(self, arrival: Arrival, entry: Entry, error: ApiError) -> Outgoing:
        entry.message = error.message
        headers = {**_request_id(arrival), **error.headers}
        body = error.body(arrival.protocol, f"req_{arrival.index}")
        wait_s = self.settings.latency_s
        return Outgoing(entry, error.status, headers, json.dumps(body).encode(), wait_s=wait_s)

    async def _answer(self, wire: Wire, arrival: Arrival, entry: Entry, fault: Fault | None) -> Outgoing:
        body, segments = self._judged(wire, arrival)
        messages, tools = wire.read(body)
        said = self.brain(RequestView(arrival, messages, tools))
        reply = _one_call_if_asked(body, await said if inspect.isawaitable(said) else said)
        if fault is not None and fault.change is not None:
            reply = fault.change(reply)
        usage = self._usage(arrival, segments, reply)
        turn = Turn(arrival.digest, body, usage, self.settings.reasoning_field)
        answer = wire.payload(turn, reply)
        wire.remember(turn, answer, self.memory)
        entry.accepted, entry.usage = True, usage
        out = Outgoing(entry, headers=_request_id(arrival), wait_s=self.settings.latency_s)
        if body.get("stream"):
            out.events = wire.events(turn, reply, answer)
        else:
            out.body = json.dumps(answer).encode()
        entry.outcome = "answered"
        return _spoiled(out, turn, fault, arrival) if fault is not None else out

    def _judged(self, wire: Wire, arrival: Arrival) -> tuple[Json, list[Segment]]:
        """The expanded request and its prompt, if nothing is wrong with it.

        Raises:
            Rejected: Something is.
        """
        settings, protocol = self.settings, arrival.protocol
        if not arrival.key or (settings.api_keys is not None and arrival.key not in settings.api_keys):
            raise errors.bad_key(protocol, arrival.key)
        if settings.models is not None and arrival.model and arrival.model not in settings.models:
            raise errors.no_model(protocol, arrival.model)
        body = wire.expand(arrival.body, self.memory)
        if settings.strict:
            rules = Rules(settings.roles, settings.prefill, settings.reasoning_field)
            wire.check(body, arrival.headers, self.memory, rules)
        for name in sorted(settings.unsupported & body.keys()):
            if body[name] is not None:
                raise errors.unsupported(protocol, name)
        segments = wire.segments(body)
        n_tokens = prompt_tokens(segments)
        if settings.context_tokens is not None and n_tokens > settings.context_tokens:
            raise errors.too_long(protocol, n_tokens, settings.context_tokens)
        return body, segments

    def _usage(self, arrival: Arrival, segments: list[Segment], reply: Reply) -> Usage:
        scope = f"{arrival.key}/{arrival.model}"
        if self.settings.cache == "off":
            usage = Usage(fresh=prompt_tokens(segments))
        elif arrival.protocol == "messages":
            self._breakpoints.min_tokens = self.settings.cache_min_tokens
            usage = self._breakpoints.usage(scope, segments, now_s=time.monotonic())
        else:
            usage = self._blocks.usage(scope, segments, bills_writes=self.settings.bills_cache_writes)
        n_output, n_reasoning = output_tokens(reply)
        return reply.usage or replace(usage, output=n_output, reasoning=n_reasoning)


def parse(raw: bytes) -> Json:
    """The JSON object in a request body.

    Raises:
        Rejected: It is no JSON by the standard, holds lone surrogates, or is no object.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise invalid(f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise invalid("The request body is not valid JSON: expected an object")
    return body


def prompt_tokens(segments: list[Segment]) -> int:
    """Tokens of a whole prompt."""
    return tokens(sum(len(segment.content) for segment in segments if segment.counted))


def _safe_pieces(wire: Wire, body: Json) -> list[object]:
    """The conversation in pieces; what is too malformed to be cut up is one piece."""
    try:
        return wire.pieces(body)
    except (AttributeError, KeyError, TypeError, IndexError):
        return [body]


def _request_id(arrival: Arrival) -> dict[str, str]:
    name = "request-id" if arrival.protocol == "messages" else "x-request-id"
    return {name: f"req_{arrival.index}"}


def _one_call_if_asked(body: Json, reply: Reply) -> Reply:
    """At most one call where parallel calls are switched off."""
    choice = body.get("tool_choice")
    single = isinstance(choice, dict) and choice.get("disable_parallel_tool_use")
    if body.get("parallel_tool_calls") is False or single:
        return replace(reply, calls=reply.calls[:1])
    return reply


def _spoiled(out: Outgoing, turn: Turn, fault: Fault, arrival: Arrival) -> Outgoing:
    """A good answer with a fault on its way out."""
    if fault.act == "late":
        out.wait_s += fault.seconds
    elif fault.act == "drop_after":
        out.entry.outcome = "dropped_after"
        out.sent_frac = fault.sent_frac
    elif fault.act == "not_json":
        out.entry.outcome = "error"
        out.body, out.events, out.headers["content-type"] = HTML, None, "text/html"
    elif fault.act == "error_body" and fault.error is not None:
        error = fault.error(arrival.protocol)
        out.entry.outcome, out.entry.message = "error", error.message
        body = error.body(arrival.protocol, f"req_{arrival.index}")
        if fault.name == "200-failed" and arrival.protocol == "responses":
            body = failed(turn, error)
        if out.events is None:
            out.body = json.dumps(body).encode()
        else:
            out.events = [*out.events[: len(out.events) // 2], event({"type": "error", **body}, "error")]
    return out
