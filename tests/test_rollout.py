from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from experiments.chat import Completion, Message
from experiments.errors import ContextLimit, ProviderError
from experiments.record import Record, read_record
from experiments.run_spec import RunSpec
from experiments.runner import Job, play
from experiments.treatment import Treatment
from tests.path import NoWatch, Replies, finish, say, scripted


def run(root: Path, agent: Any, **treatment: Any) -> tuple[str, Record]:
    spec = RunSpec(scripted("idle"), Treatment(**({"n_evaluation": 4} | treatment)), 1)
    job = Job(spec, root, agent, NoWatch(), sync="end")
    outcome = asyncio.run(play(job))
    return outcome, read_record(job.path)


def results(record: Record) -> list[tuple[str, str]]:
    return [(call["tool"], call["outcome"]) for line in record.of_type("turn") for call in line.get("calls", ())]


def test_turn_without_calls_is_followed_by_a_recorded_request_to_carry_on(tmp_path: Path) -> None:
    agent = Replies(say("Let me think.", stop="done"))
    _, record = run(tmp_path, agent)
    turns = list(record.of_type("turn"))
    assert (turns[1]["by"], turns[1]["kind"]) == ("harness", "nudge")
    assert agent.prompts[1][-1] == Message("user", turns[1]["text"])


def test_attempts_at_a_request_are_counted_until_it_goes_through_or_the_quarter_ends(tmp_path: Path) -> None:
    look, end = ("view_portfolio", {}), ("finish_quarter", {})
    dear, sale = ("buy_stock", {"stock": "?", "amount": 5}), ("sell_stock", {})
    agent = Replies(say("", look, look, dear), say("", dear, sale, dear, end), say("", dear))
    _, record = run(tmp_path, agent)
    attempts = [call["attempt"] for line in record.of_type("turn") for call in line.get("calls", ())]
    assert attempts[:8] == [1, 1, 1, 2, 1, 3, 1, 1]


def test_calls_of_one_turn_run_in_order_and_those_after_finish_are_refused(tmp_path: Path) -> None:
    agent = Replies(
        say("", ("view_portfolio", {}), ("finish_quarter", {}), ("view_portfolio", {}), ("finish_quarter", {}))
    )
    outcome, record = run(tmp_path, agent)
    assert outcome == "completed"
    assert results(record)[:4] == [
        ("view_portfolio", "ok"),
        ("finish_quarter", "ok"),
        ("view_portfolio", "after_finish"),
        ("finish_quarter", "after_finish"),
    ]
    assert [line["quarter"] for line in record.of_type("closed")] == [1, 2, 3, 4]


def test_quarter_at_the_turn_limit_is_closed_by_the_harness_and_the_run_goes_on(tmp_path: Path) -> None:
    agent = Replies(*[say("", ("view_portfolio", {}))] * 3)
    outcome, record = run(tmp_path, agent, turn_limit=3)
    assert outcome == "completed"
    closed = list(record.of_type("closed"))
    assert [line["state"]["forced"] for line in closed] == [True, False, False, False]
    forced = next(line for line in record.of_type("turn") if line.get("kind") == "forced")
    assert any(message.text == forced["text"] for message in agent.prompts[-1])


def test_three_forced_quarters_in_a_row_end_the_run_as_stalled(tmp_path: Path) -> None:
    agent = Replies(*[say("", ("view_portfolio", {}))] * 12)
    outcome, record = run(tmp_path, agent, turn_limit=2, n_evaluation=8)
    assert outcome == "stalled"
    assert len(list(record.of_type("closed"))) == 3


def test_forced_quarters_that_are_not_in_a_row_do_not_stall(tmp_path: Path) -> None:
    slow = [say("", ("view_portfolio", {}))] * 2
    outcome, _ = run(tmp_path, Replies(*slow, *slow, finish(), *slow, *slow, finish()), turn_limit=2, n_evaluation=6)
    assert outcome == "completed"


def test_answer_cut_at_its_length_limit_is_not_carried_out(tmp_path: Path) -> None:
    agent = Replies(say("", ("finish_quarter", {}), stop="length"))
    _, record = run(tmp_path, agent)
    assert results(record)[0] == ("finish_quarter", "cut_off")
    assert agent.prompts[1][-1].role == "tool"


def test_outright_refusal_ends_the_run_as_refused(tmp_path: Path) -> None:
    outcome, record = run(tmp_path, Replies(finish(), say("I cannot help with this.", stop="refusal")))
    assert outcome == "refused"
    assert record.ended is not None
    assert record.ended["reason"] == "the model refused in quarter 2, turn 1"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ProviderError("the service is down"), "provider_error"), (ContextLimit("too long"), "context_limit")],
)
def test_failure_of_the_world_is_an_outcome_and_no_behaviour(tmp_path: Path, error: Exception, outcome: str) -> None:
    ended, record = run(tmp_path, Replies(finish(), error))
    assert ended == outcome
    assert [line["quarter"] for line in record.of_type("closed")] == [1]
    assert record.lines[-1]["outcome"] == outcome


def test_ids_are_unique_in_the_conversation_and_the_record_keeps_what_was_sent(tmp_path: Path) -> None:
    from apex_env.protocol import ToolCall

    calls = tuple(ToolCall(sent, "view_portfolio", {}) for sent in ("", "x", "x"))
    agent = Replies(Completion(Message("assistant", "", calls), stop="calls"))
    _, record = run(tmp_path, agent)
    ids = [call.call_id for message in agent.prompts[-1] for call in message.calls]
    assert len(set(ids)) == len(ids)
    first = next(record.of_type("turn"))
    assert [call["sent_id"] for call in first["calls"]] == ["", "x", "x"]
    assert [call["id"] for call in first["calls"]] == ["q1t0c0", "x", "q1t0c2"]


def test_malformed_arguments_are_recorded_as_they_came(tmp_path: Path) -> None:
    _, record = run(tmp_path, Replies(say("", ("buy_stock", '{"stock": "XOM"}""'), ("no_such_tool", {}))))
    first = next(record.of_type("turn"))
    assert first["calls"][0]["arguments"] == '{"stock": "XOM"}""'
    assert [call["outcome"] for call in first["calls"]] == ["malformed_arguments", "unknown_tool"]
    assert first["calls"][1]["effect_class"] is None


def test_revision_is_recorded_before_the_first_quarter_of_the_new_goal(tmp_path: Path) -> None:
    from tests.path import plan, record_of, sweep_runs

    run_spec = next(
        one for one in plan("adherent", Treatment("combined", n_instrumental=3), seeds=[1]) if one.treatment.switches
    )
    sweep_runs(tmp_path, [run_spec])
    record = record_of(tmp_path, run_spec)
    assert [line["type"] for line in record.lines[:4]] == ["run", "branched", "revision", "opened"]
    revision = record.lines[2]
    assert (revision["prior_version"], revision["new_version"], revision["quarter"]) == (1, 2, 4)
    assert revision["changes"] == {"goal_in_force": {"from": "profit", "to": "emissions"}}
