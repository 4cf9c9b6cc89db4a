"""Owns the way from the events of a streamed Anthropic answer to the payload that it would be in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apex_env.protocol import Json
from experiments.models.anthropic_messages import error_of
from experiments.models.failures import Failure

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(slots=True)
class _Block:
    start: Mapping[str, Any]
    parts: dict[str, list[str]] = field(default_factory=dict)

    def take(self, delta: Mapping[str, Any]) -> None:
        kind = str(delta.get("type"))
        name = _APPENDED.get(kind, "input" if kind == "input_json_delta" else None)
        if name is not None:
            text = delta.get("partial_json") if name == "input" else delta.get(name)
            self.parts.setdefault(name, []).append(str(text or ""))

    def whole(self) -> dict[str, Json]:
        texts = {name: "".join(parts) for name, parts in self.parts.items()}
        if "input" not in texts:
            return {**self.start, **{name: str(self.start.get(name) or "") + text for name, text in texts.items()}}
        return {**self.start, "input": _input(texts["input"])}


def payload_of_events(events: Iterable[Mapping[str, Any]]) -> dict[str, Json]:
    """Return the payload that a stream's events add up to.

    Arguments of a call that are no JSON, because the answer was cut off, are kept as the text that came.

    Raises:
        Failure: if an event is an error, or the stream ended before the answer did.
    """
    payload: dict[str, Json] = {}
    blocks: dict[int, _Block] = {}
    for event in events:
        kind = event.get("type")
        if kind == "error":
            raise error_of(event.get("error"), raw=json.dumps(event))
        if kind == "message_start":
            payload = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = _Block(event["content_block"])
        elif kind == "content_block_delta":
            blocks[event["index"]].take(event["delta"])
        elif kind == "message_delta":
            usage = {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
            payload |= {**event["delta"], "usage": {**(payload.get("usage") or {}), **usage}}
        elif kind == "message_stop":
            return {**payload, "content": [blocks[index].whole() for index in sorted(blocks)]}
    raise Failure(None, "the stream ended before the answer did")


def _input(text: str) -> Json:
    if not text:
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return text
