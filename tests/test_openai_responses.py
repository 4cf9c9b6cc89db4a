"""The form of OpenAI's Responses, on stored payloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apex_env.protocol import ToolCall
from experiments.chat import Message, Usage, user
from experiments.models.failures import Failure
from experiments.models.openai_responses import ResponsesForm, responses_completion, responses_request
from tests.payload_files import payload
from tests.wire import prompt_of

FORM = ResponsesForm("gpt-6.1-sol", {"max_output_tokens": 16_000})


def items_of(*messages: Message, form: ResponsesForm = FORM) -> list[Any]:
    body = responses_request(prompt_of([user("Quarter 1"), *messages]), form)
    items: list[Any] = body["input"]
    assert items[0] == {"role": "user", "content": "Quarter 1"}
    return items[1:]


def results(message: Message) -> list[Message]:
    return [Message("tool", f"r{place}", call_id=call.call_id) for place, call in enumerate(message.calls)]


def test_payload_becomes_a_completion_in_neutral_words() -> None:
    completion = responses_completion(payload("responses_reasoning"), FORM)
    assert completion.message.text == "I look, then buy."
    assert completion.message.calls == (
        ToolCall("call_Vx1", "view_portfolio", {}),
        ToolCall("call_Vx2", "buy_stock", {"stock": "NEE", "amount": 2_500_000}),
    )
    assert completion.stop == "calls"
    assert completion.model_reported == "gpt-6.1-sol-2026-10-02"
    assert completion.usage == Usage(280, 4096, 1024, 700, 512)


def test_answer_goes_back_item_by_item_as_it_came() -> None:
    sent = payload("responses_reasoning")
    message = responses_completion(sent, FORM).message
    assert items_of(message, *results(message)) == [
        *sent["output"],
        {"type": "function_call_output", "call_id": "call_Vx1", "output": "r0"},
        {"type": "function_call_output", "call_id": "call_Vx2", "output": "r1"},
    ]


def test_another_model_gets_text_and_calls_without_reasoning() -> None:
    message = responses_completion(payload("responses_reasoning"), FORM).message
    assert items_of(message, form=ResponsesForm("gpt-6-luna", {})) == [
        {"role": "assistant", "content": "I look, then buy."},
        {"type": "function_call", "call_id": "call_Vx1", "name": "view_portfolio", "arguments": "{}"},
        {
            "type": "function_call",
            "call_id": "call_Vx2",
            "name": "buy_stock",
            "arguments": '{"stock": "NEE", "amount": 2500000}',
        },
    ]


def test_calls_renamed_by_the_harness_go_back_under_their_new_ids() -> None:
    message = responses_completion(payload("responses_reasoning"), FORM).message
    renamed = replace(message, calls=(replace(message.calls[0], call_id="q1t0c0"), message.calls[1]))
    assert [item["call_id"] for item in items_of(renamed) if "call_id" in item] == ["q1t0c0", "call_Vx2"]


def test_reasoning_that_was_cut_off_is_left_out_and_the_answer_stands_for_itself() -> None:
    completion = responses_completion(payload("responses_incomplete"), FORM)
    assert (completion.message.text, completion.stop) == ("", "length")
    assert items_of(completion.message) == [{"role": "assistant", "content": "(no answer)"}]


def test_reasoning_without_its_content_is_left_out_together_with_the_ids_that_ask_for_it() -> None:
    sent = payload("responses_reasoning")
    del sent["output"][0]["encrypted_content"]
    items = items_of(responses_completion(sent, FORM).message)
    assert [item.get("type") for item in items] == ["message", "function_call", "function_call"]
    assert not any("id" in item for item in items)


def test_request_stores_nothing_and_asks_for_encrypted_reasoning() -> None:
    body = responses_request(prompt_of(), FORM)
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["max_output_tokens"] == 16_000
    assert all(tool["strict"] is False for tool in body["tools"])


def test_tools_are_sent_but_not_used_where_the_prompt_says_so() -> None:
    body = responses_request(prompt_of(tool_use="none"), FORM)
    assert body["tool_choice"] == "none" and len(body["tools"]) == 2
    assert "tool_choice" not in responses_request(prompt_of(), FORM)


def test_cache_key_is_that_of_the_conversation_and_its_branches() -> None:
    first = responses_request(prompt_of(), FORM)["prompt_cache_key"]
    later = responses_request(prompt_of([user("Quarter 1"), Message("assistant", "x"), user("y")]), FORM)
    assert later["prompt_cache_key"] == first
    assert responses_request(prompt_of([user("Quarter 2")]), FORM)["prompt_cache_key"] != first


@pytest.mark.parametrize(
    ("code", "kind"),
    [("server_error", "passing"), ("rate_limit_exceeded", "passing"), ("invalid_prompt", "refused")],
)
def test_failed_answer_with_status_200_is_a_failure(code: str, kind: str) -> None:
    failed = {"status": "failed", "error": {"code": code, "message": "said"}, "output": []}
    with pytest.raises(Failure, match="said") as caught:
        responses_completion(failed, FORM)
    assert caught.value.kind == kind


@pytest.mark.parametrize("body", [[], "text", {}, {"status": "in_progress", "output": []}, {"status": "completed"}])
def test_body_without_an_answer_is_a_failure_that_can_pass(body: Any) -> None:
    with pytest.raises(Failure, match="a body without an answer") as caught:
        responses_completion(body, FORM)
    assert caught.value.kind == "passing"


def test_content_filter_is_a_refusal() -> None:
    sent = payload("responses_incomplete") | {"incomplete_details": {"reason": "content_filter"}}
    assert responses_completion(sent, FORM).stop == "refusal"
