"""What a model can say wrong, over the wire: taken as it came, and the next request is one that the service takes.

The peer is strict: a request that the real service would refuse is a rejection in its log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from experiments.chat import Completion, Message
from experiments.models.rendering import MALFORMED
from tests.peers import Call, Peer, Reply, RequestView, Thinking, reply_faults
from tests.peers.faults import Fault, at
from tests.wire import DIRECT, HELLO, LITELLM_WARNINGS, ROUTES, answered, ask, converse, converse_often

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

BUY = Call("buy_stock", {"stock": "XOM", "amount": 5.0})


def trader(view: RequestView) -> Reply:
    """Buys in the first turn, and talks afterwards."""
    return Reply(text="I buy.", calls=(BUY,)) if view.n_turns == 0 else Reply(text="Done.")


def first_turn(route: str, fault: Fault) -> Completion:
    """The turn that a fault struck; the two after it have to be accepted."""
    return first_turns(route, {"only": fault})["only"]


def first_turns(route: str, faults: Mapping[Any, Fault]) -> dict[Any, Completion]:
    """The turn that each fault struck, each in a conversation of its own."""
    rules = [at(fault, 3 * place) for place, fault in enumerate(faults.values())]
    with Peer(trader, faults=rules) as peer:
        played = converse_often(route, peer, 3, len(faults))
    assert peer.log.rejections == []
    assert len(peer.log) == 3 * len(faults)
    assert all(len(completions) == 3 for completions in played)
    return {kind: completions[0] for kind, completions in zip(faults, played, strict=True)}


@pytest.mark.parametrize("route", ROUTES)
def test_malformed_arguments_are_kept_as_text_and_do_not_poison_the_history(route: str) -> None:
    faults = {kind: reply_faults.raw_arguments(text) for kind, text in reply_faults.BROKEN_ARGUMENTS.items()}
    for kind, completion in first_turns(route, faults).items():
        (call,) = completion.message.calls
        if "anthropic" not in route:
            assert call.arguments == reply_faults.BROKEN_ARGUMENTS[kind]
        elif kind == "empty string" or (kind == "missing brace" and "streamed" not in route):
            assert call.arguments == {}, "Anthropic sends an object, an empty one where the text was cut"
        else:
            assert isinstance(call.arguments, str) or kind == "control character", kind


@pytest.mark.parametrize("route", DIRECT)
def test_malformed_arguments_go_back_as_an_object_that_holds_the_text(route: str) -> None:
    fault = reply_faults.raw_arguments("buy XOM for 5 million")
    with Peer(trader, faults=[at(fault, 0)]) as peer:
        converse(route, peer, 2)
    body = json.dumps(peer.log[1].body).replace("\\", "")
    assert f'{{"{MALFORMED}": "buy XOM for 5 million"}}' in body


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("label", ["length", "calls"])
def test_half_a_call_is_no_whole_one(route: str, label: Any) -> None:
    completion = first_turn(route, reply_faults.cut_call(label))
    assert completion.stop == ("length" if label == "length" else "calls")
    (call,) = completion.message.calls
    assert call.arguments == {} or isinstance(call.arguments, str)


@pytest.mark.parametrize("route", ROUTES)
def test_text_that_was_cut_off_stops_for_its_length(route: str) -> None:
    assert first_turn(route, reply_faults.cut_text()).stop == "length"


@pytest.mark.parametrize("route", ROUTES)
def test_three_parallel_calls_with_a_bad_one_all_get_their_results(route: str) -> None:
    calls = (BUY, Call("buy_stock", '{"stock": '), BUY)
    completion = first_turn(route, reply_faults.parallel(*calls))
    assert [call.name for call in completion.message.calls] == ["buy_stock"] * 3


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["duplicate", "empty", "same"])
def test_odd_call_ids_of_every_turn_do_not_poison_the_history(route: str, kind: Any) -> None:
    def always(view: RequestView) -> Reply:
        return Reply(text="I buy.", calls=(BUY, BUY))

    with Peer(always, faults=[at(reply_faults.call_ids(kind), *range(4))]) as peer:
        converse(route, peer, 4)
    assert peer.log.rejections == []
    assert peer.log.outcomes == {"answered": 4}


@pytest.mark.parametrize("route", ROUTES)
def test_a_tool_that_there_is_not_is_reported_and_goes_back(route: str) -> None:
    completion = first_turn(route, reply_faults.unknown_tool("short stock!"))
    assert [call.name for call in completion.message.calls] == ["short stock!", "buy_stock"]


ODD_AMOUNTS: Mapping[str, Any] = {
    "grouped digits": {"stock": "XOM", "amount": "5,000,000"},
    "word": {"stock": "XOM", "amount": "all"},
    "true": {"stock": "XOM", "amount": True},
    "not a number": '{"stock": "XOM", "amount": NaN}',
    "infinite": '{"stock": "XOM", "amount": 1e999}',
    "minus zero": {"stock": "XOM", "amount": 0},
    "null": {"stock": "XOM", "amount": None},
}


@pytest.mark.parametrize("route", ["chat", "responses", "anthropic streamed", "litellm"])
def test_odd_amounts_come_as_they_are_and_numbers_beyond_json_as_text(route: str) -> None:
    faults = {kind: reply_faults.odd_amount(reply_faults.ODD_AMOUNTS[kind]) for kind in ODD_AMOUNTS}
    for kind, completion in first_turns(route, faults).items():
        (call,) = completion.message.calls
        if route == "anthropic streamed" and isinstance(ODD_AMOUNTS[kind], str):
            assert isinstance(call.arguments, str), kind
        else:
            assert call.arguments == ODD_AMOUNTS[kind]


@pytest.mark.parametrize("route", ROUTES)
def test_blank_answers_with_and_without_calls_are_taken_back(route: str) -> None:
    kinds = [(text, keep) for text in (None, "", "  \n") for keep in (True, False)]
    faults = {kind: reply_faults.content(kind[0], keep_calls=kind[1]) for kind in kinds}
    for (text, keep_calls), completion in first_turns(route, faults).items():
        assert completion.message.text.strip() == ""
        assert completion.stop == ("calls" if keep_calls else "done"), text


@pytest.mark.parametrize("route", ROUTES)
def test_refusal_stops_as_one_and_its_words_are_kept(route: str) -> None:
    with Peer(trader, faults=[at(reply_faults.refusal("I will not."), 0)]) as peer:
        completion = ask(route, peer)
    assert completion.stop == "refusal"
    if not route.startswith("litellm"):
        assert completion.message.text == "I will not."


@pytest.mark.parametrize("route", ROUTES)
def test_lone_surrogates_are_shown_as_they_came_and_scrubbed_on_the_wire(route: str) -> None:
    completion = first_turn(route, reply_faults.surrogates())
    assert "\udcff" in completion.message.text
    (call,) = completion.message.calls
    assert not isinstance(call.arguments, str)
    assert "\udcff" in call.arguments["note"]


@pytest.mark.parametrize("route", ROUTES)
def test_budget_eaten_by_reasoning_stops_for_length_with_an_empty_answer(route: str) -> None:
    completion = first_turn(route, reply_faults.budget_eaten(4000))
    assert (completion.message.text, completion.stop) == ("", "length")
    assert completion.usage is not None
    assert completion.usage.reasoning_tokens == 4000


def thinker(view: RequestView) -> Reply:
    """Thinks before every turn, and buys twice in all but the second one."""
    thinking = (Thinking(f"Thought {view.n_turns}: oil \u2191."), Thinking("hidden", redacted=True))
    if view.n_turns != 1:
        return Reply(text="I buy.", calls=(BUY, BUY), thinking=thinking)
    return Reply(text="Done.", thinking=thinking)


THINKING: Mapping[str, dict[str, Any]] = {
    "responses": {"reasoning_effort": "low"},
    "anthropic": {"thinking": "enabled", "thinking_budget_tokens": 2000},
    "anthropic streamed": {"thinking": "adaptive"},
    "litellm anthropic": {"reasoning_effort": "low", "max_tokens": 8000},
}


@pytest.mark.parametrize("route", THINKING)
def test_thinking_goes_back_byte_for_byte_also_out_of_a_record(route: str) -> None:
    with Peer(thinker) as peer:
        converse(route, peer, 5, **THINKING[route])
    assert peer.log.rejections == []
    assert peer.log.prefix_share() == 1.0
    sent = [message for entry in peer.log for message in _thoughts(entry.body)]
    assert sent


@pytest.mark.parametrize("first", THINKING)
@pytest.mark.parametrize("second", ROUTES)
def test_a_conversation_of_one_provider_is_continued_by_another(first: str, second: str) -> None:
    with Peer(thinker) as peer:
        told = _history(converse(first, peer, 4, **THINKING[first]))
    assert told[-2].role == "tool"
    with Peer(thinker) as other:
        converse(second, other, 4, told, **THINKING.get(second, {}))
    assert other.log.rejections == []
    assert other.log.prefix_share() == 1.0


def _history(completions: list[Completion]) -> list[Message]:
    taken: set[str] = set()
    told = list(HELLO)
    for turn, completion in enumerate(completions):
        told += answered(completion.message, taken, f"h{turn}")
    return [*told, Message("user", "Quarter 2")]


def _thoughts(body: Any) -> list[Any]:
    blocks = [
        block
        for message in body.get("messages") or ()
        for block in (message["content"] if isinstance(message["content"], list) else [])
    ]
    return [one for one in [*blocks, *(body.get("input") or ())] if one.get("type") in ("thinking", "reasoning")]
