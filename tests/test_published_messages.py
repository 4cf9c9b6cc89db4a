"""Published messages: whatever form they have, they become the same conversation."""

import math

import pytest

from analysis.published.inert import CheckpointError
from analysis.published.messages import normalise
from analysis.published.pickles import read_pickle
from apex_env.protocol import ToolCall
from experiments.chat import Message
from tests.checkpoints import Anthropic, AnthropicDicts, Dialect, OpenAiDicts, Stub, pickled

TURN = [("a", "view_portfolio", {}, "Cash: $1"), ("b", "buy_stock", {"stock": "XOM", "amount": 2.5}, "Bought")]


def conversation(*raw):
    return normalise(read_pickle(pickled(list(raw))))


@pytest.mark.parametrize("dialect", [Dialect(), OpenAiDicts(), Anthropic(), AnthropicDicts()])
def test_objects_and_dictionaries_of_both_providers_say_the_same(dialect):
    said = conversation(*dialect.briefing("Quarter 1"), *dialect.turn("I look.", TURN), *dialect.briefing("Go on."))
    assert said.messages == (
        Message("user", "Quarter 1"),
        Message(
            "assistant",
            "I look.",
            (ToolCall("a", "view_portfolio", {}), ToolCall("b", "buy_stock", {"stock": "XOM", "amount": 2.5})),
        ),
        Message("tool", '"Cash: $1"', call_id="a"),
        Message("tool", '"Bought"', call_id="b"),
        Message("user", "Go on."),
    )


@pytest.mark.parametrize("dialect", [Dialect(), OpenAiDicts(), Anthropic(), AnthropicDicts()])
def test_a_turn_without_a_word_has_an_empty_text(dialect):
    assert conversation(*dialect.turn("", TURN)).messages[0].text == ""


def test_a_result_and_a_briefing_in_one_message_come_apart_in_order():
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": "done"}, {"type": "text", "text": "Quarter 2"}]
    said = conversation({"role": "user", "content": blocks})
    assert said.messages == (Message("tool", "done", call_id="a"), Message("user", "Quarter 2"))


def test_results_as_text_blocks_become_texts():
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "done"}]}]
    assert conversation({"role": "user", "content": blocks}).messages == (Message("tool", "done", call_id="a"),)


def test_several_texts_of_a_turn_are_kept_in_order():
    blocks = [Stub("TextBlock", type="text", text="First."), {"type": "text", "text": "Second."}]
    assert conversation({"role": "assistant", "content": blocks}).messages[0].text == "First.\n\nSecond."


def test_system_messages_are_kept_apart_each_text_once():
    said = conversation(*({"role": "system", "content": text} for text in ("A", "B", "A")))
    assert (said.messages, said.system_prompts) == ((), ("A", "B"))


def test_the_forms_met_with_are_named():
    assert conversation(*Dialect().turn("x", TURN)).forms == ("ChatCompletionMessage", "dict", "tc_obj")
    assert conversation(*OpenAiDicts().turn("x", TURN)).forms == ("dict", "tc_dict")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('{"stock": "XOM", "amount": 5}', {"stock": "XOM", "amount": 5}),
        ("{}", {}),
        ("", ""),
        ("null", "null"),
        ("[]", "[]"),
        ('{"stock": "XOM"', '{"stock": "XOM"'),
        ('{"amount": NaN}', '{"amount": NaN}'),
        ('{"amount": 1e999}', '{"amount": 1e999}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_are_an_object_or_the_text_that_was_sent(sent, kept):
    (message,) = conversation(*Dialect().turn("x", [("a", "buy_stock", sent, None)])).messages
    assert message.calls[0].arguments == kept


def test_arguments_that_no_record_can_hold_are_kept_as_text():
    (message,) = conversation(*Anthropic().turn("x", [("a", "buy_stock", {"amount": math.nan}, None)])).messages
    assert message.calls[0].arguments == "{'amount': nan}"


@pytest.mark.parametrize(
    "raw",
    [
        "a text",
        {"content": "no role"},
        {"role": "developer", "content": "x"},
        {"role": "user", "content": [{"type": "image"}]},
        {"role": "assistant", "content": [{"type": "thinking"}]},
        {"role": "assistant", "content": 3},
        {"role": "assistant", "content": "x", "tool_calls": {"id": "a"}},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "a", "function": None}]},
        {"role": "tool", "tool_call_id": 3, "content": "x"},
    ],
)
def test_a_message_of_another_form_is_named_in_an_error(raw):
    with pytest.raises(CheckpointError, match="message 1: ") as caught:
        conversation({"role": "user", "content": "fine"}, raw)
    assert caught.value.code == "misshapen"
