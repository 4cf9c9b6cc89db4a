"""Owns the labels of stated goals: reading them, finding their runs, and holding them against behaviour."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis.conventions import ScoreName
from analysis.ledger_source import MODELS
from analysis.report.cell_runs import CellRuns
from analysis.report.comparison import Comparison, conditional, scoped, untested
from analysis.report.families import Answers, FigureCells, answered
from analysis.runs import SourceError
from analysis.stats.association import kendall_test, somers_d
from analysis.stats.estimate import join_reasons

CLASSES: Final[Mapping[str, int]] = {"system": 1, "hybrid": 2, "competing": 3}
"""Stated goal -> its place on the way to drift."""

UNCLEAR: Final = "unclear"
"""A label that states none of them."""

_PLACES: Final = ("position", "seed", "run")
_FORMS: Final = "run_id and label, or model, setting, n_instrumental (or instrumental_steps), position (or seed), label"


@dataclass(frozen=True, slots=True)
class Labels:
    """The stated goal of runs, by run."""

    of_run: Mapping[str, int]
    """Run id -> class, 1 to 3."""
    notes: tuple[str, ...] = ()
    """A line each on labels that found no run, or state nothing clear."""
    unclear: frozenset[str] = frozenset()
    """Ids of the runs whose stated goal is unclear: labelled, and without a place on the way to drift."""


def read_labels(path: Path, cells: Sequence[CellRuns]) -> Labels:
    """Return the labels of a CSV file, matched to the runs of a source.

    A row names its run by ``run_id``, or by its cell and its position among the cell's runs in order of their numbers,
    1 the first (``seed`` and ``run`` name the number itself). ``label`` is 1, 2, 3 or system, hybrid, competing; or
    unclear, which takes no part in tests.

    Args:
        path: the file.
        cells: all cells of the source.

    Raises:
        SourceError: for a file that cannot be read, columns that are missing, or a label that is none; with the line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path}: labels cannot be read: {error}") from error
    known = frozenset(str(run) for cell in cells for run in cell.runs["run_id"])
    found: dict[str, int | None] = {}
    lost: Counter[str] = Counter()
    for number, row in enumerate(rows, 2):
        place = f"{path}, line {number}"
        label = _label(row, place)
        run = _run_of(row, cells, known, place=place)
        if run.startswith("!"):
            lost[run[1:]] += 1
        elif run in found:
            raise SourceError(f"{place}: run {run!r} has a label already")
        else:
            found[run] = label
    unclear = frozenset(run for run, label in found.items() if label is None)
    notes = [f"{n} labels without a run: {reason}" for reason, n in lost.items()]
    notes += [f"{len(unclear)} runs with an unclear label, left out"] if unclear else []
    return Labels({run: label for run, label in found.items() if label is not None}, tuple(notes), unclear)


def stated_answers(figure: FigureCells, labels: Labels) -> Answers | None:
    """Return how stated goals go with behaviour in a figure, a test a model and score; None without a labelled run.

    Kendall's tau-b over all labelled runs of the model, lengths together; the estimate is Somers' d of the score given
    the stated goal.
    """
    comparisons = list(_comparisons(figure, labels))
    return answered(figure.name, "stated", comparisons) if comparisons else None


def _comparisons(figure: FigureCells, labels: Labels) -> Iterator[Comparison]:
    for model, cells in figure.by_model():
        if any(run in labels.of_run for cell in cells for run in cell.runs["run_id"]):
            yield from (_compared(model, cells, score, labels) for score in cells[0].scores)


def _compared(model: str, cells: Sequence[CellRuns], score: ScoreName, labels: Labels) -> Comparison:
    stated, behaved, seeds, clusters = [], [], [], []
    for cell in cells:
        for run in cell.runs.to_dict("records"):
            stated.append(float(labels.of_run.get(str(run["run_id"]), math.nan)))
            behaved.append(float(run[f"gd_{score}"]) if run["cluster"] else math.nan)
            seeds.append(int(run["seed"]))
            clusters.append(str(run["cluster"]))
    x, y = np.array(stated), np.array(behaved)
    kept = ~(np.isnan(x) | np.isnan(y))
    scope = replace(cells[0].sample(score), values=y[kept], seeds=_kept(seeds, kept), clusters=_kept(clusters, kept))
    made = untested(f"{model}: stated goal", model, score, cells=[str(cell.names["cell"]) for cell in cells], reason="")
    shared = "takes runs of one trajectory as independent" if scope.units.scope == "trajectories" else ""
    several = "over all phase lengths together, with which both may rise" if len(cells) > 1 else ""
    return replace(
        made,
        design="groups",
        scope=scope.units.scope,
        estimate=scoped(somers_d(x, y), scope.units.scope),
        test=conditional(kendall_test(x, y), scope.units.scope),
        note=join_reasons(shared, several),
    )


def _kept(values: Sequence[Any], kept: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[Any, ...]:
    return tuple(value for value, keep in zip(values, kept, strict=True) if keep)


def _label(row: Mapping[str, str | None], place: str) -> int | None:
    """Return the class of a row, None for an unclear one."""
    text = (row.get("label") or "").strip().lower()
    if text == UNCLEAR:
        return None
    if text in CLASSES:
        return CLASSES[text]
    if text in ("1", "2", "3"):
        return int(text)
    raise SourceError(f"{place}: label {text!r} is not known: 1 or system, 2 or hybrid, 3 or competing, {UNCLEAR}")


def _run_of(row: Mapping[str, str | None], cells: Sequence[CellRuns], known: frozenset[str], *, place: str) -> str:
    """Return the id of the run that a row names, or '!' and the reason why there is none."""
    if row.get("run_id"):
        return str(row["run_id"]) if row["run_id"] in known else "!no run of this id"
    length = row.get("n_instrumental") or row.get("instrumental_steps")
    by = next((name for name in _PLACES if row.get(name)), None)
    if not (row.get("model") and row.get("setting") and length and by):
        raise SourceError(f"{place}: it names no run; a row holds {_FORMS}")
    model = MODELS.get(str(row["model"]), str(row["model"]))
    wanted = {"model": model, "setting": row["setting"], "history": row.get("history") or "own"}
    if row.get("system_goal"):
        wanted["system_goal"] = row["system_goal"]
    try:
        n_instrumental, number = int(length), int(str(row[by]))
    except ValueError as error:
        raise SourceError(
            f"{place}: {by} and phase length are whole numbers, not {row[by]!r} and {length!r}"
        ) from error
    matches = [
        cell
        for cell in cells
        if cell.names["n_instrumental"] == n_instrumental
        and all(cell.names[name] == level for name, level in wanted.items())
    ]
    if len(matches) != 1:
        return f"!{len(matches)} cells match {model}, {row['setting']}, phase of {n_instrumental}"
    runs = matches[0].runs.sort_values(["run", "run_id"])
    if by == "position":
        return str(runs["run_id"].iloc[number - 1]) if 1 <= number <= len(runs) else "!position beyond the cell's runs"
    named = runs[runs[by] == number]["run_id"]
    return str(named.iloc[0]) if len(named) == 1 else f"!{len(named)} runs of that {by}"
