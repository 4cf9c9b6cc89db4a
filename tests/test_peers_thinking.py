"""Thinking blocks over the Anthropic peer: signatures, settings, and what has to come back with a tool result."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.peers import seals
from tests.peers.anthropic_messages import WIRE
from tests.peers.examples import messages_request, verdict
from tests.peers.neutral import Call, Json, Reply, Thinking, Usage
from tests.peers.wire import Memory, Turn

MODIFIED = "blocks in the latest assistant message cannot be modified"
ENABLED = {"type": "enabled", "budget_tokens": 1024}
ADAPTIVE = {"type": "adaptive"}


def continued(thinking: Json, *blocks: Thinking) -> tuple[Json, Memory]:
    """A request that answers the one tool use of a turn with thinking, and what the service remembers of that turn."""
    memory = Memory()
    turn = Turn("0123456789abcdef0123456789abcdef", messages_request(), Usage())
    answer = WIRE.payload(turn, Reply(text="So.", thinking=blocks, calls=(Call("buy_stock", {"stock": "BP"}),)))
    WIRE.remember(turn, answer, memory)
    result = {"type": "tool_result", "tool_use_id": answer["content"][-1]["id"], "content": "ok"}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": deepcopy(answer["content"])},
        {"role": "user", "content": [result]},
    ]
    return messages_request(messages=messages, thinking=thinking), memory


@given(st.text(st.characters()))
def test_a_signature_is_good_for_its_text_only(text: str) -> None:
    signature = seals.sign(text)
    assert seals.check(text, signature) == "good"
    assert seals.check(text + ".", signature) == "altered"
    assert seals.check(text, signature[:-4] + "AAAA") in ("foreign", "good")
    assert seals.check(text, "") == "foreign"


@given(st.text(st.characters()), st.text(st.characters()))
def test_sealed_content_opens_for_its_item_only(item_id: str, text: str) -> None:
    sealed = seals.seal(item_id, text)
    assert seals.opens(item_id, sealed)
    assert not seals.opens(item_id + "x", sealed)
    assert not seals.opens(item_id, sealed[:-1])


@pytest.mark.parametrize("thinking", [ENABLED, ADAPTIVE])
def test_thinking_that_comes_back_unchanged_is_taken(thinking: Json) -> None:
    body, memory = continued(thinking, Thinking("a"), Thinking("b", redacted=True))
    assert [block["type"] for block in body["messages"][1]["content"]][:2] == ["thinking", "redacted_thinking"]
    assert verdict(WIRE, body, memory=memory) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content[0].update(thinking="b"), MODIFIED),
        (lambda content: content[0].update(signature="Zm9yZWlnbg=="), "Invalid `signature` in `thinking` block"),
        (lambda content: content[1].update(data="x"), "Invalid `data` in `redacted_thinking` block"),
        (lambda content: content.pop(1), MODIFIED),
        (lambda content: content.insert(0, content.pop(1)), MODIFIED),
    ],
)
def test_thinking_that_was_changed_is_refused(change: Any, said: str) -> None:
    body, memory = continued(ADAPTIVE, Thinking("a"), Thinking("b", redacted=True))
    change(body["messages"][1]["content"])
    assert said in (verdict(WIRE, body, memory=memory) or "taken")


def test_thinking_may_be_dropped_only_where_thinking_is_off() -> None:
    body, memory = continued(ADAPTIVE, Thinking("a"))
    body["messages"][1]["content"].pop(0)
    assert MODIFIED in (verdict(WIRE, body, memory=memory) or "taken")
    body["thinking"] = {"type": "disabled"}
    assert verdict(WIRE, body, memory=memory) is None


def test_a_turn_that_never_had_thinking_fits_adaptive_thinking_but_no_budget() -> None:
    body, memory = continued(ADAPTIVE)
    assert verdict(WIRE, body, memory=memory) is None
    body["thinking"] = ENABLED
    assert "messages.1.content.0.type: Expected `thinking`" in (verdict(WIRE, body, memory=memory) or "taken")


def test_thinking_of_turns_that_are_over_may_be_dropped() -> None:
    body, memory = continued(ENABLED, Thinking("a"))
    body["messages"][1]["content"].pop(0)
    body["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Quarter 2"}]
    assert verdict(WIRE, body, memory=memory) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"thinking": {"type": "on"}}, "thinking: Input tag does not match"),
        ({"thinking": {"type": "enabled"}}, "budget_tokens: Field required"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1000}}, "greater than or equal to 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "`max_tokens` must be greater than"),
        ({"thinking": ADAPTIVE, "temperature": 0.5}, "`temperature` may only be set to 1"),
        ({"thinking": ADAPTIVE, "top_k": 5}, "`top_k` must be unset"),
        ({"thinking": ENABLED, "tool_choice": {"type": "any"}}, "Thinking may not be enabled when tool_choice"),
    ],
)
def test_settings_that_contradict_thinking_are_refused(changes: Json, said: str) -> None:
    assert said in (verdict(WIRE, messages_request(**changes)) or "taken")
