"""Shown histories over the wire: valid for every provider, whichever one the parent was recorded with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apex_env.texts import load_corpus
from experiments.grid import plan_runs
from experiments.models.rendering import CLOSED
from experiments.parents import lent_records
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.tokens import count_text
from experiments.treatment import History, Treatment
from tests.path import content, plan, record_of, scripted, sweep_runs
from tests.peers import Peer, Reply, RequestView, Settings
from tests.test_imported import parent_value, write_parent
from tests.wire import LITELLM_WARNINGS, config_of, scripted_brain

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

SWITCH = Treatment("combined", n_instrumental=4, n_evaluation=2)
THINKING: Mapping[str, dict[str, Any]] = {
    "responses": {"reasoning_effort": "low"},
    "anthropic": {"thinking": "enabled", "thinking_budget_tokens": 1024},
    "chat": {},
    "litellm": {},
    "litellm anthropic": {},
}
PAIRS = [
    ("anthropic", "responses"),
    ("anthropic", "chat"),
    ("anthropic", "litellm"),
    ("responses", "anthropic"),
    ("responses", "litellm anthropic"),
    ("chat", "anthropic"),
]
"""Route of the parent, and of the model that goes on from it."""


def trades(record: Record) -> list[Any]:
    return [line["state"] for line in record.of_type("closed")]


def model_of(route: str, peer: Peer, name: str) -> ModelConfig:
    return config_of(route, peer, name=name, **THINKING[route])


def child_of(runs: list[RunSpec]) -> RunSpec:
    return next(run for run in runs if run.treatment.switches)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=[" to ".join(pair) for pair in PAIRS])
def test_borrowed_conversation_keeps_text_calls_and_results_and_no_foreign_thinking(
    theirs: str, ours: str, tmp_path: Path
) -> None:
    seen: list[RequestView] = []
    act = scripted_brain("adherent", seed=1)

    async def brain(view: RequestView) -> Reply:
        seen.append(view)
        return await act(view)  # type: ignore[no-any-return]

    treatment = Treatment("goal_switching", n_instrumental=3, n_evaluation=2, history="borrowed", parent="lender")
    with Peer(scripted_brain("inertial", seed=1)) as lending, Peer(brain) as borrowing:
        lender, borrower = model_of(theirs, lending, "lender"), model_of(ours, borrowing, "borrower")
        runs = plan_runs([borrower], [treatment], seeds=[1], n_phases=1, parents={"lender": lender})
        assert sweep_runs(tmp_path, [child_of(runs)]).complete
    assert lending.log.rejections == [] and borrowing.log.rejections == []
    phase = child_of(runs).phase_spec()
    assert phase is not None
    parent = [line for line in read_record(record_path(tmp_path, phase)).of_type("turn") if line["by"] == "model"]
    assert all(("native" in line["message"]) == (theirs in ("anthropic", "responses")) for line in parent)
    shown = [message for message in seen[0].messages if message.role in ("assistant", "tool")]
    assert [message.n_thinking for message in shown] == [0] * len(shown)
    # With a manual budget of thinking, Anthropic takes a turn without thinking only if the model closed it in words.
    spoken = [message.text for message in shown if message.role == "assistant" and message.text != CLOSED]
    assert spoken == [line["message"]["text"] for line in parent]
    calls = [(call.id, call.name) for message in shown for call in message.calls]
    assert calls == [(call["id"], call["tool"]) for line in parent for call in line["calls"]]
    results = [message.text for message in shown if message.role == "tool"]
    assert results == [call["result"] for line in parent for call in line["calls"]]


@pytest.mark.parametrize("route", ["responses", "chat", "anthropic", "litellm", "litellm anthropic"])
def test_imported_conversation_is_valid_for_every_provider(route: str, tmp_path: Path) -> None:
    imported = write_parent(tmp_path / "imported", parent_value())
    treatment = Treatment("goal_switching", n_instrumental=8, n_evaluation=2, history="borrowed", parent=str(imported))
    named, lent = lent_records([treatment], load_corpus())
    deeds = []
    with Peer(scripted_brain("adherent", seed=1), settings=Settings(roles="alternate")) as peer:
        for model in (config_of(route, peer, name="adherent"), scripted("adherent")):
            runs = plan_runs([model], named, seeds=[1], n_phases=1, lent=lent)
            assert sweep_runs(tmp_path, [child_of(runs)]).complete
            deeds.append(trades(record_of(tmp_path, child_of(runs))))
    assert peer.log.rejections == []
    assert deeds[0] == deeds[1]


@pytest.mark.parametrize("route", ["responses", "chat", "anthropic"])
def test_every_history_is_matched_to_the_usage_that_the_provider_reported(route: str, tmp_path: Path) -> None:
    kinds: tuple[History, ...] = ("repeated_token", "random_strings", "random_sentences")
    openings = []
    with Peer(scripted_brain("adherent", seed=1), settings=Settings(roles="alternate")) as peer:
        model = model_of(route, peer, "adherent")
        for kind in kinds:
            treatment = Treatment("combined", n_instrumental=8, n_evaluation=1, history=kind)
            runs = plan(model, treatment, seeds=[1], n_phases=1)
            assert sweep_runs(tmp_path, [child_of(runs)]).complete
            branched = record_of(tmp_path, child_of(runs)).branched
            assert branched is not None
            openings.append(branched["opening"])
            recipe = branched["recipe"]
            assert recipe["target_basis"] == "usage reported by the provider"
            assert recipe["target_tokens"] == reported_tokens(tmp_path, child_of(runs))
            off = recipe["shown_tokens"] - recipe["target_tokens"]
            assert recipe["difference_frac"] == pytest.approx(off / recipe["target_tokens"], abs=1e-6)
            within = {
                "repeated_token": 0.01 * recipe["target_tokens"],
                "random_strings": max(count_text(f" {word}") for word in recipe.get("text", "").split(" ")),
                "random_sentences": count_text(recipe.get("sentence", "") + " "),
            }[kind]
            assert abs(off) <= within
    assert peer.log.rejections == []
    assert openings[0] == openings[1] == openings[2]


def reported_tokens(root: Path, child: RunSpec) -> int:
    """Input and output of the phase's last request, less what its first had beside the first briefing."""
    phase = child.phase_spec()
    assert phase is not None
    record = read_record(record_path(root, phase))
    used = [line["usage"] for line in record.of_type("turn") if line.get("usage")]

    def context(usage: dict[str, Any]) -> int:
        return sum(usage[name] for name in usage if name in ("input_tokens", "cached_tokens", "cache_write_tokens"))

    overhead = context(used[0]) - count_text(next(record.of_type("opened"))["text"])
    return int(context(used[-1]) + used[-1]["output_tokens"] - overhead)


RESUME = """
import sys
sys.modules["tiktoken"] = None
from analysis.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", ["repeated_token", "random_strings", "random_sentences"])
def test_run_goes_on_with_the_same_bytes_where_there_is_no_tokenizer(kind: str, tmp_path: Path) -> None:
    words = [
        "run", "name=t", "model=inertial", f"treatment.history={kind}", "treatment.n_instrumental=3",
        "treatment.n_evaluation=3", "seeds=1", "n_phases=1",
    ]  # fmt: skip

    def run(folder: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", RESUME, *words, f"results_dir={tmp_path / folder}"],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ,
        )

    treatment = Treatment("goal_switching", n_instrumental=3, n_evaluation=3, history=kind)  # type: ignore[arg-type]
    runs = plan(scripted("inertial", memory=32), treatment, seeds=[1], n_phases=1)
    for folder in ("whole", "cut"):
        assert sweep_runs(tmp_path / folder / "t", runs).complete
    path = record_path(tmp_path / "cut" / "t", child_of(runs))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    done = run("cut")
    assert done.returncode == 0, done.stderr
    assert content(path) == content(record_path(tmp_path / "whole" / "t", child_of(runs)))
    assert run("new").returncode != 0, "a new run does need the tokenizer, so its absence was real"
