"""A record of 74 quarters with 200 KB a quarter: reading, scoring, resuming and looking keep up."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS
from analysis.load import load_runs
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from experiments.chat import Completion, Message, Model, Prompt
from experiments.glance import glance_at
from experiments.models import build_model
from experiments.record import read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.status import status_of
from experiments.treatment import Treatment
from tests.path import contents, plan, sweep_runs

QUARTER_BYTES = 200_000
LONG = Treatment("baseline", n_evaluation=74)
SWITCH = Treatment("goal_switching", n_instrumental=64, n_evaluation=10)
"""Also 74 quarters, of which 64 are a record of their own."""


class Talkative:
    """A scripted agent that says much in every quarter."""

    def __init__(self, config: ModelConfig) -> None:
        self.name = config.name
        self._inner: Model = build_model(config)

    async def complete(self, prompt: Prompt) -> Completion:
        completion = await self._inner.complete(prompt)
        if prompt.position.turn:
            return completion
        message = completion.message
        said = (f"In quarter {prompt.position.period} I think it over. " * 10_000)[:QUARTER_BYTES]
        return replace(completion, message=Message("assistant", said, message.calls, native=message.native))


@pytest.fixture(scope="module")
def runs() -> list[RunSpec]:
    return plan("adherent", LONG, SWITCH, seeds=[1], n_phases=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, runs: list[RunSpec]) -> Path:
    root = tmp_path_factory.mktemp("large")
    assert sweep_runs(root, runs, build_model=Talkative).complete
    return root


def test_record_is_as_large_as_it_is_meant_to_be(folder: Path, runs: list[RunSpec]) -> None:
    path = record_path(folder, runs[0])
    assert path.stat().st_size > 74 * QUARTER_BYTES
    assert glance_at(path).n_closed == 74


def test_reading_scoring_and_looking_take_less_than_seconds(folder: Path, runs: list[RunSpec]) -> None:
    began = time.process_time()
    for run in runs:
        assert read_record(record_path(folder, run)).outcome == "completed"
    loaded = load_runs(folder, cache=False)
    cells = cells_table(runs_table(pair_runs(loaded.runs), CONVENTIONS["paper"]), interval="paper_wald")
    (status,) = status_of(folder)
    assert time.process_time() - began < 10
    assert status.states == {"done": 4}
    assert cells["n_scored"].sum() >= 1


def test_columns_that_were_kept_are_read_without_the_records(folder: Path) -> None:
    first = load_runs(folder)
    began = time.process_time()
    again = load_runs(folder)
    assert time.process_time() - began < 1
    assert again.runs == first.runs


def test_run_that_was_cut_in_its_last_quarter_goes_on(folder: Path, runs: list[RunSpec], tmp_path: Path) -> None:
    phase = runs[1].phase_spec()
    for run in [*runs, phase] if phase is not None else runs:
        path = record_path(tmp_path, run)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = record_path(folder, run).read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-3]) + lines[-3][:1000])
    began = time.process_time()
    assert sweep_runs(tmp_path, runs, build_model=Talkative).complete
    assert time.process_time() - began < 20
    assert contents(tmp_path) == contents(folder)
