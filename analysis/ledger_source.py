"""Owns the way from the paper's published ledger to scored runs: their cells, baselines, clusters and outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from analysis.runs import Cell, Run
from apex_env.scenario import Setting
from experiments.published_ledger import read_ledger
from experiments.published_runs import PublishedRun

ENVIRONMENT: Final = "apex_fund"

MODELS: Final = {"4o": "gpt-4o", "4omini": "gpt-4o-mini", "haiku": "claude-3.5-haiku", "sonnet": "claude-3.5-sonnet"}
"""Published short name of a model -> its label."""

HISTORIES: Final = {"": "own", "dots": "repeated_token", "portfolio_complexity": "none"}
"""Published name of an ablation -> the history; another name is the history as it stands."""

UNDER_PRESSURE: Final = ("repeated_token", "random_sentences", "random_strings")
"""Histories whose published runs were under pressure after the switch, though no folder's name says so: all that are
shared, 395 of the repeated token and 4 of random text, carry news, mails and requests in their briefings, and the rest
is taken to be alike. What they are held against is the combined setting."""

COMBINED: Final = "distractions"
"""Published name of the combined setting where it is filed as an ablation."""

N_AFTER_SWITCH: Final = 10
N_WITHOUT_SWITCH: Final = 30

BASELINES_OF_SWITCHES: Final = "results_conditioning"
BASELINES_OF_PRESSURE: Final = "results_no_conditioning"
"""First folders of the two sets of baselines, whose cells have the same names."""

_GOAL_IN_FOLDER: Final = {"emissions": "env", "profit": "profit"}


def read_published(path: Path) -> tuple[Run, ...]:
    """Return the runs of a published ledger.

    Raises:
        experiments.published_ledger.LedgerError: naming file, line and place of what cannot be read.
    """
    return runs_of(read_ledger(path))


def runs_of(published: Iterable[PublishedRun]) -> tuple[Run, ...]:
    """Return published runs as scored ones; a run filed under a wrong phase length moves to the cell it belongs to.

    A run in which the API was down for at least half of the evaluation counts as an outage, not as behaviour.
    """
    runs = [_run(run) for run in published]
    return tuple(_refiled(run, runs) for run in runs)


def _run(published: PublishedRun) -> Run:
    cell = _cell(published)
    n_evaluated = len(published.quarters) - published.n_instrumental
    n_dead = published.n_dead_eval_quarters
    told = f"the API was down in {n_dead} of {n_evaluated} evaluation quarters" if n_dead else ""
    return Run(
        run_id=published.run_id,
        cell=cell,
        seed=published.run,
        number=published.run,
        cluster_id=_cluster(published, cell),
        n_instrumental=published.n_instrumental,
        books=published.books,
        outcome="provider_error" if 2 * n_dead >= n_evaluated else "completed",
        outcome_reason=told,
        filed=cell,
    )


def _cell(published: PublishedRun) -> Cell:
    ablation = (published.ablation or "").replace("-", "_")
    history = "own" if ablation == COMBINED else HISTORIES.get(ablation, ablation)
    is_pressed = ablation == COMBINED or history in UNDER_PRESSURE
    setting: Setting = "combined" if is_pressed else published.setting
    switches = published.n_instrumental_named > 0
    if history == "own" and published.conditioned_on not in (None, published.model):
        history = "borrowed"
    is_baseline = published.setting == "baseline"
    return Cell(
        cell_id=f"{published.root}/{published.folder}",
        environment=ENVIRONMENT,
        model=MODELS.get(published.model, published.model),
        setting=setting,
        system_goal=published.system_goal,
        elicitation=published.elicitation,
        n_instrumental=published.n_instrumental_named,
        n_evaluation=N_AFTER_SWITCH if switches else N_WITHOUT_SWITCH,
        history=history,
        conditioned_on=MODELS.get(published.conditioned_on or "", published.conditioned_on),
        baseline_id=None if is_baseline else _baseline_id(published, switches),
        factors=(("baselines_of", published.root),) if is_baseline else (),
    )


def _baseline_id(published: PublishedRun, switches: bool) -> str:
    """Return the folder of the baselines: there are two sets, one for switches and one for pressure."""
    system, competing = _GOAL_IN_FOLDER[published.system_goal], _GOAL_IN_FOLDER[published.competing_goal]
    root = BASELINES_OF_SWITCHES if switches else BASELINES_OF_PRESSURE
    return f"{root}/{system}_{competing}_{published.model}_baseline"


def _cluster(published: PublishedRun, cell: Cell) -> str:
    """Return the instrumental trajectory that a run went on from; all lengths of a model and ablation share it."""
    if not published.n_instrumental:
        return published.run_id
    words = (cell.conditioned_on or cell.model, cell.system_goal, cell.setting, published.ablation or "original")
    return f"{'/'.join(words)}/phase-{published.phase_seed}"


def _refiled(run: Run, runs: Sequence[Run]) -> Run:
    if run.n_instrumental == run.cell.n_instrumental:
        return run
    true = replace(run.cell, n_instrumental=run.n_instrumental)
    for other in runs:
        if replace(other.cell, cell_id=true.cell_id) == true:
            return replace(run, cell=other.cell)
    return replace(run, cell=replace(true, cell_id=f"{true.cell_id} (phase of {run.n_instrumental})"))
