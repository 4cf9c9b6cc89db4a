"""What a sweep shows of itself: runs that are over, quarters played now or found on disk, and the time left."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

from experiments.errors import ProviderError
from experiments.models import build_model
from experiments.progress import Progress
from experiments.run_spec import RunSpec
from experiments.sweep import Sweep, run_sweep
from experiments.treatment import Treatment
from tests.path import Replies, finish, plan

SWITCH = Treatment("goal_switching", n_instrumental=2, n_evaluation=3)


def shown(root: Path, runs: list[RunSpec], **fields: object) -> Progress:
    """The progress of a sweep when it has ended."""
    progress = Progress(runs, out=io.StringIO())
    settings = {"build_model": build_model, "sync": "end", "concurrency": 4} | fields
    asyncio.run(run_sweep(Sweep(root=root, runs=runs, **settings), progress))  # type: ignore[arg-type]
    return progress


def test_finished_sweep_that_is_given_again_has_all_its_quarters_and_took_no_turn(tmp_path: Path) -> None:
    runs = plan("adherent", SWITCH, n_phases=1)
    first, again = shown(tmp_path, runs), shown(tmp_path, runs)
    # A phase of 2 quarters, two runs and two baselines of 3.
    assert first.quarters_done == again.quarters_done == first.n_quarters == 2 + 4 * 3
    assert first.runs_done == again.runs_done == 4
    assert first.turns_done > 0 and again.turns_done == 0


def test_run_that_an_outage_ended_is_not_done_and_goes_on_from_its_quarters(tmp_path: Path) -> None:
    runs = plan("idle", Treatment(n_evaluation=3), seeds=[1])
    broken = shown(tmp_path, runs, build_model=lambda config: Replies(finish(), ProviderError("gone")))
    assert (broken.runs_done, broken.quarters_done) == (0, 1)
    mended = shown(tmp_path, runs)
    assert (mended.runs_done, mended.quarters_done) == (1, 3)


def test_time_left_rests_on_what_was_played_now() -> None:
    progress = Progress(plan("adherent", Treatment(n_evaluation=10), seeds=[1]), out=io.StringIO())
    progress.count_found(5)
    assert "left" not in progress.line(60)
    progress.count_quarter()
    assert "6/10 quarters" in progress.line(60) and "about 4 min left" in progress.line(60)
