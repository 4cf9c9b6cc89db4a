"""Faults of the agent's tools, and orders that happen once."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from apex_env.firm import ApexFirm
from apex_env.protocol import ToolCall, ToolError
from apex_env.scenario import Scenario, ToolFaultLevel
from apex_env.tool_faults import FAULTS, MAX_TEMPORARY, STRUCK_FRAC, FaultyTools, fault_of
from apex_env.toolbox import Done
from experiments.environments import opening_from_json, opening_to_json
from experiments.rebuild import rebuild
from experiments.rollout import Dialogue
from experiments.treatment import Treatment
from tests.firms import TEXTS, call, listed, make_firm, ok
from tests.path import plan, record_of, sweep_runs

LEVELS = get_args(ToolFaultLevel)


class Till:
    """A tool that counts what it did."""

    def __init__(self) -> None:
        self.n_done = 0

    def __call__(self) -> Done:
        self.n_done += 1
        return Done(f"answer {self.n_done}\nsecond line", True, {"spent_usd": 5.0})


def struck_quarter(level: str, tool: str, effect: str = "trade") -> int:
    """First quarter in which a tool has a fault, for seed 1."""
    return next(quarter for quarter in range(1, 200) if fault_of(level, tool, effect, 1, quarter))  # type: ignore[arg-type]


def struck(level: Any, tool: str, effect: str = "trade") -> FaultyTools:
    tools = FaultyTools(level, TEXTS)
    tools.open(struck_quarter(level, tool, effect), 1)
    return tools


def send(tools: FaultyTools, till: Any, *, order_id: str | None = None, amount: float = 5.0) -> Done:
    return tools.carry_out("buy_stock", "trade", {"stock": "NEE", "amount": amount}, till, order_id=order_id)


def test_faults_depend_on_seed_quarter_and_tool_alone() -> None:
    drawn = [fault_of("mixed", "buy_stock", "trade", seed, quarter) for seed in range(40) for quarter in range(50)]
    assert drawn == [
        fault_of("mixed", "buy_stock", "trade", seed, quarter) for seed in range(40) for quarter in range(50)
    ]
    frac = sum(fault is not None for fault in drawn) / len(drawn)
    assert abs(frac - STRUCK_FRAC) < 0.04
    assert {*drawn} == {None, "timeout_before_commit", "timeout_after_commit", "temporary", "permanent"}
    assert drawn != [fault_of("mixed", "sell_stock", "trade", seed, q) for seed in range(40) for q in range(50)]


@pytest.mark.parametrize("level", LEVELS)
def test_quarters_can_always_be_ended(level: Any) -> None:
    assert not any(fault_of(level, "finish_quarter", "control", 1, quarter) for quarter in range(200))


def test_only_lists_are_cut_and_only_answers_are_old() -> None:
    quarters = range(300)
    assert not any(fault_of("truncated", "retrieve_aum_data", "read", 1, quarter) for quarter in quarters)
    assert any(fault_of("truncated", "view_portfolio", "read", 1, quarter) for quarter in quarters)
    assert not any(fault_of(level, "buy_stock", "trade", 1, q) for level in ("stale", "truncated") for q in quarters)


def test_timeouts_look_alike_and_differ_in_what_was_done() -> None:
    before, after = Till(), Till()
    one = send(struck("timeout_before_commit", "buy_stock"), before)
    other = send(struck("timeout_after_commit", "buy_stock"), after)
    assert (one.text, one.outcome) == (other.text, other.outcome) and one.outcome == "timeout"
    assert (before.n_done, one.committed, after.n_done, other.committed) == (0, False, 1, True)
    assert other.moved == {"spent_usd": 5.0}


def test_refusal_behind_a_timeout_is_lost_with_the_answer() -> None:
    def refuse() -> Done:
        raise ToolError("over_budget", "too much")

    done = send(struck("timeout_after_commit", "buy_stock"), refuse)
    assert (done.outcome, done.committed) == ("timeout", False)


@pytest.mark.parametrize(("order_id", "n_done"), [("a", 1), (None, 2)])
def test_repeated_order_is_carried_out_once_under_its_id(order_id: str | None, n_done: int) -> None:
    tools, till = struck("timeout_after_commit", "buy_stock"), Till()
    send(tools, till, order_id=order_id)
    again = send(tools, till, order_id=order_id)
    assert (till.n_done, again.outcome, again.committed) == (n_done, "ok", n_done == 2)
    assert "answer" in again.text


def test_order_whose_first_attempt_did_nothing_is_carried_out_by_the_second() -> None:
    tools, till = struck("timeout_before_commit", "buy_stock"), Till()
    send(tools, till, order_id="a")
    assert send(tools, till, order_id="a").committed and till.n_done == 1


def test_id_of_another_order_is_refused_and_free_again_in_the_next_quarter() -> None:
    tools, till = struck("timeout_after_commit", "buy_stock"), Till()
    send(tools, till, order_id="a")
    with pytest.raises(ToolError) as refused:
        send(tools, till, order_id="a", amount=6.0)
    assert refused.value.code == "order_id_reused" and till.n_done == 1
    tools.open(10_000, 1)
    send(tools, till, order_id="a", amount=6.0)
    assert till.n_done == 2


def quarter_after(first: int, is_struck: bool) -> int:
    """A quarter in which purchases meet a time-out after their commit, or do not, for seed 1."""
    quarters = range(first, first + 1_000)
    return next(q for q in quarters if bool(fault_of("timeout_after_commit", "buy_stock", "trade", 1, q)) == is_struck)


def test_order_with_a_lost_answer_is_not_carried_out_again_in_a_later_quarter() -> None:
    tools, till = struck("timeout_after_commit", "buy_stock"), Till()
    send(tools, till, order_id="a")
    assert [order.order_id for order in tools.lost] == ["a"]
    spared, again, far = (quarter_after(10_000, False), quarter_after(10_000, True), quarter_after(20_000, False))
    tools.open(again, 1)
    assert send(tools, till, order_id="a").outcome == "timeout", "the answer is lost once more"
    tools.open(spared, 1)
    answers = [send(tools, till, order_id="a") for _ in range(2)]
    assert till.n_done == 1 and all("carried out already" in answer.text for answer in answers)
    assert tools.lost == ()
    tools.open(far, 1)
    send(tools, till, order_id="a")
    assert till.n_done == 2, "its answer has arrived, so the id is free again"


def test_lost_order_goes_on_with_what_goes_on_from_its_episode() -> None:
    at, level = 1, "timeout_after_commit"
    seed = next(
        seed
        for seed in range(500)
        if fault_of(level, "buy_stock", "trade", seed, at) and not fault_of(level, "buy_stock", "trade", seed, at + 1)
    )
    firm = make_firm(tool_faults=level, seed=seed)
    order = {"stock": listed(firm, "low"), "amount": 1_000.0, "order_id": "a"}
    assert call(firm, "buy_stock", **order).outcome == "timeout"
    firm.force_close()
    opening = opening_from_json(json.loads(json.dumps(opening_to_json(firm.opening()))))
    assert [lost.order_id for lost in opening.lost_orders] == ["a"]
    heir = ApexFirm(firm.scenario, opening=opening)
    heir.open()
    found = call(heir, "buy_stock", **order)
    assert "carried out already" in found.text and not found.committed and heir.ledger.bought_usd.low == 0


def test_temporary_fault_goes_away_and_lasting_one_does_not() -> None:
    for level, most in (("temporary", MAX_TEMPORARY), ("permanent", 10)):
        tools, till = struck(level, "buy_stock"), Till()
        outcomes = [send(tools, till).outcome for _ in range(10)]
        failed = [outcome for outcome in outcomes if outcome != "ok"]
        assert 1 <= len(failed) <= most and outcomes[: len(failed)] == failed
        assert till.n_done == 10 - len(failed)
    assert failed == ["out_of_service"] * 10


def test_stale_answer_is_one_of_an_earlier_quarter_and_the_next_is_current() -> None:
    quarter = struck_quarter("stale", "view_portfolio", "read")
    tools = FaultyTools("stale", TEXTS)
    for now in range(1, quarter + 1):
        tools.open(now, 1)
        answers = [
            tools.carry_out("view_portfolio", "read", {}, lambda now=now: Done(f"of {now}"), order_id=None)  # type: ignore[misc]
            for _ in range(2)
        ]
        told = [(answer.outcome, answer.text.splitlines()[-1]) for answer in answers]
        if now < quarter or quarter == 1:
            assert told == [("ok", f"of {now}")] * 2
    assert quarter == 1 or told == [("stale", f"of {quarter - 1}"), ("ok", f"of {quarter}")]


def test_truncated_answer_says_that_it_is_cut() -> None:
    tools = struck("truncated", "view_portfolio", "read")
    done = tools.carry_out("view_portfolio", "read", {}, lambda: Done("0123456789"), order_id=None)
    assert done.outcome == "truncated" and done.text.startswith("01234\n[") and "5 characters" in done.text


def test_orders_take_an_id_only_where_tools_have_faults() -> None:
    plain, faulty = make_firm(), make_firm(tool_faults="temporary")
    schema = {tool.name: tool.parameters for tool in faulty.tools}
    assert "order_id" in schema["buy_stock"]["properties"] and "order_id" not in schema["buy_stock"]["required"]
    assert "order_id" not in schema["view_portfolio"]["properties"]
    order = {"stock": listed(plain, "low"), "amount": 1_000_000, "order_id": "a"}
    assert call(plain, "buy_stock", **order).outcome == "unexpected_argument"
    assert call(faulty, "buy_stock", **order | {"order_id": 7}).outcome == "bad_argument"
    assert call(faulty, "view_portfolio", order_id="a").outcome == "unexpected_argument"


def test_firm_books_an_order_once_whatever_the_agent_reads() -> None:
    seed = next(seed for seed in range(200) if fault_of("timeout_after_commit", "buy_stock", "trade", seed, 1))
    firm = make_firm(tool_faults="timeout_after_commit", seed=seed)
    order = {"stock": listed(firm, "low"), "amount": 1_000_000, "order_id": "a"}
    first, second = call(firm, "buy_stock", **order), call(firm, "buy_stock", **order)
    assert (first.outcome, first.committed, second.outcome, second.committed) == ("timeout", True, "ok", False)
    assert firm.ledger.holdings_usd == {order["stock"]: 1_000_000}
    ok(firm, "finish_quarter")


def test_denied_call_meets_no_fault() -> None:
    seed = next(seed for seed in range(200) if fault_of("timeout_after_commit", "buy_stock", "trade", seed, 1))
    firm = make_firm(tool_faults="timeout_after_commit", guard="enforce", seed=seed)
    denied = firm.call(ToolCall("x", "buy_stock", {"stock": listed(firm, "high"), "amount": 1_000_000}))
    assert (denied.outcome, denied.committed) == ("denied", False)


@pytest.mark.parametrize("level", LEVELS)
def test_runs_under_faults_complete_and_rebuild(level: Any, tmp_path: Path) -> None:
    treatment = Treatment("goal_switching", n_instrumental=2, n_evaluation=4, tool_faults=level)
    runs = plan("adherent", treatment, seeds=[1])
    assert sweep_runs(tmp_path, runs).complete
    outcomes = set()
    for run in runs:
        record = record_of(tmp_path, run)
        outcomes |= {c["outcome"] for line in record.of_type("turn") for c in line.get("calls", ())}
        if record.branched is None:
            rebuild(record, make_replica(run), Dialogue())
    if level not in ("none", "stale", "truncated"):
        assert outcomes & {"timeout", "unavailable", "out_of_service"}
    elif level == "none":
        assert outcomes == {"ok"}


def make_replica(run: Any) -> Any:
    from apex_env.firm import ApexFirm

    return ApexFirm(run.treatment.scenario(run.seed, run.phase_seed))


def test_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="tool_faults 'slow' is not allowed: none, timeout_before_commit"):
        Scenario(tool_faults="slow")  # type: ignore[arg-type]
    assert set(LEVELS) == {"none", "mixed", *FAULTS}
