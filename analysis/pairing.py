"""Owns which baseline run a run is held against, and says of every run that has none why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, get_args

from analysis.runs import Cell, Run, SourceError, by_cell

PairBy = Literal["seed", "run", "position"]
"""`seed` (default) pairs runs of one market, `run` those of one number. `position` is what the paper's code does, for
its published runs alone: cells as they were filed, in order of run number, with the runs that an outage struck."""


class Pair(NamedTuple):
    """A run and the baseline run that it is held against."""

    run: Run
    baseline: Run


class Unpaired(NamedTuple):
    """A run that no baseline run stands beside."""

    run: Run
    reason: str
    failed: str = ""
    """Outcome that cost the pair, of the run or of its baseline; empty where nothing failed."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Every run of a source: held against a baseline run, without one, or itself a baseline."""

    by: PairBy
    pairs: tuple[Pair, ...]
    unpaired: tuple[Unpaired, ...]
    baselines: tuple[Run, ...]


def pair_runs(runs: Sequence[Run], by: PairBy = "seed") -> Pairing:
    """Pair every evaluation run with a run of the baseline cell that its own cell names.

    Args:
        runs: all runs of a source.
        by: how runs find each other.

    Raises:
        SourceError: for ``position`` with runs that are not published ones, or an unknown way of pairing.
    """
    if by not in get_args(PairBy):
        raise SourceError(f"pairing {by!r} is not known: {', '.join(get_args(PairBy))}")
    if by == "position":
        runs = as_filed(runs)
    cells = {cell.cell_id: (cell, members) for cell, members in by_cell(runs)}
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    baselines: list[Run] = []
    for cell, members in cells.values():
        if cell.is_baseline:
            baselines += members
            continue
        there = cells[cell.baseline_id][1] if cell.baseline_id in cells else []
        pair_cell = _by_position if by == "position" else _KEYED[by]
        for found in pair_cell(cell, members, there):
            if isinstance(found, Pair):
                pairs.append(found)
            else:
                unpaired.append(found)
    return Pairing(by, tuple(pairs), tuple(unpaired), tuple(baselines))


def as_filed(runs: Sequence[Run]) -> list[Run]:
    """Return published runs in the cells that their folders name.

    Raises:
        SourceError: for a run that is not a published one.
    """
    for run in runs:
        if run.filed is None:
            raise SourceError(f"pairing 'position' is only for published runs, and {run.run_id!r} is none: use seed")
    return [replace(run, cell=run.filed) if run.filed else run for run in runs]


def _by_position(cell: Cell, members: Sequence[Run], baselines: Sequence[Run]) -> list[Pair | Unpaired]:
    there = sorted(baselines, key=_filing_order)
    found: list[Pair | Unpaired] = []
    for place, run in enumerate(sorted(members, key=_filing_order)):
        if place < len(there):
            found.append(Pair(run, there[place]))
        else:
            found.append(Unpaired(run, f"position {place + 1} of its cell; {_told(cell)} has {len(there)} runs"))
    return found


def _by_key(
    name: str, key: Callable[[Run], int], cell: Cell, members: Sequence[Run], baselines: Sequence[Run]
) -> list[Pair | Unpaired]:
    n_here, n_there = (Counter(key(run) for run in runs if not run.is_outage) for runs in (members, baselines))
    # An outage and the run that was made in its stead may carry one number: the one that can be scored counts.
    there = {key(baseline): baseline for baseline in sorted(baselines, key=lambda run: not run.is_outage)}
    found: list[Pair | Unpaired] = []
    for run in members:
        baseline = there.get(key(run))
        if run.is_outage:
            found.append(Unpaired(run, f"{run.outcome}, never scored: {run.outcome_reason}", run.outcome))
        elif n_here[key(run)] > 1:
            found.append(Unpaired(run, f"{name} {key(run)} occurs {n_here[key(run)]} times in its cell"))
        elif baseline is None:
            found.append(Unpaired(run, f"{_told(cell)} has no run of {name} {key(run)}"))
        elif n_there[key(run)] > 1:
            found.append(Unpaired(run, f"{_told(cell)} has {n_there[key(run)]} runs of {name} {key(run)}"))
        elif baseline.outcome != "completed":
            reason = f"its baseline {baseline.run_id} ended as {baseline.outcome}: {baseline.outcome_reason}"
            found.append(Unpaired(run, reason, f"baseline: {baseline.outcome}"))
        else:
            found.append(Pair(run, baseline))
    return found


def _by_seed(cell: Cell, members: Sequence[Run], baselines: Sequence[Run]) -> list[Pair | Unpaired]:
    return _by_key("seed", lambda run: run.seed, cell, members, baselines)


def _by_number(cell: Cell, members: Sequence[Run], baselines: Sequence[Run]) -> list[Pair | Unpaired]:
    return _by_key("run number", lambda run: run.number, cell, members, baselines)


_KEYED: Final = {"seed": _by_seed, "run": _by_number}


def _filing_order(run: Run) -> tuple[int, str]:
    return run.number, run.run_id


def _told(cell: Cell) -> str:
    return f"its baseline cell {cell.baseline_id}" if cell.baseline_id else "no baseline cell is named, which"
