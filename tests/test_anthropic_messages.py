"""The form of Anthropic's Messages, on stored payloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apex_env.protocol import ToolCall
from experiments.chat import Message, Usage, user
from experiments.models.anthropic_messages import CLOSED, MessagesForm, messages_completion, messages_request
from experiments.models.failures import Failure
from tests.payload_files import payload
from tests.wire import prompt_of

FORM = MessagesForm("claude-sonnet-5-5", {"max_tokens": 4096})
BY_BUDGET = replace(FORM, settings={"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024}})
MARK = {"type": "ephemeral"}


def body_of(*messages: Message, form: MessagesForm = FORM) -> dict[str, Any]:
    return messages_request(prompt_of([user("Quarter 1"), *messages]), form)


def said(*messages: Message, form: MessagesForm = FORM) -> list[tuple[str, list[Any]]]:
    """Roles and blocks of a request after the first message, cache marks left out."""
    found = body_of(*messages, form=form)["messages"][1:]
    return [(one["role"], [_unmarked(block) for block in one["content"]]) for one in found]


def _unmarked(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def results(message: Message) -> list[Message]:
    return [Message("tool", f"r{place}", call_id=call.call_id) for place, call in enumerate(message.calls)]


def test_payload_becomes_a_completion_in_neutral_words() -> None:
    completion = messages_completion(payload("messages_thinking"), FORM)
    assert completion.message.text == "I check AUM and buy."
    assert completion.message.calls == (
        ToolCall("toolu_01A", "retrieve_aum_data", {}),
        ToolCall("toolu_01B", "buy_stock", {"stock": "XOM", "amount": 5_000_000}),
    )
    assert (completion.stop, completion.model_reported) == ("calls", "claude-sonnet-5-5")
    assert completion.usage == Usage(3, 2048, 12_304, 550, 120)


def test_thinking_goes_back_as_it_came_and_results_stand_before_the_next_text() -> None:
    sent = payload("messages_thinking")
    message = messages_completion(sent, FORM).message
    (role, blocks), (_, next_blocks) = said(message, *results(message), user("Quarter 2"))
    assert role == "assistant"
    assert blocks[:3] == sent["content"][:3]
    assert blocks[3:] == [
        {"type": "tool_use", "id": "toolu_01A", "name": "retrieve_aum_data", "input": {}},
        {"type": "tool_use", "id": "toolu_01B", "name": "buy_stock", "input": {"stock": "XOM", "amount": 5_000_000}},
    ]
    assert next_blocks == [
        {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "r0"},
        {"type": "tool_result", "tool_use_id": "toolu_01B", "content": "r1"},
        {"type": "text", "text": "Quarter 2"},
    ]


def test_plain_answer_needs_no_native_form_and_goes_back_the_same() -> None:
    sent = payload("messages_plain")
    message = messages_completion(sent, FORM).message
    assert message.native is None
    assert said(message, *results(message))[0] == ("assistant", sent["content"])


def test_another_model_gets_text_and_calls_without_thinking() -> None:
    message = messages_completion(payload("messages_thinking"), FORM).message
    (_, blocks), *_ = said(message, *results(message), form=MessagesForm("claude-haiku-5-5", {"max_tokens": 1}))
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_use"]


def test_thinking_without_signature_is_left_out_and_thinking_alone_is_no_message() -> None:
    sent = payload("messages_thinking")
    sent["content"] = [{"type": "thinking", "thinking": "cut o", "signature": ""}]
    sent["stop_reason"] = "max_tokens"
    completion = messages_completion(sent, FORM)
    assert completion.stop == "length"
    assert said(completion.message) == [("assistant", [{"type": "text", "text": "(no answer)"}])]


def test_foreign_calls_are_closed_before_the_next_quarter_where_thinking_has_a_budget() -> None:
    foreign = Message("assistant", "I buy.", (ToolCall("call_1", "buy_stock", {"stock": "XOM"}),))
    roles = [role for role, _ in said(foreign, *results(foreign), user("Quarter 2"), form=BY_BUDGET)]
    assert roles == ["assistant", "user", "assistant", "user"]
    closing = said(foreign, *results(foreign), user("Quarter 2"), form=BY_BUDGET)[2]
    assert closing == ("assistant", [{"type": "text", "text": CLOSED}])
    assert [role for role, _ in said(foreign, *results(foreign), user("Quarter 2"))] == ["assistant", "user"]


def test_own_calls_with_thinking_are_not_closed() -> None:
    own = messages_completion(payload("messages_thinking"), BY_BUDGET).message
    assert [role for role, _ in said(own, *results(own), user("Quarter 2"), form=BY_BUDGET)] == ["assistant", "user"]


def test_broken_arguments_go_back_as_an_object() -> None:
    broken = Message("assistant", "", (ToolCall("c", "buy_stock", '{"stock": \ud800'),))
    (_, blocks), *_ = said(broken, *results(broken))
    assert blocks == [
        {"type": "tool_use", "id": "c", "name": "buy_stock", "input": {"malformed_arguments": '{"stock": \ufffd'}}
    ]


def test_tools_system_and_the_newest_two_user_turns_are_marked_for_the_cache() -> None:
    turns = [message for n in range(3) for message in (Message("assistant", f"a{n}"), user(f"u{n}"))]
    body = body_of(*turns)
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, MARK]
    assert body["system"] == [{"type": "text", "text": "You manage a fund.", "cache_control": MARK}]
    marked = [one["content"][-1]["text"] for one in body["messages"] if one["content"][-1].get("cache_control")]
    assert marked == ["u1", "u2"]


def test_newest_mark_is_on_the_last_block_of_a_turn() -> None:
    message = messages_completion(payload("messages_thinking"), FORM).message
    content = body_of(message, *results(message), user("Quarter 2"))["messages"][-1]["content"]
    assert [bool(block.get("cache_control")) for block in content] == [False, False, True]


@pytest.mark.parametrize(
    ("tool_use", "parallel", "choice"),
    [
        ("auto", None, None),
        ("none", None, {"type": "none"}),
        ("none", False, {"type": "none"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choice(tool_use: Any, parallel: bool | None, choice: Any) -> None:
    body = messages_request(prompt_of(tool_use=tool_use), replace(FORM, parallel_calls=parallel))
    assert body.get("tool_choice") == choice
    assert len(body["tools"]) == 2


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "done"),
        ("stop_sequence", "done"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
    ],
)
def test_stop_reasons(reason: str, stop: str) -> None:
    sent = payload("messages_plain") | {"stop_reason": reason, "content": [{"type": "text", "text": "x"}]}
    assert messages_completion(sent, FORM).stop == stop


def test_refusal_without_text_is_told_by_its_explanation() -> None:
    sent = payload("messages_plain")
    sent |= {"stop_reason": "refusal", "content": [], "stop_details": {"type": "refusal", "explanation": "I won't."}}
    assert messages_completion(sent, FORM).message.text == "I won't."


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [
        ("overloaded_error", "passing"),
        ("api_error", "passing"),
        ("rate_limit_error", "passing"),
        ("authentication_error", "key"),
        ("billing_error", "credit"),
        ("not_found_error", "no_model"),
        ("invalid_request_error", "request"),
        ("error_of_next_year", "passing"),
    ],
)
def test_error_with_status_200_counts_by_its_type(error_type: str, kind: str) -> None:
    with pytest.raises(Failure, match=error_type) as caught:
        messages_completion({"type": "error", "error": {"type": error_type, "message": "said"}}, FORM)
    assert caught.value.kind == kind


@pytest.mark.parametrize("body", [None, "x", [], {}, {"content": "x"}])
def test_body_without_an_answer_is_a_failure_that_can_pass(body: Any) -> None:
    with pytest.raises(Failure, match="a body without an answer") as caught:
        messages_completion(body, FORM)
    assert caught.value.kind == "passing"
