"""Texts, ids and arguments that every service takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.protocol import ToolCall
from experiments.chat import Message, user
from experiments.models.anthropic_messages import MessagesForm, messages_request, messages_turns
from experiments.models.openai_chat import ChatForm, chat_messages, chat_request
from experiments.models.openai_responses import ResponsesForm, responses_items, responses_request
from experiments.models.rendering import (
    ANY_SERVICE,
    MISTRAL,
    Growing,
    arguments_object,
    arguments_text,
    exchanges,
    read_arguments,
    scrubbed,
    serialised,
    wire_id,
    wire_name,
)
from tests.peers.examples import verdict
from tests.peers.server import WIRES
from tests.peers.wire import Rules
from tests.wire import prompt_of

TEXTS = st.text(max_size=20)  # with surrogates and control characters
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS: Any = st.dictionaries(TEXTS, JSON, max_size=3) | TEXTS


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", '"5"', "5", '{}""', '{"a": 1', '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', '{"a": "\x01"}',
     '{"a": ' + "9" * 5000 + "}", "[" * 100_000],
)  # fmt: skip
def test_text_that_is_no_object_of_finite_numbers_stays_text(text: str) -> None:
    assert read_arguments(text) == text


def test_object_is_read() -> None:
    assert read_arguments(' {"a": {"b": [1, 2.5, -0.0]}} ') == {"a": {"b": [1, 2.5, -0.0]}}


@given(ARGUMENTS)
def test_arguments_can_always_be_sent_as_an_object_and_as_its_text(arguments: Mapping[str, Any] | str) -> None:
    as_object, as_text = arguments_object(arguments), arguments_text(arguments)
    for sent in (json.dumps(as_object, ensure_ascii=False), as_text):
        sent.encode("utf-8")
        assert isinstance(json.loads(sent), dict)
    serialised(as_object)


@given(TEXTS)
def test_scrubbed_text_has_a_form_in_utf_8_and_keeps_what_had_one(text: str) -> None:
    clean = scrubbed(text)
    clean.encode("utf-8")
    assert len(clean) == len(text)
    assert all(a == b or "\ud800" <= b <= "\udfff" for a, b in zip(clean, text, strict=True))


@given(TEXTS)
def test_id_and_name_fit_every_service_and_stay_where_they_fit(text: str) -> None:
    for form in (MISTRAL, ANY_SERVICE):
        made = wire_id(text, form)
        assert form.pattern.fullmatch(made)
        assert wire_id(made, form) == made
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_name(text))


def test_integers_beyond_64_bits_are_written() -> None:
    assert json.loads(serialised({"a": 10**30})) == {"a": 10**30}


def test_conversation_is_cut_into_answers_with_what_was_said_after_them() -> None:
    first, answer, result, second, last = (
        user("a"), Message("assistant", "b"), Message("tool", "c"), Message("assistant", "d"), user("e"),
    )  # fmt: skip
    assert list(exchanges([first, answer, result, second, last])) == [
        (None, [first]),
        (answer, [result]),
        (second, [last]),
    ]
    assert list(exchanges([answer, second])) == [(answer, []), (second, [])]
    assert list(exchanges([])) == []


def test_of_a_conversation_that_grows_only_the_last_exchange_is_rendered_again() -> None:
    asked: list[int] = []

    def render(messages: Sequence[Message]) -> list[str]:
        asked.append(len(messages))
        return [message.text for message in messages]

    growing = Growing(render)
    said = [user("a"), Message("assistant", "b"), Message("tool", "c"), Message("assistant", "d"), user("e")]
    assert growing(said) == ["a", "b", "c", "d", "e"]
    assert asked == [3, 2]
    said += [Message("assistant", "f"), user("g")]
    assert growing(said) == ["a", "b", "c", "d", "e", "f", "g"]
    assert asked[2:] == [2, 2]
    assert growing([*said, user("a question")])[-1] == "a question"
    assert growing([user("x"), *said[1:]]) == ["x", "b", "c", "d", "e", "f", "g"]
    assert growing(said[:2]) == ["a", "b"]
    assert growing([]) == []


@st.composite
def conversations(draw: Any) -> list[Message]:
    """Conversations as the loop makes them: each call has its result, ids are unique, the user speaks last."""
    messages = [user(draw(TEXTS))]
    n_calls = 0
    for _ in range(draw(st.integers(0, 4))):
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            n_calls += 1
            calls.append(ToolCall(f"{n_calls} {draw(TEXTS)}", draw(st.text(max_size=70)), draw(ARGUMENTS)))
        messages.append(Message("assistant", draw(TEXTS), tuple(calls)))
        messages += [Message("tool", draw(TEXTS), call_id=call.call_id) for call in calls]
        messages += [user(draw(TEXTS)) for _ in range(draw(st.integers(0 if calls else 1, 2)))]
    return messages


REQUESTS = {
    "chat": lambda messages: chat_request(prompt_of(messages), ChatForm("p", "m", {})),
    "responses": lambda messages: responses_request(prompt_of(messages), ResponsesForm("m", {})),
    "messages": lambda messages: messages_request(prompt_of(messages), MessagesForm("m", {"max_tokens": 9})),
}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.protocol)
@given(messages=conversations())
def test_every_conversation_makes_a_request_that_a_strict_service_takes(wire: Any, messages: list[Message]) -> None:
    body = json.loads(serialised(REQUESTS[wire.protocol](messages)))
    assert verdict(wire, body, rules=Rules(roles="alternate")) is None


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.protocol)
@given(messages=conversations(), n_kept=st.integers(0, 8))
def test_request_keeps_that_of_an_earlier_turn_as_its_prefix(wire: Any, messages: list[Message], n_kept: int) -> None:
    turns = [place for place, message in enumerate(messages) if message.role == "assistant"]
    if not turns:
        return
    earlier = messages[: turns[n_kept % len(turns)]]
    before, after = (wire.pieces(REQUESTS[wire.protocol](part)) for part in (earlier, messages))
    assert after[: len(before)] == before


CHAT, RESPONSES = ChatForm("p", "m", {}, closes_foreign=True), ResponsesForm("m", {})
THINKING = MessagesForm("m", {"max_tokens": 9, "thinking": {"type": "enabled"}})
GROWING = {
    "chat": (chat_request, chat_messages, CHAT),
    "responses": (responses_request, responses_items, RESPONSES),
    "messages": (messages_request, messages_turns, THINKING),
}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.protocol)
@given(messages=conversations(), begins_with_answer=st.booleans())
def test_request_of_a_conversation_that_grew_is_the_one_that_is_made_at_once(
    wire: Any, messages: list[Message], begins_with_answer: bool
) -> None:
    request, render, form = GROWING[wire.protocol]
    growing = Growing(partial(render, form=form))
    messages = messages[1:] if begins_with_answer else messages
    for n in range(1, len(messages) + 1):
        prompt = prompt_of(messages[:n])
        if messages[n - 1].role != "assistant":
            grown = serialised(request(prompt, form, growing))
            assert grown == serialised(request(prompt, form))
            assert serialised(request(prompt, form, growing)) == grown, "asked again, it is the same"


def as_floats(message: Message) -> Message:
    """An equal message whose numbers are written otherwise."""
    calls = [
        call if isinstance(call.arguments, str) else replace(call, arguments={
            name: float(value) if isinstance(value, int) and abs(value) < 2**53 else value
            for name, value in call.arguments.items()
        })
        for call in message.calls
    ]  # fmt: skip
    return replace(message, calls=tuple(calls))


MOVES: Any = {
    "grows": lambda said, whole, other, n: [*said, *whole[len(said) : len(said) + n + 1]],
    "is cut": lambda said, whole, other, n: said[:n],
    "branches": lambda said, whole, other, n: [*said[:n], *other[n:]],
    "has another beginning": lambda said, whole, other, n: [*other[:n], *said[n:]],
    "is resumed": lambda said, whole, other, n: [Message.from_json(message.to_json()) for message in said],
    "is written otherwise": lambda said, whole, other, n: [as_floats(message) for message in said],
}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.protocol)
@given(
    whole=conversations(),
    other=conversations(),
    moves=st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 6)), min_size=1, max_size=8),
)
def test_request_is_the_one_that_is_made_at_once_whatever_becomes_of_the_conversation(
    wire: Any, whole: list[Message], other: list[Message], moves: list[tuple[str, int]]
) -> None:
    request, render, form = GROWING[wire.protocol]
    growing = Growing(partial(render, form=form))
    said, made = whole, []
    for move, n in [("grows", 0), *moves]:
        said = MOVES[move](said, whole, other, n)
        body = request(prompt_of(said), form, growing)
        made.append((body, serialised(body)))
        assert made[-1][1] == serialised(request(prompt_of(said), form)), move
    assert [serialised(body) for body, _ in made] == [data for _, data in made], "an earlier request was changed"


def test_numbers_that_are_equal_but_written_otherwise_are_rendered_anew() -> None:
    growing = Growing(partial(chat_messages, form=CHAT))

    def sent(amount: Any) -> str:
        said = [Message("assistant", "", (ToolCall("c", "buy_stock", {"amount": amount}),)), Message("assistant", "b")]
        call: Any = growing([*said, user("a")])[0]["tool_calls"][0]
        return str(call["function"]["arguments"])

    assert [sent(amount) for amount in (1, True, 1.0)] == ['{"amount": 1}', '{"amount": true}', '{"amount": 1.0}']
