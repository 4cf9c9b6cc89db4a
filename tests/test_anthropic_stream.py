"""From the events of a stream to the payload that it stands for."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models.anthropic_stream import payload_of_events
from experiments.models.failures import Failure


def started(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def call(index: int, *parts: str) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": f"toolu_{index}", "name": "buy_stock", "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": part} for part in parts))


ENDED = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9, "input_tokens": None},
    },
    {"type": "message_stop"},
]


def test_blocks_are_put_together_in_order() -> None:
    thinking = [
        {"type": "thinking_delta", "thinking": "Oil "},
        {"type": "thinking_delta", "thinking": "is up."},
        {"type": "signature_delta", "signature": "sig=="},
    ]
    events = [
        started(input_tokens=5, output_tokens=1),
        {"type": "ping"},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thinking),
        *block(1, {"type": "redacted_thinking", "data": "xyz"}),
        *block(2, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in ("I ", "buy."))),
        *call(3, '{"stock": ', '"XOM"}'),
        *ENDED,
    ]
    payload = payload_of_events(events)
    assert payload["content"] == [
        {"type": "thinking", "thinking": "Oil is up.", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I buy."},
        {"type": "tool_use", "id": "toolu_3", "name": "buy_stock", "input": {"stock": "XOM"}},
    ]
    assert payload["stop_reason"] == "tool_use"
    assert payload["usage"] == {"input_tokens": 5, "output_tokens": 9}


@pytest.mark.parametrize(
    ("parts", "arguments"), [((), {}), (("",), {}), (('{"stock": "X',), '{"stock": "X'), (("[]",), [])]
)
def test_arguments_that_are_no_json_are_kept_as_text(parts: tuple[str, ...], arguments: Any) -> None:
    payload = payload_of_events([started(), *call(0, *parts), *ENDED])
    assert payload["content"][0]["input"] == arguments


def test_error_in_a_stream_is_a_failure_with_the_status_of_its_type() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(Failure, match="Overloaded") as caught:
        payload_of_events([started(), error])
    assert (caught.value.status, caught.value.kind) == (529, "passing")


def test_stream_that_ends_early_is_a_failure_that_can_pass() -> None:
    with pytest.raises(Failure, match="ended before the answer did") as caught:
        payload_of_events([started(), *call(0, '{"stock": "XOM"}')])
    assert caught.value.kind == "passing"
