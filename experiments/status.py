"""Owns `apex status`: where the runs of a results folder stand, what has failed and why, and what they have spent."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from experiments.errors import PARTIAL, RecordError
from experiments.glance import Glance, record_files
from experiments.locking import is_claimed
from experiments.saved_plan import planned_cells
from experiments.spending import Spent, usd

State = Literal["done", "partial", "running", "resumable", "failed", "not begun"]
STATES: Final = get_args(State)
"""`partial` was ended by the agent's own doing or limits, for good; what is `resumable`, `failed` or `not begun` is
played by giving its command again."""


@dataclass(slots=True)
class CellStatus:
    """Where the runs of one cell stand."""

    cell_id: str
    states: Counter[State] = field(default_factory=Counter)
    spent: Spent = Spent()


@dataclass(slots=True)
class ExperimentStatus:
    """Where an experiment stands."""

    root: Path
    cells: dict[str, CellStatus] = field(default_factory=dict)
    why: dict[tuple[State, str], list[str]] = field(default_factory=dict)
    """State and reason -> ids of the runs that it holds for."""
    problems: list[str] = field(default_factory=list)
    """Saved configurations whose plan cannot be read any more."""

    @property
    def states(self) -> Counter[State]:
        """Runs and phases by state."""
        return sum((cell.states for cell in self.cells.values()), Counter())

    @property
    def spent(self) -> Spent:
        """What all its records have taken."""
        return sum((cell.spent for cell in self.cells.values()), Spent())

    @property
    def ordered(self) -> list[CellStatus]:
        """The cells by name, instrumental phases first."""
        return sorted(self.cells.values(), key=lambda cell: (not cell.cell_id.startswith("phases/"), cell.cell_id))

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return not any(n for state, n in self.states.items() if state not in ("done", "partial"))


def main(argv: Sequence[str]) -> int:
    """Run ``apex status RESULTS``; exit code 0 all done, 1 something is left to do, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex status",
        description="Show where the runs of an experiment, or of all experiments of a results folder, stand. Nothing "
        "is changed, so it can be asked while a sweep is running.",
        epilog="Exit code: 0 if everything is done, 1 if something is left to do, 2 for bad input.",
    )
    parser.add_argument("results", metavar="RESULTS", type=Path, help="folder of an experiment, or of several")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    if not options.results.is_dir():
        print(f"apex status: {options.results}: there is no such folder", file=sys.stderr)
        return 2
    found = status_of(options.results)
    if not found:
        print(f"apex status: {options.results}: no record and no plan below this folder", file=sys.stderr)
        return 2
    print(json.dumps([as_json(one) for one in found], indent=2) if options.json else "\n\n".join(map(told, found)))
    return 0 if all(one.is_complete for one in found) else 1


def status_of(folder: Path) -> list[ExperimentStatus]:
    """Return where every experiment below a folder stands, the folder itself included."""
    found: dict[Path, ExperimentStatus] = {}
    begun: set[tuple[Path, str]] = set()
    plans = {saved.parent: saved for saved in sorted(folder.rglob("_hydra"))}
    # Records without a header come last: where they belong is known from the others, and from plans.
    for glance, (state, reason) in sorted(_glances(folder), key=lambda one: not one[0].header):
        if state == "not begun":
            continue
        run_id = str(glance.header.get("run_id", ""))
        root = _root(glance.path, run_id, {*found, *plans})
        run_id = run_id or glance.path.relative_to(root).with_suffix("").as_posix()
        begun.add((root, run_id))
        experiment = found.setdefault(root, ExperimentStatus(root))
        cell_id = str(Path(run_id).parent)
        cell = experiment.cells.setdefault(cell_id, CellStatus(cell_id))
        cell.states[state] += 1
        cell.spent += glance.spent
        if reason:
            experiment.why.setdefault((state, reason), []).append(run_id)
    _add_plans(plans, found, begun)
    return [found[root] for root in sorted(found)]


def told(status: ExperimentStatus) -> str:
    """Return where an experiment stands, for people."""
    head = ["cell", *STATES, "turns", "tokens", "cost"]
    rows = [head, *(_row(cell.cell_id, cell.states, cell.spent) for cell in status.ordered)]
    rows.append(_row("total", status.states, status.spent))
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    lines = [str(status.root)]
    lines += ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    for (state, reason), run_ids in sorted(status.why.items()):
        more = f" and {len(run_ids) - 1} more" if len(run_ids) > 1 else ""
        lines.append(f"{state}: {run_ids[0]}{more}: {reason}")
    return "\n".join([*lines, *status.problems])


def as_json(status: ExperimentStatus) -> dict[str, Any]:
    """Return where an experiment stands as plain JSON."""
    return {
        "folder": str(status.root),
        "complete": status.is_complete,
        "total": _json(status.states, status.spent),
        "cells": {cell.cell_id: _json(cell.states, cell.spent) for cell in status.ordered},
        "why": [
            {"state": state, "reason": reason, "runs": run_ids}
            for (state, reason), run_ids in sorted(status.why.items())
        ],
        "problems": status.problems,
    }


def _glances(folder: Path) -> Iterable[tuple[Glance, tuple[State, str]]]:
    """Iterate over records with where they stand, and why they are not done where something says so."""
    for path in record_files(folder):
        # Before it is read: a run that ends meanwhile is not taken for one that was killed.
        is_running = is_claimed(path)
        glance = Glance(path)
        try:
            glance.refresh()
        except RecordError as error:
            yield glance, ("failed", f"damaged record: {error}")
            continue
        yield glance, ("running", "") if is_running else _state(glance)


def _state(glance: Glance) -> tuple[State, str]:
    if not glance.header:
        return "not begun", ""
    if glance.outcome == "completed":
        return "done", ""
    if glance.outcome in PARTIAL:
        return "partial", f"{glance.outcome}: {glance.reason}"
    if glance.outcome in ("cancelled", "unfinished"):
        return "resumable", glance.reason or "its process ended without a word, or was killed"
    return "failed", f"{glance.outcome}: {glance.reason}"


def _root(path: Path, run_id: str, known: Collection[Path]) -> Path:
    """Return the folder of a record's experiment; of one without a header, the nearest that is known."""
    depth = len(Path(run_id).parts)
    if run_id and len(path.parents) >= depth:
        return path.parents[depth - 1]
    return next((parent for parent in path.parents if parent in known), path.parent)


def _add_plans(
    plans: Mapping[Path, Path], found: dict[Path, ExperimentStatus], begun: Collection[tuple[Path, str]]
) -> None:
    """Count what commands were given to play and has not begun."""
    for root, saved in plans.items():
        planned, problems = planned_cells(saved)
        if not planned and root not in found:
            continue
        experiment = found.setdefault(root, ExperimentStatus(root))
        experiment.problems += problems
        for run_id, cell_id in planned.items():
            if (root, run_id) not in begun:
                experiment.cells.setdefault(cell_id, CellStatus(cell_id)).states["not begun"] += 1


def _row(name: str, states: Mapping[State, int], spent: Spent) -> list[str]:
    counts = [str(states[state]) if states.get(state) else "-" for state in STATES]
    return [name, *counts, f"{spent.n_turns:,}", f"{spent.tokens:,}", usd(spent.cost_usd)]


def _json(states: Mapping[State, int], spent: Spent) -> dict[str, Any]:
    counts = {state.replace(" ", "_"): states.get(state, 0) for state in STATES}
    return counts | {"turns": spent.n_turns, "tokens": spent.tokens, "cost_usd": spent.cost_usd}
