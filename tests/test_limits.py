"""Limits on spending: what counts, when they end a sweep or a run, and how it goes on afterwards."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.budget import Spending, check_prices, known_price
from experiments.chat import Completion, Model, Prompt, Usage
from experiments.errors import InputError
from experiments.glance import glance_at
from experiments.limits import Limits, SweepLimits
from experiments.models import build_model
from experiments.models.pricing import Price
from experiments.progress import Progress
from experiments.run_spec import ModelConfig
from experiments.runner import record_path
from experiments.spending import Spent
from experiments.treatment import Treatment
from experiments.watch import SweepWatch
from tests.path import contents, plan, read_record, scripted, sweep_runs
from tests.test_run import apex

TURN = Usage(input_tokens=10, cached_tokens=80, output_tokens=10, cost_usd=0.5)
"""What every turn takes here: 100 tokens and half a dollar."""
PRESSURE = Treatment("adversarial_pressure", n_evaluation=4)
SWITCH = Treatment("goal_switching", n_instrumental=2, n_evaluation=2)


class Paid:
    """A scripted agent whose turns are billed."""

    def __init__(self, config: ModelConfig, usage: Usage | None = TURN) -> None:
        self.name = config.name
        self._inner: Model = build_model(config)
        self._usage = usage

    async def complete(self, prompt: Prompt) -> Completion:
        return replace(await self._inner.complete(prompt), usage=self._usage)


def n_turns(root: Path) -> int:
    return sum(line["by"] == "model" for path in root.rglob("*.jsonl") for line in read_record(path).of_type("turn"))


def limited(**limits: Any) -> dict[str, Any]:
    by_scope = {scope: Limits(**limits.get(scope, {})) for scope in ("sweep", "run")}
    return {"limits": SweepLimits(**by_scope), "build_model": Paid, "concurrency": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    root = tmp_path_factory.mktemp("whole")
    assert sweep_runs(root, plan("adherent", PRESSURE, SWITCH), build_model=Paid).complete
    return contents(root)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_cost_usd": 3.2}, "limits.sweep.max_cost_usd $3.20 is reached: $3.50"),
        ({"max_tokens": 700}, "limits.sweep.max_tokens 700 is reached: 700 tokens"),
    ],
)
def test_sweep_ends_when_a_limit_is_reached_and_goes_on_when_it_is_raised(
    limits: dict[str, Any], said: str, tmp_path: Path, whole: dict[str, Any]
) -> None:
    runs = plan("adherent", PRESSURE, SWITCH)
    report = sweep_runs(tmp_path, runs, **limited(sweep=limits))
    assert report.stopped == said
    assert not report.complete
    assert n_turns(tmp_path) == 7
    ends = [read_record(path).ended for path in tmp_path.rglob("*.jsonl")]
    assert [end["reason"] for end in ends if end is not None and end["outcome"] == "cancelled"] == [said]
    assert sweep_runs(tmp_path, runs, build_model=Paid).complete
    assert contents(tmp_path) == whole


def test_limit_of_a_sweep_counts_what_earlier_commands_have_spent_and_writes_nothing_more(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE)
    sweep_runs(tmp_path, runs, **limited(sweep={"max_tokens": 700}))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    report = sweep_runs(tmp_path, runs, **limited(sweep={"max_tokens": 600}))
    assert report.stopped == "limits.sweep.max_tokens 600 is reached: 700 tokens"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before
    sweep_runs(tmp_path, runs, **limited(sweep={"max_tokens": 1000}))
    assert n_turns(tmp_path) == 10


def test_running_turns_finish_when_a_limit_is_reached(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE)
    sweep_runs(tmp_path, runs, **limited(sweep={"max_tokens": 700}) | {"concurrency": 4})
    assert 7 <= n_turns(tmp_path) <= 7 + 3


def test_finished_runs_are_told_as_done_though_the_limit_is_reached(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE)
    assert sweep_runs(tmp_path, runs, build_model=Paid).complete
    report = sweep_runs(tmp_path, runs, **limited(sweep={"max_tokens": 100}))
    assert report.outcomes == {"completed": 4}
    assert report.complete


def test_run_ends_at_its_own_limit_and_the_others_are_played(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    report = sweep_runs(tmp_path, runs, **limited(run={"max_tokens": 500}))
    assert report.outcomes == {"cancelled": 2}
    assert report.limited == {"limits.run.max_tokens": 2}
    assert report.stopped == ""
    for run in runs:
        glance = glance_at(record_path(tmp_path, run))
        assert glance.spent == Spent(5, 500, 2.5)
        assert glance.reason == "limits.run.max_tokens 500 is reached: 500 tokens"


def test_limit_of_a_run_counts_its_earlier_segments(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs, **limited(run={"max_cost_usd": 2.5}))
    sweep_runs(tmp_path, runs, **limited(run={"max_cost_usd": 3.5}))
    assert [glance_at(record_path(tmp_path, run)).spent.n_turns for run in runs] == [7, 7]


def test_run_that_has_reached_its_limit_before_is_left_as_it_is(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs, **limited(run={"max_tokens": 500}))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    report = sweep_runs(tmp_path, runs, **limited(run={"max_tokens": 500}))
    assert report.limited == {"limits.run.max_tokens": 2}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


def test_hours_of_a_run_add_up_over_segments_and_leave_out_the_time_between() -> None:
    assert Limits(max_hours=0.5).reached("run", Spent(), hours=0.49) == ""
    assert Limits(max_hours=0.5).reached("run", Spent(), hours=0.5) == "limits.run.max_hours 0.5 is reached: 0.5 hours"


def test_hours_of_a_sweep_end_it(tmp_path: Path) -> None:
    report = sweep_runs(tmp_path, plan("adherent", PRESSURE), **limited(sweep={"max_hours": 1e-9}))
    assert report.stopped.startswith("limits.sweep.max_hours 1e-09 is reached: ")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_played_time_is_that_of_the_segments_without_the_gap_between(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = [
        '{"type":"run","seq":0,"time":"2026-01-01T00:00:00.000+00:00","schema":1}',
        '{"type":"ended","seq":1,"time":"2026-01-01T00:00:10.000+00:00","outcome":"cancelled","reason":""}',
        '{"type":"resumed","seq":2,"time":"2026-01-02T00:00:00.000+00:00"}',
        '{"type":"ended","seq":3,"time":"2026-01-02T00:00:05.500+00:00","outcome":"completed","reason":""}',
    ]
    path.write_text("\n".join(lines) + "\n")
    assert glance_at(path).played_s == 15.5


def test_turn_of_unknown_cost_ends_a_sweep_with_a_cost_limit(tmp_path: Path) -> None:
    free = replace(TURN, cost_usd=None)
    settings = limited(sweep={"max_cost_usd": 100}) | {"build_model": lambda config: Paid(config, free)}
    report = sweep_runs(tmp_path, plan("adherent", PRESSURE), **settings)
    assert report.stopped == "limits.sweep.max_cost_usd $100.00 cannot be kept: the cost of a turn is unknown"
    assert n_turns(tmp_path) == 1


def test_turns_whose_cost_was_unknown_are_priced_when_the_price_is_known(tmp_path: Path) -> None:
    runs = plan("adherent", PRESSURE, seeds=[1])
    sweep_runs(tmp_path, runs, build_model=lambda config: Paid(config, replace(TURN, cost_usd=None)))
    n = n_turns(tmp_path)
    assert Spending(tmp_path).total.cost_usd is None
    priced = Spending(tmp_path, lambda model: Price(input_usd=1e6, cached_usd=0, output_usd=1e6)).total
    assert priced == Spent(n, 100 * n, pytest.approx(20.0 * n))


def test_spending_of_other_processes_is_seen_when_it_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.budget.LOOK_AGAIN_S", 0.0)
    spending = Spending(tmp_path)
    assert spending.total == Spent()
    sweep_runs(tmp_path, plan("adherent", PRESSURE, seeds=[1]), **limited(sweep={"max_tokens": 700}))
    assert spending.total.tokens == 700
    sweep_runs(tmp_path, plan("adherent", PRESSURE, seeds=[1]), **limited(sweep={"max_tokens": 900}))
    assert spending.total.tokens == 900


def test_turns_of_this_process_count_before_the_records_are_looked_at_again(tmp_path: Path) -> None:
    watch = SweepWatch(tmp_path, Progress([], out=io.StringIO()), SweepLimits(sweep=Limits(max_tokens=200)))
    watch.check()
    watch.take(TURN)
    watch.check()
    assert watch.stop.reason == ""
    watch.take(TURN)
    watch.check()
    assert watch.stop.reason == "limits.sweep.max_tokens 200 is reached: 200 tokens"


def test_cost_limit_with_an_unknown_price_is_refused_and_embedded_agents_cost_nothing() -> None:
    nameless = ModelConfig("mine", "openai", "no-such-model-anywhere", {}, {"base_url": "http://localhost:1/v1"})
    assert known_price(nameless) is None
    limits = SweepLimits(run=Limits(max_cost_usd=1))
    check_prices(limits, [scripted("adherent")])
    check_prices(SweepLimits(), [nameless])
    with pytest.raises(
        InputError, match="limits.run.max_cost_usd cannot be kept, because the price of mine is unknown"
    ):
        check_prices(limits, [scripted("adherent"), nameless])
    given = replace(nameless, service=nameless.service | {"price": {"input": 1, "output": 2}})
    assert known_price(given) == Price(input_usd=1, output_usd=2)
    check_prices(limits, [given])


def test_command_refuses_a_cost_limit_of_unknown_price_before_anything_is_written(tmp_path: Path) -> None:
    words = [
        "name=t",
        f"results_dir={tmp_path}",
        "seeds=1",
        "model=local",
        "models.local.name=m",
        "models.local.model=m",
    ]
    done = apex("run", *words, "limits.sweep.max_cost_usd=5")
    assert done.returncode == 2
    assert "limits.sweep.max_cost_usd cannot be kept, because the price of m is unknown" in done.stderr
    assert not list(tmp_path.rglob("*.jsonl"))


def test_command_says_which_limit_ended_it_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "paid.py").write_text(
        "def agent(prompt):\n"
        "    return {'calls': [{'name': 'finish_quarter'}], 'usage': {'input_tokens': 90, 'output_tokens': 10}}\n"
    )
    words = ["name=t", f"results_dir={tmp_path}", "seeds=1", "treatment=baseline", "model=python", "target=paid:agent"]
    done = apex("run", *words, "limits.sweep.max_tokens=500", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "stopped: limits.sweep.max_tokens 500 is reached: 500 tokens" in done.stdout
    assert "The same command, with a higher limits.sweep.max_tokens, goes on from here." in done.stdout
    done = apex("run", *words, "limits.run.max_tokens=700", PYTHONPATH=str(tmp_path))
    assert "1 runs or phases ended at limits.run.max_tokens" in done.stdout
    done = apex("run", *words, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    assert "1 completed" in done.stdout
