"""Which requests a rule strikes, and what each reply fault makes of a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.peers import Arrival, Call, Reply, faults, reply_faults
from tests.peers.faults import Fault, Schedule
from tests.peers.neutral import Thinking

REPLY = Reply(text="I buy.", calls=(Call("buy_stock", {"stock": "XOM"}), Call("finish_quarter")))


def arrival(index: int = 0, attempt: int = 0, digest: str = "d") -> Arrival:
    return Arrival(index, attempt, "chat", digest, {}, {})


def applied(fault: Fault, reply: Reply = REPLY) -> Reply:
    assert fault.change is not None
    return fault.change(reply)


def test_a_rule_by_place_strikes_these_places() -> None:
    schedule = Schedule((faults.at(faults.server_error(), 1, 3),))
    assert [bool(schedule.pick(arrival(i))) for i in range(5)] == [False, True, False, True, False]


def test_the_first_rule_that_strikes_decides_until_it_is_spent() -> None:
    rules = (faults.when(faults.overloaded(), lambda a: True, times=2), faults.at(faults.server_error(), 1, 2))
    picked = [Schedule.pick(schedule, arrival(i)) for schedule in [Schedule(rules)] for i in range(4)]
    assert [fault.name if fault else None for fault in picked] == ["529", "529", "500", None]


def test_first_attempts_are_struck_whatever_the_order() -> None:
    schedule = Schedule((faults.first_attempts(faults.unavailable(), 2),))
    assert [bool(schedule.pick(arrival(i, attempt=i // 2))) for i in range(6)] == [True] * 4 + [False] * 2


def test_chance_depends_on_seed_request_and_attempt_alone() -> None:
    rules = [faults.chance(faults.drop_after(), 0.3, seed=seed) for seed in (1, 1, 2)]
    struck = [[rule.strikes(arrival(index=i * n, digest=str(i))) for i in range(2000)] for n, rule in enumerate(rules)]
    assert struck[0] == struck[1] != struck[2]
    # Binomial(2000, 0.3): mean 600, standard deviation 20.5; within five of them.
    assert 500 < sum(struck[0]) < 700


@pytest.mark.parametrize("kind", sorted(reply_faults.BROKEN_ARGUMENTS))
def test_broken_arguments_are_no_json_object(kind: str) -> None:
    text = reply_faults.BROKEN_ARGUMENTS[kind]
    try:
        assert not isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        pass
    reply = applied(reply_faults.raw_arguments(text, call=1))
    assert [call.arguments for call in reply.calls] == [{"stock": "XOM"}, text]


@pytest.mark.parametrize("kind", sorted(reply_faults.ODD_AMOUNTS))
def test_odd_amounts_are_sent_as_written(kind: str) -> None:
    text = reply_faults.ODD_AMOUNTS[kind]
    (call,) = applied(reply_faults.odd_amount(text)).calls
    assert call.arguments == f'{{"stock": "XOM", "amount": {text}}}'


def test_a_call_is_cut_in_its_last_arguments_and_labelled_as_asked() -> None:
    reply = applied(reply_faults.cut_call("calls"), Reply(calls=(Call("buy_stock", {"stock": "XOM"}),)))
    assert (reply.calls[0].arguments, reply.ends) == ('{"stock"', "calls")
    assert applied(reply_faults.cut_call()).ends == "length"


@pytest.mark.parametrize(
    ("fault", "ids"),
    [
        (reply_faults.call_ids("duplicate", id="x"), ["x", "x"]),
        (reply_faults.call_ids("empty"), ["", ""]),
        (reply_faults.call_ids("same", id="x"), ["x", None]),
    ],
)
def test_call_ids_are_odd_as_asked(fault: Fault, ids: list[str | None]) -> None:
    assert [call.id for call in applied(fault).calls] == ids


def test_a_single_call_is_doubled_to_have_a_duplicate() -> None:
    reply = applied(reply_faults.call_ids("duplicate"), Reply(calls=(Call("finish_quarter"),)))
    assert [call.name for call in reply.calls] == ["finish_quarter"] * 2


@pytest.mark.parametrize(
    ("fault", "reply"),
    [
        (reply_faults.content(None), Reply(text=None)),
        (reply_faults.content(" \n", keep_calls=True), Reply(text=" \n", calls=REPLY.calls)),
        (reply_faults.refusal("No."), Reply(refusal="No.")),
        (reply_faults.cut_text(), Reply(text="I b", stop="length")),
        (
            reply_faults.budget_eaten(7),
            Reply(thinking=(Thinking("Still thinking."),), stop="length", reasoning_tokens=7),
        ),
        (reply_faults.parallel(Call("a"), Call("b")), Reply(text="I buy.", calls=(Call("a"), Call("b")))),
    ],
)
def test_turns_are_changed_as_asked(fault: Fault, reply: Reply) -> None:
    assert applied(fault) == reply


def test_calls_are_changed_as_asked() -> None:
    def arguments(fault: Fault) -> list[Any]:
        return [call.arguments for call in applied(fault).calls]

    assert arguments(reply_faults.extra_arguments(why="x")) == [{"stock": "XOM", "why": "x"}, {"why": "x"}]
    assert arguments(reply_faults.stocks_as_string()) == [{"stocks": '["XOM", "BP"]'}]
    assert applied(reply_faults.unknown_tool("short")).calls[0].name == "short"
    odd = applied(reply_faults.surrogates("\ud800"))
    assert (odd.text, odd.calls[1].arguments) == ("I buy. \ud800", {"note": "\ud800"})


def test_the_stop_reason_follows_from_the_reply_unless_it_is_named() -> None:
    assert [Reply(text="x").ends, REPLY.ends, Reply(refusal="x").ends] == ["end", "calls", "refusal"]
    assert Reply(calls=REPLY.calls, stop="end").ends == "end"
