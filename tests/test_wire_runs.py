"""Whole runs over the wire: the same trades as those of the agent in the process, by every route."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.grid import plan_runs
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig
from experiments.treatment import Treatment
from tests.path import plan, scripted, sweep_runs
from tests.peers import Peer, faults
from tests.wire import KEY_ENV, LITELLM_WARNINGS, ROUTES, config_of, scripted_brain

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

SWITCH = Treatment(setting="combined", n_instrumental=2, n_evaluation=3)
FAULTS = [
    faults.chance(faults.rate_limited(0.001, "ms"), 0.1, seed=1),
    faults.chance(faults.drop_after(0.5), 0.1, seed=2),
    faults.chance(faults.drop_before(), 0.1, seed=3),
    faults.chance(faults.overloaded(), 0.1, seed=4),
    faults.chance(faults.not_json(), 0.05, seed=5),
]


def deeds(record: Record) -> list[Any]:
    """What a run did and what came of it."""
    turns = [
        [(call["tool"], call["arguments"], call["outcome"], call["moved"], call["result"]) for call in line["calls"]]
        for line in record.of_type("turn")
        if line["by"] == "model"
    ]
    return [turns, [line["state"] for line in record.of_type("closed")], record.outcome]


def played(root: Path, model: ModelConfig) -> dict[tuple[bool, str], list[Any]]:
    """Deeds of the phase, the run that branches from it and its baseline."""
    sweep_runs(root, plan(model, SWITCH, seeds=(1,), n_phases=1))
    found = [read_record(path) for path in root.rglob("*.jsonl")]
    by_kind = {
        (record.header["is_phase"], record.header["config"]["treatment"]["setting"]): deeds(record) for record in found
    }
    assert len(by_kind) == len(found) == 3
    return by_kind


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, str], list[Any]]:
    return played(tmp_path_factory.mktemp("in_process"), scripted("adherent"))


@pytest.mark.parametrize("route", ROUTES)
def test_runs_over_the_wire_hold_the_trades_of_the_agent_in_the_process(
    route: str, tmp_path: Path, in_process: dict[tuple[bool, str], list[Any]]
) -> None:
    with Peer(scripted_brain("adherent", seed=1)) as peer:
        over_the_wire = played(tmp_path, config_of(route, peer, name="adherent"))
    assert over_the_wire == in_process
    assert peer.log.rejections == []
    assert peer.log.asked_after_answer() == []
    assert peer.log.prefix_share() == 1.0


@pytest.mark.parametrize("route", ROUTES)
def test_runs_through_a_failing_service_are_the_same_runs(
    route: str, tmp_path: Path, in_process: dict[tuple[bool, str], list[Any]]
) -> None:
    with Peer(scripted_brain("adherent", seed=1), faults=FAULTS) as peer:
        over_the_wire = played(tmp_path, config_of(route, peer, name="adherent"))
    assert over_the_wire == in_process
    assert peer.log.rejections == []
    assert peer.log.asked_after_answer() == []
    assert sum(peer.log.faults.values()) > 0
    recorded = [
        attempt for path in tmp_path.rglob("*.jsonl") for line in read_record(path).of_type("turn")
        for attempt in line.get("attempts", ())
    ]  # fmt: skip
    assert len(recorded) == sum(peer.log.faults.values())


THINKING: dict[str, dict[str, Any]] = {
    "chat": {},
    "responses": {"reasoning_effort": "low"},
    "anthropic": {"thinking": "enabled", "thinking_budget_tokens": 1024},
}


@pytest.mark.parametrize("route", THINKING)
def test_run_that_a_dead_service_ended_goes_on_where_it_stopped_with_its_thinking(
    route: str, tmp_path: Path, in_process: dict[tuple[bool, str], list[Any]]
) -> None:
    dead = faults.when(faults.unavailable(), lambda arrival: arrival.index >= 4)
    with Peer(scripted_brain("adherent", seed=1), faults=[dead]) as peer:
        model = config_of(route, peer, name="adherent", max_tries=2, **THINKING[route])
        report = sweep_runs(tmp_path, plan(model, SWITCH, seeds=(1,), n_phases=1))
        assert report.outcomes["completed"] == 0 and not report.complete
        peer.change(faults=[])
        over_the_wire = played(tmp_path, model)
    assert over_the_wire == in_process
    assert peer.log.rejections == []
    assert peer.log.answered_twice() == []
    assert peer.log.prefix_share() == 1.0
    turns = [line for path in tmp_path.rglob("*.jsonl") for line in read_record(path).of_type("turn")]
    assert all(("native" in line["message"]) == (route != "chat") for line in turns if line["by"] == "model")


def test_wrong_key_stops_the_sweep_at_once(tmp_path: Path) -> None:
    with Peer(scripted_brain("adherent", seed=1)) as peer:
        peer.change(api_keys=frozenset({"sk-another"}))
        model = config_of("chat", peer, name="adherent")
        report = sweep_runs(tmp_path, plan(model, SWITCH, seeds=(1, 2, 3), n_phases=3), concurrency=1)
    assert KEY_ENV in report.stopped
    assert len(peer.log) == 1


def test_retired_model_ends_its_own_runs_and_no_others(tmp_path: Path) -> None:
    with Peer(scripted_brain("idle", seed=1)) as peer:
        peer.change(models=frozenset({"alive"}))
        gone = config_of("chat", peer, name="gone")
        alive = replace(gone, name="alive", model="alive")
        treatment = Treatment(n_evaluation=2)
        report = sweep_runs(tmp_path, plan_runs([gone, alive], [treatment], seeds=(1, 2), n_phases=1))
    assert report.outcomes == {"provider_error": 2, "completed": 2}
    assert not report.stopped


def test_context_overflow_ends_a_run_as_what_it_is(tmp_path: Path) -> None:
    with Peer(scripted_brain("adherent", seed=1)) as peer:
        model = config_of("anthropic", peer, name="adherent")
        full = faults.when(faults.context_too_long(), lambda arrival: len(arrival.body["messages"]) > 9)
        peer.change(faults=[full])
        report = sweep_runs(tmp_path, plan(model, Treatment(n_evaluation=20), seeds=(1,), n_phases=1))
    assert report.outcomes == {"context_limit": 1}
    (record,) = [read_record(path) for path in tmp_path.rglob("*.jsonl")]
    assert len(list(record.of_type("closed"))) >= 2
