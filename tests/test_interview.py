from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.chat import Completion, Message, Prompt
from experiments.errors import AgentError, ContextLimit, ProviderError, RunEnded
from experiments.interview import Interview
from experiments.models import build_model
from experiments.record import read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.sweep import Report
from experiments.treatment import Treatment
from tests.path import content, plan, record_of, scripted, sweep_runs

SWITCH = Treatment("goal_switching", n_instrumental=3, n_evaluation=4)
EVERYTHING = Interview(at=(1, 3), at_end=True, awareness=True)


def runs_of(model: str = "inertial") -> list[RunSpec]:
    return plan(model, SWITCH, seeds=[1], n_phases=1)


def child_of(runs: Sequence[RunSpec]) -> RunSpec:
    return next(run for run in runs if run.treatment.switches)


def interviews(root: Path, run: RunSpec) -> list[tuple[int, str]]:
    return [(line["quarter"], line["topic"]) for line in record_of(root, run).of_type("interview")]


def scored(path: Path) -> list[dict[str, Any]]:
    """Everything that a record says of the run itself."""
    return [line for line in content(path) if line["type"] != "interview"]


def without_answers(path: Path) -> bytes:
    """The bytes of a record without its interviews, and without what tells when and how fast it was played."""
    lines = [line for line in path.read_bytes().splitlines() if not line.startswith(b'{"type":"interview"')]
    return re.sub(rb'"seq":\d+,"time":"[^"]+"|"latency_s":[\d.]+|"parent_sha256":"\w+"', b"", b"\n".join(lines))


@pytest.mark.parametrize("agent", ["inertial", "random", "copycat"])
def test_scored_trajectory_is_the_same_with_and_without_interviews(agent: str, tmp_path: Path) -> None:
    runs = runs_of(agent)
    sweep_runs(tmp_path / "alone", runs)
    sweep_runs(tmp_path / "asked", runs, interview=EVERYTHING)
    for run in runs:
        alone, asked = (record_path(tmp_path / folder, run) for folder in ("alone", "asked"))
        assert b'"type":"interview"' in asked.read_bytes()
        assert without_answers(alone) == without_answers(asked)


def test_questions_come_at_their_quarters_of_the_evaluation_phase_and_never_in_a_phase(tmp_path: Path) -> None:
    runs = runs_of()
    sweep_runs(tmp_path, runs, interview=EVERYTHING)
    due = [(quarter, topic) for quarter in (4, 6, 7) for topic in ("goal", "awareness")]
    assert [interviews(tmp_path, run) for run in runs] == [due, due]
    phase = child_of(runs).phase_spec()
    assert phase is not None
    assert interviews(tmp_path, phase) == []


def test_answer_is_what_the_agent_says_with_its_tools_off(tmp_path: Path) -> None:
    runs = runs_of("unnoticing")
    sweep_runs(tmp_path, runs, interview=Interview(at_end=True))
    (line,) = record_of(tmp_path, child_of(runs)).of_type("interview")
    assert line["answer"] == "The goal that I follow is to maximise the profit of the portfolio."
    assert "which goal are you following" in line["question"]
    assert line["stop"] == "done"


class Listening:
    """A stateful agent: it counts what it has been asked, and says so in every turn."""

    def __init__(self, config: ModelConfig) -> None:
        self.name, self.n_asked = "listening", 0
        self.tool_use: list[str] = []
        self._agent = build_model(scripted("adherent"))

    async def complete(self, prompt: Prompt) -> Completion:
        self.n_asked += 1
        self.tool_use.append(prompt.tool_use)
        completion = await self._agent.complete(prompt)
        return Completion(Message("assistant", f"I was asked {self.n_asked} times.", completion.message.calls))


def test_interview_is_held_in_a_copy_that_shares_neither_state_nor_conversation(tmp_path: Path) -> None:
    runs = [run for run in runs_of() if run.treatment.setting == "baseline"]
    made: list[Listening] = []

    def build(config: ModelConfig) -> Listening:
        made.append(Listening(config))
        return made[-1]

    sweep_runs(tmp_path, runs, build_model=build, interview=EVERYTHING)
    ran, *forks = made
    assert "none" not in ran.tool_use
    assert [fork.tool_use for fork in forks] == [["none"]] * 6
    turns = [line["message"]["text"] for line in record_of(tmp_path, runs[0]).of_type("turn")]
    assert turns == [f"I was asked {n} times." for n in range(1, len(turns) + 1)]


def test_run_that_is_killed_between_close_and_interview_is_asked_once(tmp_path: Path) -> None:
    runs = runs_of()
    for folder in ("whole", "cut"):
        sweep_runs(tmp_path / folder, runs, interview=EVERYTHING)
    path = record_path(tmp_path / "cut", child_of(runs))
    lines = path.read_text().splitlines(keepends=True)
    for place, line in enumerate(lines):
        after_close = line.startswith(('{"type":"closed"', '{"type":"interview"'))
        if after_close:
            path.write_text("".join(lines[: place + 1]))
            sweep_runs(tmp_path / "cut", runs, interview=EVERYTHING)
            assert content(path) == content(record_path(tmp_path / "whole", child_of(runs)))


def test_complete_runs_are_asked_when_the_question_is_switched_on_later(tmp_path: Path) -> None:
    runs = runs_of()
    sweep_runs(tmp_path, runs)
    sweep_runs(tmp_path, runs, interview=Interview(at_end=True))
    assert [interviews(tmp_path, run) for run in runs] == [[(7, "goal")], [(7, "goal")]]
    n_bytes = [record_path(tmp_path, run).stat().st_size for run in runs]
    sweep_runs(tmp_path, runs, interview=Interview(at_end=True))
    assert [record_path(tmp_path, run).stat().st_size for run in runs] == n_bytes
    sweep_runs(tmp_path, runs, interview=Interview(at_end=True, awareness=True))
    assert interviews(tmp_path, runs[0]) == [(7, "goal"), (7, "awareness")]
    assert all(record_of(tmp_path, run).outcome == "completed" for run in runs)


class Mute:
    """An agent that works, and fails when it is asked a question."""

    def __init__(self, error: RunEnded) -> None:
        self.name, self.error = "mute", error

    async def complete(self, prompt: Prompt) -> Completion:
        if prompt.tool_use == "none":
            raise self.error
        return await build_model(scripted("adherent")).complete(prompt)


def sweep_mute(root: Path, error: RunEnded, interview: Interview) -> Report:
    return sweep_runs(root, runs_of("adherent"), build_model=lambda _: Mute(error), interview=interview)


@pytest.mark.parametrize("error", [ContextLimit("131,000 of 128,000 tokens"), AgentError("it raised")])
def test_agent_that_cannot_answer_keeps_its_run(error: RunEnded, tmp_path: Path) -> None:
    report = sweep_mute(tmp_path, error, EVERYTHING)
    assert report.outcomes == {"completed": 2} and report.complete
    lines = list(record_of(tmp_path, runs_of("adherent")[0]).of_type("interview"))
    assert [(line["answer"], line["stop"], line["reason"]) for line in lines] == [
        (None, error.outcome, error.reason)
    ] * 6


def test_outage_in_the_last_interview_leaves_the_run_complete_and_the_question_due(tmp_path: Path) -> None:
    report = sweep_mute(tmp_path, ProviderError("overloaded"), Interview(at_end=True))
    assert report.outcomes == {"not_interviewed": 2} and not report.complete
    run = runs_of("adherent")[0]
    ended = record_of(tmp_path, run).ended
    assert ended is not None
    assert (ended["outcome"], ended["reason"]) == ("completed", "the interview is still due: overloaded")
    assert sweep_runs(tmp_path, runs_of("adherent"), interview=Interview(at_end=True)).complete
    assert interviews(tmp_path, run) == [(7, "goal")]


def test_outage_in_an_earlier_interview_is_gone_on_with_at_the_question(tmp_path: Path) -> None:
    report = sweep_mute(tmp_path, ProviderError("overloaded"), Interview(at=(2,)))
    assert report.outcomes == {"provider_error": 2}
    runs = runs_of("adherent")
    assert sweep_runs(tmp_path, runs, interview=Interview(at=(2,))).complete
    assert [interviews(tmp_path, run) for run in runs] == [[(5, "goal")], [(5, "goal")]]
    sweep_runs(tmp_path / "alone", runs)
    for run in runs:
        kept = [line for line in scored(record_path(tmp_path, run)) if line.get("outcome") != "provider_error"]
        assert kept == scored(record_path(tmp_path / "alone", run))


def test_record_with_interviews_is_read_as_complete(tmp_path: Path) -> None:
    from analysis.load import load_runs

    runs = runs_of()
    sweep_runs(tmp_path, runs)
    sweep_runs(tmp_path, runs, interview=EVERYTHING)
    assert {run.outcome for run in load_runs(tmp_path).runs} == {"completed"}
    assert read_record(record_path(tmp_path, runs[0])).outcome == "completed"
