"""Requests and payloads against the clients' own types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from apex_env.protocol import ToolCall
from experiments.chat import Message, user
from experiments.models.anthropic_messages import MessagesForm, messages_completion, messages_request
from experiments.models.openai_chat import ChatForm, chat_completion, chat_request
from experiments.models.openai_responses import ResponsesForm, responses_completion, responses_request
from tests.payload_files import payload
from tests.wire import prompt_of

CHAT = ChatForm("openai.chat", "gpt-4o", {"temperature": 0.5, "max_completion_tokens": 9, "seed": 1}, True)
RESPONSES = ResponsesForm("gpt-6.1-sol", {"max_output_tokens": 99, "reasoning": {"effort": "low"}}, False)
MESSAGES = MessagesForm(
    "claude-sonnet-5-5",
    {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    False,
)


def conversation(own: Message) -> list[Message]:
    """A native answer, a foreign one with a broken call, an empty one."""
    broken = Message("assistant", "x", (ToolCall("b1", "buy_stock", "{"), ToolCall("b2", "sell!", {"amount": 1.5})))
    return [
        user("Quarter 1"),
        own,
        *(Message("tool", "r", call_id=call.call_id) for call in own.calls),
        user("Quarter 2"),
        broken,
        *(Message("tool", "", call_id=call.call_id) for call in broken.calls),
        Message("assistant", ""),
        user("Go on."),
    ]


def as_typed(kind: Any, body: dict[str, Any]) -> Any:
    """A request as its type takes it: what the type does not know is gone, and what does not fit raises."""
    adapter = TypeAdapter(kind)
    return _exhausted(adapter.validate_python(body))


def _exhausted(value: Any) -> Any:
    """Plain values: iterables are checked when they are read."""
    if isinstance(value, dict):
        return {name: _exhausted(inner) for name, inner in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [_exhausted(inner) for inner in value]


def test_responses_request_is_one_of_the_client_s_type() -> None:
    own = responses_completion(payload("responses_reasoning"), RESPONSES).message
    body = responses_request(prompt_of(conversation(own), tool_use="none"), RESPONSES)
    assert as_typed(ResponseCreateParamsNonStreaming, body) == json.loads(json.dumps(body))


def test_chat_request_is_one_of_the_client_s_type() -> None:
    own = chat_completion(payload("chat_calls"), CHAT).message
    body = chat_request(prompt_of(conversation(own), tool_use="none"), CHAT)
    assert as_typed(CompletionCreateParamsNonStreaming, body) == json.loads(json.dumps(body))


def test_messages_request_is_one_of_the_client_s_type() -> None:
    own = messages_completion(payload("messages_thinking"), MESSAGES).message
    body = messages_request(prompt_of(conversation(own)), MESSAGES)
    assert as_typed(MessageCreateParamsNonStreaming, body) == json.loads(json.dumps(body))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Response, "responses_reasoning"),
        (Response, "responses_incomplete"),
        (ChatCompletion, "chat_calls"),
        (AnthropicMessage, "messages_thinking"),
        (AnthropicMessage, "messages_plain"),
    ],
)
def test_stored_payloads_are_of_the_client_s_types(kind: Any, name: str) -> None:
    kind.model_validate(payload(name), strict=False)
