"""Strict mode of the Anthropic Messages peer: parameters, text, roles, cache marks, tool uses and results."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase

from tests.peers.anthropic_messages import WIRE
from tests.peers.errors import Rejected
from tests.peers.examples import messages_request, verdict
from tests.peers.neutral import Json
from tests.peers.strict_messages import PARAMETERS, SAMPLING
from tests.peers.wire import Memory, Rules

Change = Callable[[Json], Any]

MARK = {"type": "ephemeral"}


def changed(change: Change) -> Json:
    body = deepcopy(messages_request())
    change(body)
    return body


def blocks(body: Json, i: int) -> Any:
    return body["messages"][i]["content"]


def mark_all(body: Json, n: int) -> Any:
    body["system"] = [{"type": "text", "text": f"s{i}", "cache_control": MARK} for i in range(n)]


def test_a_valid_conversation_is_taken() -> None:
    assert verdict(WIRE, messages_request()) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b["messages"].append({"role": "user", "content": "again"}),
        lambda b: b.update(temperature=1.0, top_p=0.9, top_k=5, stop_sequences=["x"], metadata={}, stream=False),
        lambda b: blocks(b, 2)[0].update(content="", is_error=True),
        lambda b: blocks(b, 2)[0].pop("content"),
        lambda b: mark_all(b, 4),
        lambda b: b.update(tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
        lambda b: blocks(b, 1).pop(0),
    ],
)
def test_what_the_service_takes_is_taken(change: Change) -> None:
    assert verdict(WIRE, changed(change)) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b.update(seed=1), "seed: Extra inputs are not permitted"),
        (lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
        (lambda b: b.update(max_tokens=0), "max_tokens: Input should be greater than or equal to 1"),
        (lambda b: b.update(max_tokens="5"), "max_tokens: Input should be a valid integer"),
        (lambda b: b.update(temperature=1.5), "temperature: Input should be less than or equal to 1"),
        (lambda b: b.update(messages=[]), "messages: at least one message is required"),
        (lambda b: b["messages"][0].update(role="system"), 'Unexpected role "system"'),
        (lambda b: b["messages"][0].update(role="tool"), "messages.0.role: Input should be 'user' or 'assistant'"),
        (lambda b: b["messages"][0].update(name="x"), "messages.0.name: Extra inputs are not permitted"),
        (lambda b: b["messages"].pop(0), 'first message must use the "user" role'),
        (lambda b: b["messages"][0].update(content=None), "messages.0.content: Input should be a valid list"),
        (lambda b: blocks(b, 1)[0].update(type="tool_result"), "messages.1.content.0: Input tag 'tool_result' found"),
        (lambda b: blocks(b, 2)[2].update(type="tool_use"), "messages.2.content.2: Input tag 'tool_use' found"),
        (lambda b: blocks(b, 1)[1].update(index=0), "messages.1.content.1.tool_use.index: Extra inputs are not"),
        (
            lambda b: blocks(b, 1)[1].update(input="{}"),
            "messages.1.content.1.tool_use.input: Input should be an object",
        ),
        (lambda b: blocks(b, 1)[1].update(id=""), "messages.1.content.1.tool_use.id: String should match pattern"),
        (
            lambda b: blocks(b, 1)[1].update(name="a b"),
            "messages.1.content.1.tool_use.name: String should match pattern",
        ),
        (lambda b: b["tools"][0].update(name="a.b"), "tools.0.custom.name: String should match pattern"),
        (lambda b: b["tools"][0].pop("input_schema"), "tools.0.custom.input_schema: Field required"),
        (lambda b: b["tools"][0].update(parameters={}), "tools.0.custom.parameters: Extra inputs are not permitted"),
        (lambda b: b["tools"].append(b["tools"][0]), "tools: Tool names must be unique."),
    ],
)
def test_malformed_requests_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b["messages"][0].update(content=""), "messages.0: all messages must have non-empty content"),
        (lambda b: b["messages"][0].update(content=[]), "messages.0: all messages must have non-empty content"),
        (lambda b: b["messages"][0].update(content=" \n"), "must contain non-whitespace text"),
        (lambda b: blocks(b, 1)[0].update(text=""), "messages: text content blocks must be non-empty"),
        (lambda b: blocks(b, 1)[0].update(text="\t"), "must contain non-whitespace text"),
        (lambda b: blocks(b, 2)[1]["content"][0].update(text=""), "messages: text content blocks must be non-empty"),
        (lambda b: b.update(system=[{"type": "text", "text": ""}]), "system: text content blocks must be non-empty"),
    ],
)
def test_empty_and_blank_text_is_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: blocks(b, 2).pop(1), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
        (lambda b: blocks(b, 2).insert(0, blocks(b, 2).pop()), "immediately after: c1, c2."),
        (lambda b: blocks(b, 2).insert(1, blocks(b, 2).pop()), "immediately after: c2."),
        (lambda b: b["messages"].pop(), "immediately after: c1, c2."),
        (lambda b: b["messages"].insert(2, {"role": "user", "content": "wait"}), "immediately after: c1, c2."),
        (
            lambda b: blocks(b, 1).pop(),
            "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: c2",
        ),
        (lambda b: blocks(b, 2).insert(2, blocks(b, 2)[0]), "Found multiple `tool_result` blocks with id: c1"),
        (lambda b: blocks(b, 1)[2].update(id="c1"), "messages.1.content.2: `tool_use` ids must be unique"),
        (lambda b: b["messages"].extend(deepcopy(b["messages"][1:])), "messages.3.content.1: `tool_use` ids must be"),
        (lambda b: b.pop("tools"), "must define tools"),
    ],
)
def test_uses_and_results_that_do_not_pair_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


def test_results_spread_over_two_messages_are_refused() -> None:
    body = changed(lambda b: b["messages"].append({"role": "user", "content": [blocks(b, 2).pop(1)]}))
    assert "`tool_use` ids were found without" in (verdict(WIRE, body) or "taken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: mark_all(b, 5), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (lambda b: b.update(cache_control={"type": "forever"}), "cache_control: Input should be"),
        (
            lambda b: (mark_all(b, 1), blocks(b, 2)[2].update(cache_control={**MARK, "ttl": "1h"})),
            "must not come after a ttl='5m'",
        ),
    ],
)
def test_cache_marks_against_the_rules_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


def test_a_begun_reply_is_refused_and_never_ends_in_white_space() -> None:
    body = changed(lambda b: b["messages"].append({"role": "assistant", "content": "I "}))
    assert "cannot end with trailing whitespace" in (verdict(WIRE, body, rules=Rules(prefill=True)) or "taken")
    body["messages"][-1]["content"] = "I"
    assert "does not support assistant message prefill" in (verdict(WIRE, body) or "taken")
    assert verdict(WIRE, body, rules=Rules(prefill=True)) is None
    body["messages"][-1]["content"] = ""
    assert verdict(WIRE, body, rules=Rules(prefill=True)) is None


def test_neighbours_of_one_role_are_refused_only_where_roles_must_alternate() -> None:
    body = changed(lambda b: b["messages"].append({"role": "user", "content": "again"}))
    assert 'found multiple "user" roles in a row' in (verdict(WIRE, body, rules=Rules(roles="alternate")) or "taken")


def test_a_request_without_a_version_is_refused() -> None:
    with pytest.raises(Rejected, match="anthropic-version: header is required"):
        WIRE.check(messages_request(), {}, Memory(), Rules())


def test_known_parameters_are_those_of_the_sdk() -> None:
    assert set(MessageCreateParamsBase.__annotations__) == PARAMETERS
    assert not SAMPLING & set(MessageCreateParamsBase.__annotations__)
