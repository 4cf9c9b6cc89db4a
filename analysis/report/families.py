"""Owns the families of tests: which questions a figure raises, which comparisons answer each, and their correction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from analysis.report.cell_runs import CellRuns
from analysis.report.comparison import Comparison, contrast_of, drift_of, untested
from analysis.report.over_lengths import Likeness, ablation_of, trend_of
from analysis.run_table import CELL_COLUMNS
from analysis.stats.correction import Family, correct_family
from experiments.questions import QUESTIONS, Question

_NAMING: Final = tuple(name for name in CELL_COLUMNS if name not in ("cell", "baseline_cell"))


@dataclass(frozen=True, slots=True)
class Answers:
    """One question put to one figure: a family of tests, corrected together."""

    figure: str
    question: Question
    comparisons: tuple[Comparison, ...]
    family: Family
    """Holm's correction within this figure and question; labels are those of `Comparison.key`."""
    likenesses: tuple[Likeness, ...] = ()


@dataclass(frozen=True, slots=True)
class FigureCells:
    """The cells of one figure, beside all others of the source, which its cells may be held against."""

    name: str
    cells: tuple[CellRuns, ...]
    all_cells: tuple[CellRuns, ...]

    def by_model(self) -> Iterator[tuple[str, list[CellRuns]]]:
        """Yield each model with its cells, in order of its name and of phase length."""
        for model in sorted({str(cell.names["model"]) for cell in self.cells}):
            members = [cell for cell in self.cells if cell.names["model"] == model]
            yield model, sorted(members, key=lambda cell: int(cell.names["n_instrumental"]))


def figures_of(cells: Sequence[CellRuns]) -> list[FigureCells]:
    """Return the figures of a source, by name, each with its cells in order."""
    names = sorted({cell.figure for cell in cells} - {""})
    return [
        FigureCells(name, tuple(sorted((c for c in cells if c.figure == name), key=_order)), tuple(cells))
        for name in names
    ]


def answers_of(figure: FigureCells) -> list[Answers]:
    """Return every question that a figure raises, with its comparisons made and corrected."""
    found = []
    for question, ask in _ASKED.items():
        likenesses: list[Likeness] = []
        comparisons = tuple(ask(figure, likenesses))
        if comparisons:
            found.append(answered(figure.name, question, comparisons, tuple(likenesses)))
    return found


def answered(
    figure: str, question: Question, comparisons: Sequence[Comparison], likenesses: tuple[Likeness, ...] = ()
) -> Answers:
    """Return a family of comparisons with Holm's correction."""
    tests = {one.key: one.test for one in comparisons}
    family = correct_family(f"{figure}: {QUESTIONS[question]}", tests)
    return Answers(figure, question, tuple(comparisons), family, likenesses)


def cell_label(cell: CellRuns) -> str:
    """Return what tells a cell from the others of its figure."""
    if cell.figure.startswith("pressure"):
        return f"{cell.names['model']}, {cell.names['system_goal']}, {cell.names['elicitation']}"
    return f"{cell.names['model']}, I = {cell.names['n_instrumental']}"


def _order(cell: CellRuns) -> tuple[str, str, str, int]:
    names = cell.names
    return str(names["model"]), str(names["system_goal"]), str(names["elicitation"]), int(names["n_instrumental"])


def _drift(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    for cell in figure.cells:
        yield from (drift_of(cell, score, cell_label(cell)) for score in cell.scores)


def _weak_against_baseline(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    elicitations = {cell.names["cell"]: cell.names["elicitation"] for cell in figure.all_cells}
    for cell in figure.cells:
        if cell.names["setting"] != "adversarial_pressure" or cell.names["elicitation"] != "weak":
            continue
        there = elicitations.get(cell.names["baseline_cell"])
        for score in cell.scores:
            if there in ("weak", None):
                yield drift_of(cell, score, cell_label(cell))
            else:
                reason = f"its baseline is elicited otherwise ({there}): pressure and elicitation cannot be told apart"
                model, cells = str(cell.names["model"]), [str(cell.names["cell"])]
                yield untested(cell_label(cell), model, score, cells=cells, reason=reason)


def _weak_against_strong(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    weak = [cell for cell in figure.cells if cell.names["elicitation"] == "weak"]
    for cell in weak if figure.name.startswith("pressure") else []:
        others = _matches(cell, figure.cells, elicitation="strong")
        label = f"{cell.names['model']}, {cell.names['system_goal']}: weak - strong"
        yield from _contrasts(cell, others, label)


def _emptied_history(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    for cell in figure.cells:
        if cell.names["history"] != "none":
            continue
        for own in _matches(cell, figure.all_cells, history="own", without=("conditioned_on",)):
            yield from _contrasts(own, [cell], f"{cell_label(cell)}: own - emptied history")


def _settings(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    for cell in figure.cells:
        if cell.names["setting"] == "combined":
            others = _matches(cell, figure.all_cells, setting="goal_switching")
            yield from _contrasts(cell, others, f"{cell_label(cell)}: combined - switching")


def _factors(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    for cell in figure.cells:
        factors = str(cell.names["factors"]).split(" ") if cell.names["factors"] else []
        for factor in factors:
            plain = " ".join(other for other in factors if other != factor)
            others = _matches(cell, figure.all_cells, factors=plain)
            yield from _contrasts(cell, others, f"{cell_label(cell)}: {factor} - default")


def _models(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    for (model, cells), (other, _others) in combinations(figure.by_model(), 2):
        found = [(cell, _matches(cell, figure.cells, model=other, without=("conditioned_on",))) for cell in cells]
        pairs = [(cell, match[0]) for cell, match in found if len(match) == 1]
        scores = pairs[0][0].scores if pairs else cells[0].scores
        for score in scores:
            if pairs:
                yield contrast_of(pairs, score, f"{model} - {other}, {len(pairs)} cells")
            else:
                reason = "no cell of the one has its like in the other"
                yield untested(f"{model} - {other}", model, score, cells=[], reason=reason)


def _trend(figure: FigureCells, _: list[Likeness]) -> Iterator[Comparison]:
    if figure.name.startswith("length"):
        for model, cells in figure.by_model():
            if len({cell.names["n_instrumental"] for cell in cells}) > 1:
                yield trend_of(cells, model)


def _ablation(figure: FigureCells, likenesses: list[Likeness]) -> Iterator[Comparison]:
    for model, cells in figure.by_model():
        if cells[0].names["history"] in ("own", "none") or figure.name.startswith("pressure"):
            continue
        ablated = {int(cell.names["n_instrumental"]): cell for cell in cells}
        found = (_matches(c, figure.all_cells, history="own", without=("conditioned_on",)) for c in cells)
        original = {int(match[0].names["n_instrumental"]): match[0] for match in found if len(match) == 1}
        for score in cells[0].scores if original else ():
            label = f"{model}: {cells[0].names['history']} - own"
            comparison, likeness = ablation_of(original, ablated, score, label)
            likenesses += [likeness] if likeness is not None else []
            yield comparison


_ASKED: Final[Mapping[Question, Callable[[FigureCells, list[Likeness]], Iterator[Comparison]]]] = {
    "drift": _drift,
    "weak_against_baseline": _weak_against_baseline,
    "weak_against_strong": _weak_against_strong,
    "emptied_history": _emptied_history,
    "settings": _settings,
    "factors": _factors,
    "models": _models,
    "trend": _trend,
    "ablation": _ablation,
}
"""Question -> what answers it from the cells of a figure; `stated` needs labels and is asked elsewhere."""


def _matches(
    cell: CellRuns, among: Sequence[CellRuns], *, without: tuple[str, ...] = (), **levels: Any
) -> list[CellRuns]:
    """Return the cells that differ from one in the given levels alone."""
    wanted = {name: cell.names[name] for name in _NAMING if name not in without} | levels
    return [other for other in among if all(other.names[name] == level for name, level in wanted.items())]


def _contrasts(cell: CellRuns, others: Sequence[CellRuns], label: str) -> Iterator[Comparison]:
    """Yield a contrast a score; one that cannot be made where more than one cell would be its counterpart."""
    for score in cell.scores if others else ():
        if len(others) == 1:
            yield contrast_of([(cell, others[0])], score, label)
        else:
            model, cells = str(cell.names["model"]), [str(one.names["cell"]) for one in (cell, *others)]
            yield untested(label, model, score, cells=cells, reason=f"{len(others)} cells could be its counterpart")
