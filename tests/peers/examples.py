"""Valid requests in each protocol, for tests that change one thing: two calls, their results, a next message."""

from __future__ import annotations

from typing import Any

from tests.peers.errors import Rejected
from tests.peers.neutral import Json
from tests.peers.wire import Memory, Rules, Wire

SCHEMA: Json = {"type": "object", "properties": {"stock": {"type": "string"}}, "required": ["stock"]}
HEADERS = {"anthropic-version": "2023-06-01"}


def chat_request(**changes: Any) -> Json:
    """A Chat Completions request; messages are system, user, assistant with calls c1 and c2, two results, user."""
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "buy_stock", "arguments": '{"stock": "XOM"}'}},
        {"id": "c2", "type": "function", "function": {"name": "buy_stock", "arguments": "no JSON"}},
    ]
    messages: list[Json] = [
        {"role": "system", "content": "You manage a fund."},
        {"role": "user", "content": "Quarter 1"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "bought"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "user", "content": "Quarter 2"},
    ]
    tools = [{"type": "function", "function": {"name": "buy_stock", "description": "Buys.", "parameters": SCHEMA}}]
    return {"model": "m", "messages": messages, "tools": tools, **changes}


def responses_request(**changes: Any) -> Json:
    """A Responses request; items are user, message of the assistant, calls c1 and c2, two outputs, user."""
    items: list[Json] = [
        {"role": "user", "content": "Quarter 1"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I buy."}]},
        {"type": "function_call", "call_id": "c1", "name": "buy_stock", "arguments": '{"stock": "XOM"}'},
        {"type": "function_call", "call_id": "c2", "name": "buy_stock", "arguments": "no JSON"},
        {"type": "function_call_output", "call_id": "c1", "output": "bought"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {"role": "user", "content": [{"type": "input_text", "text": "Quarter 2"}]},
    ]
    tools = [{"type": "function", "name": "buy_stock", "parameters": SCHEMA, "strict": False}]
    return {"model": "m", "instructions": "You manage a fund.", "input": items, "tools": tools, **changes}


def messages_request(**changes: Any) -> Json:
    """A Messages request; messages are user, assistant with text and uses c1 and c2, user with two results and text."""
    messages: list[Json] = [
        {"role": "user", "content": "Quarter 1"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I buy."},
                {"type": "tool_use", "id": "c1", "name": "buy_stock", "input": {"stock": "XOM"}},
                {"type": "tool_use", "id": "c2", "name": "buy_stock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "bought"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no stock"}]},
                {"type": "text", "text": "Quarter 2"},
            ],
        },
    ]
    tools = [{"name": "buy_stock", "description": "Buys.", "input_schema": SCHEMA}]
    body = {"model": "m", "max_tokens": 4096, "system": "You manage a fund.", "messages": messages, "tools": tools}
    return {**body, **changes}


def verdict(wire: Wire, body: Json, *, memory: Memory | None = None, rules: Rules | None = None) -> str | None:
    """What strict mode says against a request, or None if it takes it."""
    memory = memory or Memory()
    try:
        wire.check(wire.expand(body, memory), HEADERS, memory, rules or Rules())
    except Rejected as rejected:
        return rejected.error.message
    return None
