"""Strict mode of the Chat Completions peer: what the service takes passes, what it refuses is refused in its words."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from tests.peers.examples import chat_request, verdict
from tests.peers.neutral import Json
from tests.peers.openai_chat import WIRE
from tests.peers.strict_chat import PARAMETERS
from tests.peers.wire import Rules

Change = Callable[[Json], Any]


def changed(change: Change) -> Json:
    body = deepcopy(chat_request())
    change(body)
    return body


def call(body: Json, i: int = 0) -> Any:
    return body["messages"][2]["tool_calls"][i]


def assistant_text(text: Any) -> Json:
    return {"role": "assistant", "content": text}


def twice(body: Json) -> None:
    """The same turn once more, with the same ids."""
    body["messages"] += deepcopy(body["messages"][2:5])


def test_a_valid_conversation_with_an_unparseable_call_is_taken() -> None:
    assert verdict(WIRE, chat_request()) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b["messages"][2].update(content="I buy.", refusal=None, annotations=[]),
        lambda b: b["messages"].append(assistant_text("")),
        lambda b: b["messages"].append({"role": "user", "content": "again"}),
        lambda b: b["messages"].insert(0, {"role": "developer", "content": [{"type": "text", "text": "x"}]}),
        lambda b: call(b)["function"].update(arguments=""),
        lambda b: b.update(temperature=0.7, top_p=1, seed=3, max_completion_tokens=10, stream=True, stream_options={}),
        lambda b: b.update(parallel_tool_calls=False, tool_choice="auto"),
        lambda b: b["messages"].append({"role": "assistant", "content": None, "refusal": "no"}),
    ],
)
def test_what_the_service_takes_is_taken(change: Change) -> None:
    assert verdict(WIRE, changed(change)) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b.update(max_output_tokens=5), "Unknown parameter: 'max_output_tokens'."),
        (lambda b: b.pop("model"), "Missing required parameter: 'model'."),
        (lambda b: b.update(messages=[]), "Invalid 'messages': empty array."),
        (lambda b: b.update(tools=[]), "Invalid 'tools': empty array."),
        (lambda b: b.update(temperature=2.5), "Invalid 'temperature': decimal above maximum value."),
        (lambda b: b.update(temperature="0.5"), "Invalid type for 'temperature'"),
        (lambda b: b.update(stream_options={}), "only allowed when 'stream' is enabled"),
        (lambda b: b["messages"][0].update(role="critic"), "Invalid value: 'critic'. Supported values are: 'system',"),
        (
            lambda b: b["messages"][2].update(reasoning_content="x"),
            "Unknown parameter: 'messages[2].reasoning_content'",
        ),
        (lambda b: b["messages"][1].update(content=None), "Invalid value for 'content': expected a string, got null."),
        (lambda b: b["messages"].append(assistant_text(None)), "Invalid value for 'content'"),
        (lambda b: b["messages"][1].update(content=7), "Invalid type for 'messages[1].content'"),
        (lambda b: b["messages"][1].update(content=[]), "Invalid 'messages[1].content': empty array."),
        (
            lambda b: b["messages"][2].update(content="", tool_calls=[]),
            "Invalid 'messages[2].tool_calls': empty array.",
        ),
        (lambda b: call(b).update(id=""), "Invalid 'messages[2].tool_calls[0].id': empty string."),
        (lambda b: call(b).update(id="x" * 41), "Expected a string with maximum length 40"),
        (
            lambda b: call(b)["function"].update(arguments={}),
            "Invalid type for 'messages[2].tool_calls[0].function.arg",
        ),
        (lambda b: call(b)["function"].update(name="buy stock"), "string does not match pattern"),
        (lambda b: b["tools"][0]["function"].update(name="x" * 65), "string does not match pattern"),
        (lambda b: b["tools"][0]["function"].update(parameters={"type": "array"}), "schema must be a JSON Schema of"),
        (lambda b: b["tools"][0]["function"].update(strict=True), "'additionalProperties' is required"),
        (lambda b: b.pop("tools") and b.update(tool_choice="auto"), "'tool_choice' is only allowed when 'tools'"),
    ],
)
def test_malformed_requests_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b["messages"].pop(4), "did not have response messages: c2"),
        (lambda b: b["messages"].pop(2), "messages with role 'tool' must be a response"),
        (lambda b: b.update(messages=b["messages"][:3]), "did not have response messages: c1, c2"),
        (lambda b: b["messages"].insert(4, {"role": "user", "content": "wait"}), "did not have response messages: c2"),
        (lambda b: b["messages"][4].update(tool_call_id="c1"), "Duplicate value for 'tool_call_id' of 'c1'"),
        (lambda b: b["messages"][4].update(tool_call_id="c9"), "'tool_call_id' of 'c9' not found"),
        (lambda b: call(b, 1).update(id="c1"), "Duplicate tool call id 'c1'."),
        (twice, "Duplicate tool call id 'c1'."),
        (
            lambda b: b["messages"].append({"role": "tool", "tool_call_id": "c1", "content": "late"}),
            "must be a response",
        ),
    ],
)
def test_calls_and_results_that_do_not_pair_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


def test_neighbours_of_one_role_are_refused_only_where_roles_must_alternate() -> None:
    body = changed(lambda b: b["messages"].append({"role": "user", "content": "again"}))
    assert verdict(WIRE, body) is None
    assert "must alternate" in (verdict(WIRE, body, rules=Rules(roles="alternate")) or "")
    assert verdict(WIRE, chat_request(), rules=Rules(roles="alternate")) is None


def test_a_reasoning_field_is_taken_where_the_server_has_one() -> None:
    body = changed(lambda b: b["messages"][2].update(reasoning_content="x"))
    assert verdict(WIRE, body, rules=Rules(reasoning_field="reasoning_content")) is None


def test_known_parameters_are_those_of_the_sdk() -> None:
    assert set(CompletionCreateParamsBase.__annotations__) | {"stream"} == PARAMETERS
