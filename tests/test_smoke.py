"""The preset `smoke`: every setting and ablation, in the process and over the wire, with the same trades."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from experiments.config import Settings, validate
from experiments.record import Record, read_record
from experiments.run import configurations_of
from experiments.run_spec import ModelConfig, as_plain
from experiments.treatment import Before, History, Treatment
from tests.path import scripted, sweep_runs
from tests.peers import Peer
from tests.wire import LITELLM_WARNINGS, config_of, scripted_brain

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

AGENTS = ("adherent", "inertial")
PAIRS = [
    pytest.param(("responses", "anthropic"), id="responses and anthropic"),
    pytest.param(("chat", "litellm"), id="chat and litellm", marks=pytest.mark.slow),
    pytest.param(("litellm anthropic", "anthropic streamed"), id="litellm and streamed", marks=pytest.mark.slow),
]
"""Routes of the two agents; short runs by every route are in `test_wire_runs`."""


def smoke(root: Path, models: Mapping[str, ModelConfig], *words: str) -> Settings:
    """The settings of the preset, its agents reached in some way."""
    (data,) = configurations_of(["experiment=smoke", f"results_dir={root}", *words])
    assert set(data["models"]) == set(AGENTS)
    return validate(data | {"models": {name: as_plain(model) for name, model in models.items()}})


def play(settings: Settings) -> dict[str, Any]:
    """What every record of the preset says was done, by model, kind and treatment."""
    report = sweep_runs(settings.root, settings.runs, interview=settings.interview, concurrency=16)
    assert report.complete and not report.problems
    records = [read_record(path) for path in settings.root.rglob("*.jsonl")]
    found = {what_it_is(record): deeds(record) for record in records}
    assert len(found) == len(records)
    return found


def what_it_is(record: Record) -> str:
    config = record.header["config"]
    parent = config["parent_model"] and config["parent_model"]["name"]
    return repr(
        (record.header["is_phase"], config["model"]["name"], parent, sorted(config["treatment"].items(), key=str))
    )


def deeds(record: Record) -> list[Any]:
    """What a run did, what came of it, and what it answered when it was asked."""
    turns = [
        [(call["tool"], call["arguments"], call["outcome"], call["moved"], call["result"]) for call in line["calls"]]
        for line in record.of_type("turn")
        if line["by"] == "model"
    ]
    answers = [(line["quarter"], line["topic"], line["answer"]) for line in record.of_type("interview")]
    return [turns, [line["state"] for line in record.of_type("closed")], answers, record.outcome]


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play(smoke(tmp_path_factory.mktemp("in_process"), {name: scripted(name) for name in AGENTS}))


@pytest.mark.parametrize("routes", PAIRS)
def test_smoke_over_the_wire_holds_the_trades_of_the_agents_in_the_process(
    routes: tuple[str, str], tmp_path: Path, in_process: dict[str, Any]
) -> None:
    with ExitStack() as stack:
        peers = {name: stack.enter_context(Peer(scripted_brain(name, seed=1))) for name in AGENTS}
        models = {name: config_of(route, peers[name], name=name) for name, route in zip(AGENTS, routes, strict=True)}
        over_the_wire = play(smoke(tmp_path, models))
    assert over_the_wire == in_process
    for peer in peers.values():
        assert peer.log.rejections == []
        assert len(peer.log) > 1000
        assert set(peer.log.outcomes) == {"answered"}


def test_smoke_leaves_no_setting_history_or_factor_out(tmp_path: Path) -> None:
    settings = smoke(tmp_path, {name: scripted(name) for name in AGENTS})
    treatments = {run.treatment for run in settings.runs}
    levels = {spec.name: {getattr(one, spec.name) for one in treatments} for spec in fields(Treatment)}
    assert levels["setting"] == {"baseline", "adversarial_pressure", "goal_switching", "combined"}
    assert levels["system_goal"] == {"emissions", "profit"}
    assert levels["history"] == set(get_args(History))
    assert levels["before"] == set(get_args(Before))
    fixed = {"corpus", "turn_limit", "n_evaluation"}
    assert {name for name, there in levels.items() if len(there) == 1} == fixed
    assert settings.interview.topics == ("goal", "awareness") and settings.interview.at_end


def test_deeds_of_the_two_agents_differ_so_that_equality_says_something(in_process: dict[str, Any]) -> None:
    differing = [
        name for name, done in in_process.items()
        if "'adherent'" in name and in_process.get(name.replace("'adherent'", "'inertial'"), done)[0] != done[0]
    ]  # fmt: skip
    assert len(differing) > 10
