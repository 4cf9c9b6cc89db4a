"""Anthropic Messages: reading requests, writing answers and streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.peers import seals
from tests.peers.neutral import Call, Json, Reply, SeenCall, SeenMessage, SeenTool, Usage
from tests.peers.strict_messages import check
from tests.peers.tokens import Segment, canonical
from tests.peers.wire import Memory, Reading, Turn, Wire, arguments_text, as_is, chunks, event, without

_STOP = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "filter": "refusal",
    "context": "model_context_window_exceeded",
}


def blocks(content: Any) -> list[Json]:
    """Content as blocks; a string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def read(body: Json) -> Reading:
    """The neutral view of a request; neighbouring messages of one role are one turn, as the service sees them."""
    system = tuple(block.get("text", "") for block in blocks(body.get("system")))
    messages = [SeenMessage(role="system", parts=system)] if system else []
    turns: list[tuple[str, list[Json]]] = []
    for message in body.get("messages") or []:
        if not turns or turns[-1][0] != message.get("role"):
            turns.append((message.get("role"), []))
        turns[-1][1].extend(blocks(message.get("content")))
    for role, content in turns:
        messages += [_assistant(content)] if role == "assistant" else _user(content)
    tools = body.get("tools") or []
    return tuple(messages), tuple(
        SeenTool(tool.get("name", ""), tool.get("description") or "", tool.get("input_schema") or {}) for tool in tools
    )


def _assistant(content: list[Json]) -> SeenMessage:
    calls = (block for block in content if block.get("type") == "tool_use")
    return SeenMessage(
        role="assistant",
        parts=tuple(block["text"] for block in content if block.get("type") == "text"),
        calls=tuple(SeenCall(call.get("id", ""), call.get("name", ""), call.get("input")) for call in calls),
        n_thinking=sum(block.get("type") in ("thinking", "redacted_thinking") for block in content),
    )


def _user(content: list[Json]) -> Iterator[SeenMessage]:
    for block in content:
        if block.get("type") == "tool_result":
            parts = tuple(inner.get("text", "") for inner in blocks(block.get("content")))
            failed = bool(block.get("is_error"))
            yield SeenMessage(role="tool", parts=parts, call_id=block.get("tool_use_id"), is_error=failed)
    said = tuple(block["text"] for block in content if block.get("type") == "text")
    if said:
        yield SeenMessage(role="user", parts=said)


def segments(body: Json) -> list[Segment]:
    """The prompt in the service's order: tools, system, messages. Thinking and tool choice bear on messages only."""
    found = [_segment(tool, tool) for tool in body.get("tools") or []]
    found += [_segment(block, block) for block in blocks(body.get("system"))]
    found.append(Segment(canonical([body.get("thinking"), body.get("tool_choice")]), counted=False))
    for message in body.get("messages") or []:
        for block in blocks(message.get("content")):
            found.append(_segment([message.get("role"), block], block))
    automatic = body.get("cache_control")
    if automatic and found[-1].counted:
        found[-1] = Segment(found[-1].content, _ttl(automatic))
    return found


def _segment(value: Any, marked: Json) -> Segment:
    mark = marked.get("cache_control")
    return Segment(canonical(without(value, "cache_control")), _ttl(mark) if mark else None)


def _ttl(mark: Json) -> str:
    return str(mark.get("ttl") or "5m")


def pieces(body: Json) -> list[Any]:
    """Content blocks, the first together with tools and system; cache marks do not count."""
    flat = [
        [message.get("role"), without(block, "cache_control")]
        for message in body.get("messages") or []
        for block in blocks(message.get("content"))
    ]
    return [[without([body.get("tools"), blocks(body.get("system"))], "cache_control"), flat[:1]], *flat[1:]]


def usage_json(usage: Usage) -> Json:
    """Anthropic's accounting: the input leaves out what was read from or written to the cache."""
    return {
        "input_tokens": usage.fresh,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def payload(turn: Turn, reply: Reply) -> Json:
    """The answer."""
    content = [_thought(text, block.redacted) for block in reply.thinking for text in (block.text,)]
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    content += [
        {
            "type": "tool_use",
            "id": turn.id("toolu_", i) if call.id is None else call.id,
            "name": call.name,
            "input": tool_input(call),
        }
        for i, call in enumerate(reply.calls)
    ]
    refused = {"type": "refusal", "category": None, "explanation": reply.refusal} if reply.ends == "refusal" else None
    return {
        "id": turn.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": _STOP[reply.ends],
        "stop_sequence": None,
        "stop_details": refused,
        "usage": usage_json(turn.usage),
    }


def _thought(text: str, redacted: bool) -> Json:
    if redacted:
        return {"type": "redacted_thinking", "data": seals.seal("", text)}
    return {"type": "thinking", "thinking": text, "signature": seals.sign(text)}


def tool_input(call: Call) -> Any:
    """The input of a tool use: half a JSON text gives an empty object, junk comes through as a string."""
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        return json.loads(call.arguments, parse_constant=str, parse_float=_finite, strict=False)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(call.arguments.rstrip()) or error.msg.startswith("Unterminated string")
        return {} if cut else call.arguments


def _finite(text: str) -> float | str:
    """A number as the service can send it: what is infinite is no JSON and comes as a string."""
    value = float(text)
    return value if abs(value) != float("inf") else text


def events(turn: Turn, reply: Reply, answer: Json) -> list[bytes]:
    """The answer as a stream of blocks. A tool's input goes out as the text that the model wrote."""
    start = {**answer, "content": [], "stop_reason": None, "stop_details": None}
    start["usage"] = {**answer["usage"], "output_tokens": 1}
    found = [event({"type": "message_start", "message": start}, "message_start"), event({"type": "ping"}, "ping")]
    texts = iter([arguments_text(call.arguments) for call in reply.calls])
    for index, block in enumerate(answer["content"]):
        begun, deltas = _deltas(block, texts)
        frames: list[Json] = [{"type": "content_block_start", "index": index, "content_block": begun}]
        frames += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        frames.append({"type": "content_block_stop", "index": index})
        found += [event(frame, frame["type"]) for frame in frames]
    delta = {key: answer[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    usage = {key: value for key, value in answer["usage"].items() if key not in ("cache_creation", "service_tier")}
    found.append(event({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta"))
    return [*found, event({"type": "message_stop"}, "message_stop")]


def _deltas(block: Json, texts: Iterator[str]) -> tuple[Json, list[Json]]:
    kind = block["type"]
    if kind == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in chunks(block["text"])]
    if kind == "thinking":
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": t} for t in chunks(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if kind == "tool_use":
        parts = [{"type": "input_json_delta", "partial_json": t} for t in chunks(next(texts))]
        return {**block, "input": {}}, parts
    return block, []


def remember(turn: Turn, answer: Json, memory: Memory) -> None:
    """Keep which thinking came before each tool use."""
    thought = tuple(block for block in answer["content"] if block["type"] in ("thinking", "redacted_thinking"))
    for block in answer["content"]:
        if block["type"] == "tool_use" and thought:
            memory.thinking[block["id"]] = thought


WIRE = Wire("messages", "/v1/messages", as_is, check, read, segments, pieces, payload, events, remember)
