"""Phases are shared: what a service is asked in a whole experiment is what `apex plan` says, request by request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.config import Settings, validate
from experiments.plan import as_json
from experiments.planning import make_plan
from experiments.run import configurations_of
from experiments.run_spec import ModelConfig, as_plain
from tests.path import sweep_runs
from tests.peers import Call, Peer, Reply, RequestView
from tests.peers import Settings as PeerSettings
from tests.wire import config_of


def finishing(view: RequestView) -> Reply:
    """Closes every quarter in one turn, and answers questions."""
    choice = view.arrival.body.get("tool_choice")
    return Reply("Nothing is to be done.") if choice == "none" else Reply("Done.", calls=(Call("finish_quarter", {}),))


def configuration(root: Path, models: Sequence[ModelConfig], *words: str) -> dict[str, Any]:
    (data,) = configurations_of([*words, f"results_dir={root}"])
    return data | {"models": {model.name: as_plain(model) for model in models}, "sync": "end"}


def play(settings: Settings) -> None:
    report = sweep_runs(settings.root, settings.runs, interview=settings.interview, concurrency=16)
    assert report.complete and not report.problems


def asked_and_planned(root: Path, words: Sequence[str], labels: Sequence[str]) -> tuple[int, int, dict[str, Any]]:
    """Requests that the service saw and those that the plan named, once it knows how many turns a quarter takes."""
    with Peer(finishing, settings=PeerSettings(cache="off", keep_bodies=False)) as peer:
        models = [config_of("chat", peer, name=label, seed=place) for place, label in enumerate(labels)]
        measured = configuration(
            root, models, "name=measured", "treatment=baseline", "treatment.n_evaluation=1", "seeds=1"
        )
        play(validate(measured))
        n_before = len(peer.log)
        data = configuration(root, models, *words)
        plan = as_json(make_plan([data]))
        play(validate(data))
        n_asked = len(peer.log) - n_before
        assert as_json(make_plan([data]))["total"]["n_turns"] == 0
        assert set(peer.log.outcomes) == {"answered"}
    return n_asked, plan["total"]["n_turns"], plan


def parts(plan: dict[str, Any], key: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in plan["rows"]:
        found[row["part"]] = found.get(row["part"], 0) + row[key]
    return found


def test_grid_of_the_paper_asks_what_its_plan_says(tmp_path: Path) -> None:
    n_asked, n_planned, plan = asked_and_planned(
        tmp_path, ["experiment=paper", "trial=3", "seeds=2", "n_phases=1"], ["one", "two"]
    )
    assert n_asked == n_planned
    # Cut to 3 quarters, the lengths are 2 and 3, on one phase of 3 quarters a model.
    assert parts(plan, "n_planned")["instrumental phases"] == 2
    assert parts(plan, "n_quarters")["instrumental phases"] == 6


def test_summaries_are_asked_for_once_a_run_as_planned(tmp_path: Path) -> None:
    words = [
        "experiment=summarised",
        "trial=2",
        "seeds=3",
        "n_phases=2",
        "interview.at=[1,2]",
        "interview.awareness=true",
    ]
    n_asked, n_planned, plan = asked_and_planned(tmp_path, words, ["one"])
    assert n_asked == n_planned
    # 2 directions x 3 seeds, each own, summarised and their common baseline, 2 quarters and 4 questions; 2 phases of 2
    # quarters a direction; 6 summaries.
    assert n_planned == 2 * 3 * 3 * (2 + 4) + 2 * 2 * 2 + 6


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_whole_grid_of_the_paper_asks_what_its_plan_says(tmp_path: Path) -> None:
    n_asked, n_planned, plan = asked_and_planned(tmp_path, ["experiment=paper"], ["one", "two"])
    assert n_asked == n_planned
    assert parts(plan, "n_planned")["instrumental phases"] == 2
    assert parts(plan, "n_quarters")["instrumental phases"] == 2 * 64
