"""Strict mode of the Responses peer: items, pairs of calls and outputs, reasoning items, stored responses."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from tests.peers import seals
from tests.peers.errors import Rejected
from tests.peers.examples import responses_request, verdict
from tests.peers.neutral import Call, Json, Reply, Thinking, Usage
from tests.peers.openai_responses import WIRE
from tests.peers.strict_responses import PARAMETERS
from tests.peers.wire import Memory, Turn

Change = Callable[[Json], Any]

REASONED = Reply(thinking=(Thinking("I think."),), calls=(Call("buy_stock", {"stock": "BP"}),))


def changed(change: Change) -> Json:
    body = deepcopy(responses_request())
    change(body)
    return body


def answered(*, store: bool, reply: Reply = REASONED) -> tuple[Json, Memory]:
    """An answer with reasoning, and what the service remembers of it."""
    body = {"model": "m", "input": [{"role": "user", "content": "q"}], "store": store}
    turn = Turn("0123456789abcdef0123456789abcdef", {**body, "include": ["reasoning.encrypted_content"]}, Usage())
    answer = WIRE.payload(turn, reply)
    memory = Memory()
    WIRE.remember(turn, answer, memory)
    return answer, memory


def replayed(answer: Json, *, drop: tuple[str, ...] = (), store: bool = False) -> Json:
    """The next request after an answer with one call, without the items of some types."""
    kept = [item for item in answer["output"] if item["type"] not in drop]
    calls = [item for item in kept if item["type"] == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": "ok"} for call in calls]
    return responses_request(input=[{"role": "user", "content": "q"}, *kept, *outputs], store=store)


def test_a_valid_conversation_is_taken() -> None:
    assert verdict(WIRE, responses_request()) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b.update(messages=[]), "Unknown parameter: 'messages'."),
        (lambda b: b.update(seed=1), "Unknown parameter: 'seed'."),
        (lambda b: b.pop("input"), "Missing required parameter: 'input'."),
        (lambda b: b.update(input=[]), "Invalid 'input': empty array."),
        (lambda b: b.update(max_output_tokens=5), "Invalid 'max_output_tokens'"),
        (lambda b: b["input"][0].update(role="tool"), "Invalid value: 'tool'."),
        (lambda b: b["input"][0].update(type="note"), "Invalid value: 'note'."),
        (lambda b: b["input"][1]["content"][0].update(type="input_text"), "Supported values are: 'output_text'"),
        (lambda b: b["input"][6]["content"][0].update(type="output_text"), "Supported values are: 'input_text'"),
        (lambda b: b["input"][0].update(content=None), "Invalid type for 'input[0].content'"),
        (lambda b: b["input"][2].update(status=None), "Invalid value: 'None'."),
        (lambda b: b["input"][2].update(parsed_arguments={}), "Unknown parameter: 'input[2].parsed_arguments'."),
        (lambda b: b["input"][2].update(id="call_1"), "Expected an ID that begins with 'fc'."),
        (lambda b: b["input"][2].update(arguments={}), "Invalid type for 'input[2].arguments'"),
        (lambda b: b["input"][2].update(call_id=""), "Invalid 'input[2].call_id': empty string."),
        (lambda b: b["input"][4].update(output=None), "Invalid type for 'input[4].output'"),
        (lambda b: b["tools"][0].update(function={}), "Unknown parameter: 'tools[0].function'."),
        (lambda b: b["tools"][0].update(strict=True), "'additionalProperties' is required"),
    ],
)
def test_malformed_requests_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b["input"].pop(5), "No tool output found for function call c2."),
        (lambda b: b["input"].pop(2), "No tool call found for function call output with call_id c1."),
        (lambda b: b["input"].insert(4, b["input"].pop()), "No tool output found for function call c1."),
        (lambda b: b["input"][5].update(call_id="c1"), "No tool call found for function call output with call_id c1."),
        (lambda b: b["input"][3].update(call_id="c1"), "Duplicate 'call_id': c1."),
        (lambda b: b["input"].extend(deepcopy(b["input"][2:6])), "Duplicate 'call_id': c1."),
        (lambda b: [b["input"][i].update(id="fc_1") for i in (2, 3)], "Duplicate item found with id fc_1."),
    ],
)
def test_calls_and_outputs_that_do_not_pair_are_refused(change: Change, said: str) -> None:
    assert said in (verdict(WIRE, changed(change)) or "taken")


def test_reasoning_comes_back_with_its_sealed_content() -> None:
    answer, memory = answered(store=False)
    assert answer["output"][0]["encrypted_content"].startswith("gAAAAA")
    assert verdict(WIRE, replayed(answer), memory=memory) is None


def test_altered_sealed_content_is_refused() -> None:
    answer, memory = answered(store=False)
    answer["output"][0]["encrypted_content"] = seals.seal("rs_other", "I think.")
    assert "could not be verified" in (verdict(WIRE, replayed(answer), memory=memory) or "taken")


def test_reasoning_without_content_is_not_found_unless_it_was_stored() -> None:
    answer, memory = answered(store=False)
    answer["output"][0].pop("encrypted_content")
    assert "Items are not persisted" in (verdict(WIRE, replayed(answer), memory=memory) or "taken")
    answer, memory = answered(store=True)
    named = {**answer["output"][0], "encrypted_content": None}
    body = replayed({"output": [named, answer["output"][1]]}, store=True)
    assert verdict(WIRE, body, memory=memory) is None


def test_reasoning_without_what_followed_it_is_refused() -> None:
    answer, memory = answered(store=False)
    said = verdict(WIRE, replayed(answer, drop=("function_call",)), memory=memory)
    assert "of type 'reasoning' was provided without its required following item" in (said or "taken")


def test_a_call_that_had_reasoning_needs_it_if_its_id_is_named() -> None:
    answer, memory = answered(store=False)
    body = replayed(answer, drop=("reasoning",))
    assert "without its required 'reasoning' item" in (verdict(WIRE, body, memory=memory) or "taken")
    for item in body["input"]:
        item.pop("id", None)
    assert verdict(WIRE, body, memory=memory) is None


def test_a_stored_response_is_continued_by_its_id() -> None:
    answer, memory = answered(store=True)
    output = {"type": "function_call_output", "call_id": answer["output"][1]["call_id"], "output": "ok"}
    body = responses_request(input=[output], previous_response_id=answer["id"])
    assert verdict(WIRE, body, memory=memory) is None
    messages, _ = WIRE.read(WIRE.expand(body, memory))
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]


def test_an_unknown_previous_response_is_refused() -> None:
    with pytest.raises(Rejected, match="Previous response with id 'resp_x' not found"):
        WIRE.expand(responses_request(previous_response_id="resp_x"), Memory())


def test_an_item_reference_stands_for_the_stored_item() -> None:
    answer, memory = answered(store=True)
    reasoning, call = answer["output"]
    items = [
        {"role": "user", "content": "q"},
        {"type": "item_reference", "id": reasoning["id"]},
        {"type": "item_reference", "id": call["id"]},
        {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"},
    ]
    assert verdict(WIRE, responses_request(input=items), memory=memory) is None
    assert "not found" in (verdict(WIRE, responses_request(input=items)) or "taken")


def test_known_parameters_are_those_of_the_sdk() -> None:
    assert set(ResponseCreateParamsBase.__annotations__) | {"stream"} == PARAMETERS
