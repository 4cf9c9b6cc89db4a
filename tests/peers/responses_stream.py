"""The event stream of an OpenAI Responses answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.peers.neutral import Json, Reply
from tests.peers.wire import Turn, chunks, event

Step = tuple[str, dict[str, Any]]

_EMPTY: dict[str, Json] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "reasoning": {"summary": []},
}


def events(turn: Turn, reply: Reply, answer: Json) -> list[bytes]:
    """The answer as numbered events, from `response.created` to `response.completed` (or incomplete, or failed)."""
    begun = {**answer, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None, "error": None}
    steps: list[Step] = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
    for index, item in enumerate(answer["output"]):
        steps += list(_item(index, item))
    steps.append((f"response.{answer['status']}", {"response": answer}))
    return [event({"type": kind, "sequence_number": n, **data}, kind) for n, (kind, data) in enumerate(steps)]


def _item(index: int, item: Json) -> Iterator[Step]:
    at = {"output_index": index}
    empty: dict[str, Json] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    started = {**item, **empty[item["type"]]}
    started.pop("encrypted_content", None)
    if "status" in item:
        started["status"] = "in_progress"
    yield "response.output_item.added", {**at, "item": started}
    where = {**at, "item_id": item["id"]}
    if item["type"] == "message":
        for n, part in enumerate(item["content"]):
            yield from _part(part, {**where, "content_index": n})
    elif item["type"] == "function_call":
        for text in chunks(item["arguments"]):
            yield "response.function_call_arguments.delta", {**where, "delta": text}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.done", {**where, **done}
    else:
        for n, part in enumerate(item["summary"]):
            yield from _summary(part, {**where, "summary_index": n})
    yield "response.output_item.done", {**at, "item": item}


def _part(part: Json, where: Json) -> Iterator[Step]:
    name, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
    logprobs: Json = {"logprobs": []} if name == "output_text" else {}
    yield "response.content_part.added", {**where, "part": {**part, key: ""}}
    for text in chunks(part[key]):
        yield f"response.{name}.delta", {**where, "delta": text, **logprobs}
    yield f"response.{name}.done", {**where, key: part[key], **logprobs}
    yield "response.content_part.done", {**where, "part": part}


def _summary(part: Json, where: Json) -> Iterator[Step]:
    yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
    for text in chunks(part["text"]):
        yield "response.reasoning_summary_text.delta", {**where, "delta": text}
    yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**where, "part": part}
