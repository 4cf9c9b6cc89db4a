from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from experiments.chat import Message
from experiments.environments import build_firm
from experiments.errors import ProviderError, RecordError, StaleContract, Tampered
from experiments.models import build_model
from experiments.rebuild import rebuild
from experiments.record import read_record
from experiments.rollout import Dialogue
from experiments.run_spec import RunSpec
from experiments.runner import Job, as_on_disk, play, record_path
from experiments.treatment import Treatment
from tests.path import NoWatch, Replies, content, edit_line, finish, plan, record_of, say, scripted, sweep_runs


def baseline(**treatment: Any) -> RunSpec:
    return RunSpec(scripted("random"), Treatment(**({"n_evaluation": 5} | treatment)), 3)


def play_spec(root: Path, spec: RunSpec, agent: Any = None) -> str:
    return asyncio.run(play(Job(spec, root, agent or build_model(spec.model), NoWatch(), sync="end")))


def rebuilt_dialogue(root: Path, spec: RunSpec) -> Dialogue:
    dialogue = Dialogue()
    record = read_record(record_path(root, spec))
    rebuild(record, build_firm(as_on_disk(spec, record)), dialogue)
    return dialogue


def test_rebuilt_conversation_is_the_one_that_the_model_saw(tmp_path: Path) -> None:
    spec = baseline()
    agent = Replies(
        say("hm", stop="done"), say("", ("view_portfolio", {}), ("buy_stock", "{")), *[say("", ("nothing", {}))] * 3
    )
    play_spec(tmp_path, spec, agent)
    rebuilt = rebuilt_dialogue(tmp_path, spec).messages
    assert rebuilt[: len(agent.prompts[-1])] == agent.prompts[-1]


def test_run_cut_after_any_line_goes_on_to_the_same_record(tmp_path: Path) -> None:
    spec = baseline(n_evaluation=3, turn_limit=4)
    play_spec(tmp_path / "whole", spec)
    whole = record_path(tmp_path / "whole", spec).read_text().splitlines(keepends=True)
    assert len(whole) > 8
    for n_lines in range(2, len(whole)):
        root = tmp_path / f"cut-{n_lines}"
        cut = record_path(root, spec)
        cut.parent.mkdir(parents=True)
        cut.write_text("".join(whole[:n_lines]) + whole[n_lines][:10])
        play_spec(root, spec)
        assert content(cut) == content(record_path(tmp_path / "whole", spec)), n_lines


def test_outage_ends_a_run_and_the_next_attempt_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    spec = baseline()
    assert play_spec(tmp_path, spec, Replies(finish(), finish(), ProviderError("down"))) == "provider_error"
    agent = Replies()
    assert play_spec(tmp_path, spec, agent) == "completed"
    assert len(agent.prompts) == 3
    record = read_record(record_path(tmp_path, spec))
    assert [line["quarter"] for line in record.of_type("resumed")] == [3]
    assert [line["quarter"] for line in record.of_type("closed")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("ended", ["completed", "refused"])
def test_finished_run_is_not_played_again(tmp_path: Path, ended: str) -> None:
    spec = baseline()
    play_spec(tmp_path, spec, Replies(*([say("no", stop="refusal")] if ended == "refused" else [])))
    before = record_path(tmp_path, spec).read_bytes()
    agent = Replies()
    assert play_spec(tmp_path, spec, agent) == ended
    assert not agent.prompts
    assert record_path(tmp_path, spec).read_bytes() == before


def first_trade(path: Path) -> int:
    for number, line in enumerate(read_record(path).lines, 1):
        if any(call["tool"] == "buy_stock" and call["committed"] for call in line.get("calls", ())):
            return number
    raise AssertionError("no trade in the record")


def change_amount(line: dict[str, Any]) -> None:
    call = next(call for call in line["calls"] if call["tool"] == "buy_stock" and call["committed"])
    call["arguments"]["amount"] = 1.0


def change_result(line: dict[str, Any]) -> None:
    line["calls"][0]["result"] += " Really."


@pytest.mark.parametrize("change", [change_amount, change_result])
def test_changed_call_is_named_with_file_and_line(tmp_path: Path, change: Any) -> None:
    spec = RunSpec(scripted("adherent"), Treatment(n_evaluation=3), 1)
    play_spec(tmp_path, spec)
    path = record_path(tmp_path, spec)
    number = first_trade(path)
    edit_line(path, number, change)
    with pytest.raises(Tampered, match=rf"line {number}: the record was changed") as caught:
        rebuilt_dialogue(tmp_path, spec)
    assert str(path) in str(caught.value)


def test_changed_books_are_named(tmp_path: Path) -> None:
    spec = baseline()
    play_spec(tmp_path, spec)
    path = record_path(tmp_path, spec)
    number = next(n for n, line in enumerate(read_record(path).lines, 1) if line["type"] == "closed")
    edit_line(path, number, lambda line: line["state"].update(cash_usd=1.0))
    with pytest.raises(Tampered, match=rf"line {number}: .*books, cash_usd: recorded 1.0"):
        rebuilt_dialogue(tmp_path, spec)


def test_changed_briefing_is_named(tmp_path: Path) -> None:
    spec = baseline()
    play_spec(tmp_path, spec)
    path = record_path(tmp_path, spec)
    edit_line(path, 2, lambda line: line.update(text="Quarter 1"))
    with pytest.raises(Tampered, match="line 2: .*text: recorded 'Quarter 1'"):
        rebuilt_dialogue(tmp_path, spec)


def test_record_of_other_settings_is_refused_with_the_difference(tmp_path: Path) -> None:
    spec = baseline()
    play_spec(tmp_path, spec)
    edit_line(record_path(tmp_path, spec), 1, lambda line: line["identity"]["treatment"].update(turn_limit=7))
    with pytest.raises(RecordError, match="treatment.turn_limit: there 7, asked None"):
        play_spec(tmp_path, spec)


def switching(history: str = "own", n_instrumental: int = 4, **fields: Any) -> list[RunSpec]:
    treatment = Treatment("goal_switching", n_instrumental=n_instrumental, n_evaluation=3, history=history, **fields)
    return [run for run in plan("adherent", treatment, seeds=[1, 2], n_phases=1) if run.treatment.switches]


def phase_messages(root: Path, run: RunSpec) -> list[Message]:
    phase = run.phase_spec()
    assert phase is not None
    return rebuilt_dialogue(root, phase).messages


def test_runs_of_one_phase_branch_from_its_books_and_show_its_conversation(tmp_path: Path) -> None:
    first, second = switching()
    sweep_runs(tmp_path, [first, second])
    assert first.cluster_id == second.cluster_id
    opening = [record_of(tmp_path, run).branched["opening"] for run in (first, second)]  # type: ignore[index]
    assert opening[0] == opening[1]
    assert opening[0]["books"]["quarter"] == 4
    assert opening[0]["books"]["holdings_usd"]
    states = [next(record_of(tmp_path, run).of_type("opened"))["state"] for run in (first, second)]
    assert states[0]["income_usd"] != states[1]["income_usd"]


def test_longer_phase_goes_on_with_the_shorter_one(tmp_path: Path) -> None:
    sweep_runs(tmp_path, switching(n_instrumental=2))
    (run, _) = switching(n_instrumental=2)
    short = phase_messages(tmp_path, run)
    sweep_runs(tmp_path, switching(n_instrumental=5))
    assert phase_messages(tmp_path, run)[: len(short)] == short
    assert len(list((tmp_path / "phases").rglob("*.jsonl"))) == 1


def test_shorter_phase_is_cut_out_of_the_longer_one(tmp_path: Path) -> None:
    sweep_runs(tmp_path / "both", switching(n_instrumental=5))
    report = sweep_runs(tmp_path / "both", switching(n_instrumental=2))
    assert report.complete
    sweep_runs(tmp_path / "short", switching(n_instrumental=2))
    for run in switching(n_instrumental=2):
        assert content(record_path(tmp_path / "both", run)) == content(record_path(tmp_path / "short", run))


def test_phase_cut_after_any_line_goes_on_to_the_same_record(tmp_path: Path) -> None:
    runs = switching(n_instrumental=2)
    phase = runs[0].phase_spec()
    assert phase is not None
    sweep_runs(tmp_path / "whole", runs)
    whole = record_path(tmp_path / "whole", phase).read_text().splitlines(keepends=True)
    for n_lines in range(1, len(whole)):
        cut = record_path(tmp_path / str(n_lines), phase)
        cut.parent.mkdir(parents=True)
        cut.write_text("".join(whole[:n_lines]))
        assert sweep_runs(tmp_path / str(n_lines), runs).complete
        assert content(cut) == content(record_path(tmp_path / "whole", phase)), n_lines


def test_emptied_history_keeps_the_portfolio_and_shows_nothing(tmp_path: Path) -> None:
    own, emptied = switching()[0], switching("none")[0]
    sweep_runs(tmp_path, [own, emptied])
    branched = [record_of(tmp_path, run).branched for run in (own, emptied)]
    assert branched[0]["opening"] == branched[1]["opening"]  # type: ignore[index]
    assert branched[0]["history_sha256"] != branched[1]["history_sha256"]  # type: ignore[index]


def test_child_of_a_changed_parent_is_refused_when_it_has_to_go_on(tmp_path: Path) -> None:
    run = switching()[0]
    sweep_runs(tmp_path, [run])
    child = record_path(tmp_path, run)
    child.write_text("".join(child.read_text().splitlines(keepends=True)[:5]))
    edit_line(child, 2, lambda line: line.update(history_sha256="0" * 64))
    report = sweep_runs(tmp_path, [run])
    assert not report.complete
    assert "is not what it was" in report.problems[0]


def test_finished_child_is_read_without_its_parent(tmp_path: Path) -> None:
    from analysis.load import load_runs

    run = switching()[0]
    sweep_runs(tmp_path, [run])
    phase = run.phase_spec()
    assert phase is not None
    record_path(tmp_path, phase).unlink()
    (loaded,) = load_runs(tmp_path, cache=False).runs
    assert [books.quarter for books in loaded.books] == [4, 5, 6, 7]


def test_run_decided_under_another_contract_is_stale_before_anything_else_is_looked_at(tmp_path: Path) -> None:
    spec = baseline()
    play_spec(tmp_path, spec)
    path = record_path(tmp_path, spec)

    def narrow(line: Any) -> None:
        line["calls"][0]["decision"]["policy_version"] = "apex-contract-1/emissions@1/0123456789ab"
        line["calls"][0]["result"] = "something else"

    number = next(n for n, line in enumerate(read_record(path).lines, 1) if line.get("calls"))
    edit_line(path, number, narrow)
    with pytest.raises(StaleContract, match=rf"line {number}: stale_goal_version: decided by .*0123456789ab"):
        rebuilt_dialogue(tmp_path, spec)


def test_run_from_before_there_was_a_guard_is_gone_on_with(tmp_path: Path) -> None:
    spec = baseline()
    play_spec(tmp_path, spec)
    path = record_path(tmp_path, spec)

    def undecided(line: Any) -> None:
        for call in line["calls"]:
            call["decision"] = {"allowed": True, "reason": "allowed", "policy_version": "none"}

    for number, line in enumerate(read_record(path).lines, 1):
        if line.get("calls"):
            edit_line(path, number, undecided)
    assert rebuilt_dialogue(tmp_path, spec).messages
