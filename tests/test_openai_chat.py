"""The form of Chat Completions, on stored payloads."""

from __future__ import annotations

from typing import Any

import pytest

from apex_env.protocol import ToolCall
from experiments.chat import Message, Native, Usage, user
from experiments.models.failures import Failure
from experiments.models.openai_chat import ChatForm, chat_completion, chat_request, chat_usage
from experiments.models.rendering import MISTRAL
from tests.payload_files import payload
from tests.wire import prompt_of

FORM = ChatForm("openai.chat", "m", {"temperature": 0.5})


def said(*messages: Message, form: ChatForm = FORM) -> list[Any]:
    """The messages of a request after the system prompt."""
    found: list[Any] = chat_request(prompt_of(list(messages)), form)["messages"]
    assert found[0] == {"role": "system", "content": "You manage a fund."}
    return found[1:]


def test_payload_becomes_a_completion_in_neutral_words() -> None:
    completion = chat_completion(payload("chat_calls"), FORM)
    assert completion.message == Message(
        "assistant",
        "I buy both.",
        (
            ToolCall("call_A", "buy_stock", {"stock": "NEE", "amount": 1_000_000.5}),
            ToolCall("call_B", "buy_stock", '{"stock": "RUN", "amount": '),
        ),
    )
    assert completion.stop == "calls"
    assert completion.usage == Usage(128, 1920, 0, 60, 0)


def test_answer_goes_back_with_its_calls_and_results() -> None:
    message = chat_completion(payload("chat_calls"), FORM).message
    results = [Message("tool", "bought", call_id="call_A"), Message("tool", " ", call_id="call_B")]
    assert said(user("Quarter 1"), message, *results, user("Quarter 2")) == [
        {"role": "user", "content": "Quarter 1"},
        {
            "role": "assistant",
            "content": "I buy both.",
            "tool_calls": [
                {
                    "id": "call_A",
                    "type": "function",
                    "function": {"name": "buy_stock", "arguments": '{"stock": "NEE", "amount": 1000000.5}'},
                },
                {
                    "id": "call_B",
                    "type": "function",
                    "function": {
                        "name": "buy_stock",
                        "arguments": '{"malformed_arguments": "{\\"stock\\": \\"RUN\\", \\"amount\\": "}',
                    },
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_A", "content": "bought"},
        {"role": "tool", "tool_call_id": "call_B", "content": "(empty)"},
        {"role": "user", "content": "Quarter 2"},
    ]


def test_reasoning_goes_back_to_the_same_model_only() -> None:
    message = chat_completion(payload("chat_reasoning"), FORM).message
    assert message.native == Native(
        "openai.chat", "m", {"message": {"reasoning_content": "The list has two clean stocks."}, "calls": [{}]}
    )
    (_, own) = said(user("Quarter 1"), message)
    assert own["reasoning_content"] == "The list has two clean stocks."
    (_, others) = said(user("Quarter 1"), message, form=ChatForm("openai.chat", "other", {}))
    assert set(others) == {"role", "content", "tool_calls"}


def test_reasoning_is_not_kept_where_the_server_refuses_it() -> None:
    form = ChatForm("openai.chat", "m", {}, replay_reasoning=False)
    assert chat_completion(payload("chat_reasoning"), form).message.native is None


def test_signatures_of_google_go_back_with_message_and_call() -> None:
    message = chat_completion(payload("litellm_gemini"), FORM).message
    (_, own) = said(user("Quarter 1"), message)
    assert own["provider_specific_fields"] == {"thought_signatures": ["CpQB/abc+de=="]}
    assert own["tool_calls"][0]["provider_specific_fields"] == {"thought_signature": "CpQB/abc+de=="}


def test_user_messages_in_a_row_are_one() -> None:
    assert said(user("The quarter was closed."), user("Quarter 2")) == [
        {"role": "user", "content": "The quarter was closed.\n\nQuarter 2"}
    ]


def test_conversation_that_begins_with_the_agent_gets_a_user_first() -> None:
    assert [one["role"] for one in said(Message("assistant", "hello"), user("x"))] == ["user", "assistant", "user"]


def test_ids_are_made_as_the_service_wants_them_in_call_and_result() -> None:
    call = ToolCall("q1t0c0 / odd id that is much too long for anyone to take", "buy_stock", {})
    form = ChatForm("litellm.mistral", "m", {}, ids=MISTRAL)
    _, asked, result = said(
        user("x"), Message("assistant", "", (call,)), Message("tool", "r", call_id=call.call_id), form=form
    )
    made = asked["tool_calls"][0]["id"]
    assert made == result["tool_call_id"] and len(made) == 9 and made.isalnum()


def test_parallel_calls_and_tool_choice_are_set_only_where_there_are_tools() -> None:
    form = ChatForm("openai.chat", "m", {}, parallel_calls=False)
    body = chat_request(prompt_of(tool_use="none"), form)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("none", False)
    bare = chat_request(prompt_of(tool_use="none", tools=()), form)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(bare)


def test_usage_counts_reasoning_that_a_server_left_out_of_its_output() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 150,
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    assert chat_usage(usage) == Usage(input_tokens=100, output_tokens=50, reasoning_tokens=40)
    assert chat_usage(usage | {"total_tokens": 110}) == Usage(input_tokens=100, output_tokens=10, reasoning_tokens=40)


def test_usage_reads_cache_hits_in_the_forms_in_use() -> None:
    hits = chat_completion(payload("chat_reasoning"), FORM).usage
    assert hits == Usage(132, 768, 0, 40, 25)
    of_anthropic = {"prompt_tokens": 100, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}
    assert chat_usage(of_anthropic) == Usage(10, 60, 30)
    assert chat_usage(None) is None


def test_cost_that_a_gateway_reports_is_kept() -> None:
    assert chat_usage({"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}) == Usage(1, 0, 0, 1, cost_usd=0.25)


@pytest.mark.parametrize(
    ("finish", "message", "stop"),
    [
        ("length", {"content": "x"}, "length"),
        ("content_filter", {"content": ""}, "refusal"),
        ("stop", {"content": None, "refusal": "no"}, "refusal"),
        ("tool_calls", {"content": "x", "tool_calls": []}, "done"),
        ("stop", {"content": [{"type": "text", "text": "x"}]}, "done"),
    ],
)
def test_stop_is_told_from_reason_and_message(finish: str, message: dict[str, Any], stop: str) -> None:
    completion = chat_completion({"choices": [{"finish_reason": finish, "message": message}]}, FORM)
    assert completion.stop == stop
    assert completion.message.text == (message.get("refusal") or ("x" if message["content"] else ""))


def test_arguments_that_a_server_sends_as_an_object_are_taken() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "buy_stock", "arguments": {"stock": "XOM"}}}
    completion = chat_completion({"choices": [{"message": {"content": "", "tool_calls": [call]}}]}, FORM)
    assert completion.message.calls == (ToolCall("c", "buy_stock", {"stock": "XOM"}),)


@pytest.mark.parametrize("body", [None, [], {}, {"choices": []}, {"choices": [{"finish_reason": "stop"}]}])
def test_body_without_an_answer_is_a_failure_that_can_pass(body: Any) -> None:
    with pytest.raises(Failure, match="a body without an answer") as caught:
        chat_completion(body, FORM)
    assert caught.value.kind == "passing"


@pytest.mark.parametrize(
    ("error", "kind"),
    [({"code": 502, "message": "Provider returned error"}, "passing"), ({"code": 401, "message": "no"}, "key")],
)
def test_error_of_a_gateway_counts_by_its_code_also_within_a_choice(error: dict[str, Any], kind: str) -> None:
    for body in ({"error": error}, {"choices": [{"error": error, "message": {"content": ""}}]}):
        with pytest.raises(Failure) as caught:
            chat_completion(body, FORM)
        assert caught.value.kind == kind
