"""OpenAI Responses: reading requests, writing answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.peers import seals
from tests.peers.errors import ApiError, Rejected, invalid
from tests.peers.neutral import Json, Reply, SeenCall, SeenMessage, SeenTool, Usage
from tests.peers.responses_stream import events
from tests.peers.strict_responses import check, missing_item
from tests.peers.tokens import Segment, canonical
from tests.peers.wire import CREATED_S, Memory, Reading, Turn, Wire, arguments_text, plain_segments

_INCOMPLETE = {"length": "max_output_tokens", "context": "max_output_tokens", "filter": "content_filter"}
_ASSISTANT_TYPES = ("reasoning", "function_call")


def expand(body: Json, memory: Memory) -> Json:
    """The request with its input as a list of items: earlier responses and referenced items put in."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        return body
    before: list[Json] = []
    previous = body.get("previous_response_id")
    if previous is not None:
        if previous not in memory.responses:
            message = f"Previous response with id '{previous}' not found."
            raise invalid(message, "previous_response_id", "previous_response_not_found")
        before = memory.responses[previous]
    return {**body, "input": before + [_resolved(item, body, memory) for item in items]}


def _resolved(item: Any, body: Json, memory: Memory) -> Any:
    """The item that a reference names; a reasoning item without content is one, too."""
    if not isinstance(item, dict):
        return item
    named_only = item.get("type") == "reasoning" and not item.get("encrypted_content") and item.get("id")
    if item.get("type") != "item_reference" and not named_only:
        return item
    found = memory.items.get(str(item.get("id")))
    if found is None:
        raise Rejected(missing_item(str(item.get("id")), stored=body.get("store") is not False))
    return found


def read(body: Json) -> Reading:
    """The neutral view of an expanded request; neighbouring items of the assistant are one message."""
    instructions = body.get("instructions")
    messages = [SeenMessage(role="system", parts=(instructions,))] if instructions else []
    run: list[Json] = []
    for item in body.get("input") or []:
        if item.get("type") in _ASSISTANT_TYPES or item.get("role") == "assistant":
            run.append(item)
            continue
        messages += _assistant(run)
        run = []
        messages.append(_message(item))
    messages += _assistant(run)
    tools = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return tuple(messages), tuple(
        SeenTool(tool.get("name", ""), tool.get("description") or "", tool.get("parameters") or {}) for tool in tools
    )


def _message(item: Json) -> SeenMessage:
    if item.get("type") == "function_call_output":
        return SeenMessage(role="tool", parts=_parts(item.get("output")), call_id=item.get("call_id"))
    role = "system" if item.get("role") in ("system", "developer") else "user"
    return SeenMessage(role=role, parts=_parts(item.get("content")))  # type: ignore[arg-type]  # one of two literals


def _assistant(items: list[Json]) -> list[SeenMessage]:
    if not items:
        return []
    spoken = [part for item in items if item.get("role") == "assistant" for part in _parts(item.get("content"))]
    calls = tuple(
        SeenCall(item.get("call_id", ""), item.get("name", ""), item.get("arguments"))
        for item in items
        if item.get("type") == "function_call"
    )
    n_thinking = sum(item.get("type") == "reasoning" for item in items)
    return [SeenMessage(role="assistant", parts=tuple(spoken), calls=calls, n_thinking=n_thinking)]


def _parts(content: Any) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    return tuple(part.get("text") or part.get("refusal") or "" for part in content or [])


def segments(body: Json) -> list[Segment]:
    """The prompt: tools, instructions, items; the answer's form and the effort change it too."""
    form = canonical([body.get("text"), (body.get("reasoning") or {}).get("effort")])
    head = [body["instructions"]] if body.get("instructions") else []
    return [Segment(form, counted=False), *plain_segments(body.get("tools"), head, body.get("input"))]


def pieces(body: Json) -> list[Any]:
    """Items, those up to the first user message together with tools and instructions."""
    items = body.get("input") or []
    n_head = next((i + 1 for i, item in enumerate(items) if item.get("role") == "user"), 1)
    return [[body.get("tools"), body.get("instructions"), items[:n_head]], *items[n_head:]]


def usage_json(usage: Usage) -> Json:
    """OpenAI's accounting: the input includes what was cached."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def payload(turn: Turn, reply: Reply) -> Json:
    """The answer; a reply that ran out of tokens is incomplete, and so is its last item."""
    output = [*_reasoning(turn, reply), *_spoken(turn, reply), *_calls(turn, reply)]
    reason = _INCOMPLETE.get(reply.ends)
    if reason and output:
        output[-1]["status"] = "incomplete"
    return {
        **_frame(turn),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": usage_json(turn.usage),
    }


def failed(turn: Turn, error: ApiError) -> Json:
    """An answer with status 200 that says that the service failed."""
    says = {"code": "server_error", "message": error.message}
    return {**_frame(turn), "status": "failed", "error": says, "incomplete_details": None, "output": [], "usage": None}


def _frame(turn: Turn) -> Json:
    body = turn.body
    return {
        "id": turn.id("resp_"),
        "object": "response",
        "created_at": CREATED_S,
        "error": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": turn.model,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "service_tier": "default",
        "store": body.get("store") is not False,
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "user": None,
    }


def _reasoning(turn: Turn, reply: Reply) -> Iterable[Json]:
    wanted = "reasoning.encrypted_content" in (turn.body.get("include") or [])
    for i, block in enumerate(reply.thinking):
        item_id = turn.id("rs_", i)
        summary = [] if block.redacted else [{"type": "summary_text", "text": block.text}]
        item = {"id": item_id, "type": "reasoning", "summary": summary}
        yield {**item, "encrypted_content": seals.seal(item_id, block.text)} if wanted else item


def _spoken(turn: Turn, reply: Reply) -> Iterable[Json]:
    parts: list[Json] = []
    if reply.text is not None:
        parts.append({"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []})
    if reply.refusal is not None:
        parts.append({"type": "refusal", "refusal": reply.refusal})
    if parts:
        yield {"id": turn.id("msg_"), "type": "message", "status": "completed", "role": "assistant", "content": parts}


def _calls(turn: Turn, reply: Reply) -> Iterable[Json]:
    for i, call in enumerate(reply.calls):
        yield {
            "id": turn.id("fc_", i),
            "type": "function_call",
            "status": "completed",
            "call_id": turn.id("call_", i) if call.id is None else call.id,
            "name": call.name,
            "arguments": arguments_text(call.arguments),
        }


def remember(turn: Turn, answer: Json, memory: Memory) -> None:
    """Keep the answer if the request allows it, and which reasoning its first other item needs before it."""
    output: list[Json] = answer["output"]
    for before, item in zip(output, output[1:], strict=False):
        if before["type"] == "reasoning" and item["type"] != "reasoning":
            memory.reasoning_of[item["id"]] = before["id"]
    if turn.body.get("store") is not False:
        for item in output:
            memory.items[item["id"]] = item
        memory.responses[answer["id"]] = [*turn.body["input"], *output]


WIRE = Wire("responses", "/v1/responses", expand, check, read, segments, pieces, payload, events, remember)
