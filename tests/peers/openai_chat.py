"""OpenAI Chat Completions: reading requests, writing answers and streams."""

from __future__ import annotations

from typing import Any

from tests.peers.neutral import Json, Reply, SeenCall, SeenMessage, SeenTool, Usage
from tests.peers.strict_chat import check
from tests.peers.tokens import Segment, canonical
from tests.peers.wire import (
    CREATED_S,
    Memory,
    Reading,
    Turn,
    Wire,
    arguments_text,
    as_is,
    chunks,
    event,
    plain_segments,
)

_FINISH = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "stop",
    "filter": "content_filter",
    "context": "length",
}


def read(body: Json) -> Reading:
    """The neutral view of a request."""
    messages = tuple(_message(message) for message in body.get("messages") or [])
    tools = tuple(_tool(tool.get("function") or {}) for tool in body.get("tools") or [])
    return messages, tools


def _message(message: Json) -> SeenMessage:
    role = message.get("role")
    calls = tuple(
        SeenCall(
            call.get("id", ""), call.get("function", {}).get("name", ""), call.get("function", {}).get("arguments")
        )
        for call in message.get("tool_calls") or []
    )
    return SeenMessage(
        role="system" if role == "developer" else role,  # type: ignore[arg-type]  # strict mode has checked it
        parts=_parts(message.get("content")) + ((message["refusal"],) if message.get("refusal") else ()),
        calls=calls,
        call_id=message.get("tool_call_id"),
    )


def _parts(content: Any) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    return tuple(part.get("text") or part.get("refusal") or "" for part in content or [])


def _tool(function: Json) -> SeenTool:
    return SeenTool(function.get("name", ""), function.get("description") or "", function.get("parameters") or {})


def segments(body: Json) -> list[Segment]:
    """The prompt: tools, then messages; the answer's form and the effort change it too."""
    form = canonical([body.get("response_format"), body.get("reasoning_effort")])
    return [Segment(form, counted=False), *plain_segments(body.get("tools"), body.get("messages"))]


def pieces(body: Json) -> list[Any]:
    """Messages, the first two (system and user) together with the tools."""
    messages = body.get("messages") or []
    n_head = next((i + 1 for i, message in enumerate(messages) if message.get("role") == "user"), 1)
    return [[body.get("tools"), messages[:n_head]], *messages[n_head:]]


def usage_json(usage: Usage) -> Json:
    """OpenAI's accounting: the prompt includes what was cached."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def payload(turn: Turn, reply: Reply) -> Json:
    """The answer; a reply that ran out of tokens while reasoning has an empty content, as the service sends it."""
    content = "" if reply.text is None and reply.ends == "length" and not reply.calls else reply.text
    message: Json = {"role": "assistant", "content": content, "refusal": reply.refusal, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": turn.id("call_", i) if call.id is None else call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
            }
            for i, call in enumerate(reply.calls)
        ]
    if turn.reasoning_field and reply.thinking:
        message[turn.reasoning_field] = "\n".join(block.text for block in reply.thinking)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.ends]}
    return {
        "id": turn.id("chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED_S,
        "model": turn.model,
        "choices": [choice],
        "usage": usage_json(turn.usage),
        "service_tier": "default",
        "system_fingerprint": None,
    }


def events(turn: Turn, reply: Reply, answer: Json) -> list[bytes]:
    """The answer as a stream of chunks, with usage at the end if it was asked for."""
    message = answer["choices"][0]["message"]
    deltas: list[Json] = [{"role": "assistant", "content": "", "refusal": None}]
    for name in filter(None, (turn.reasoning_field, "content", "refusal")):
        deltas += [{name: text} for text in chunks(message[name])] if message.get(name) else []
    for i, call in enumerate(message.get("tool_calls") or []):
        function = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": i, "id": call["id"], "type": "function", "function": function}]})
        for text in chunks(call["function"]["arguments"]):
            deltas.append({"tool_calls": [{"index": i, "function": {"arguments": text}}]})
    frame = {key: answer[key] for key in ("id", "created", "model", "service_tier", "system_fingerprint")}
    frame["object"] = "chat.completion.chunk"
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": answer["choices"][0]["finish_reason"]}
    choices = [{"index": 0, "delta": d, "logprobs": None, "finish_reason": None} for d in deltas] + [last]
    frames: list[Json] = [{**frame, "choices": [choice]} for choice in choices]
    if (turn.body.get("stream_options") or {}).get("include_usage"):
        frames = [{**each, "usage": None} for each in frames] + [{**frame, "choices": [], "usage": answer["usage"]}]
    return [event(each) for each in frames] + [event("[DONE]")]


def remember(turn: Turn, answer: Json, memory: Memory) -> None:
    """Nothing: this protocol has no state."""


WIRE = Wire("chat", "/v1/chat/completions", as_is, check, read, segments, pieces, payload, events, remember)
