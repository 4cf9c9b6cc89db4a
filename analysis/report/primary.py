"""Owns which question is the primary analysis of a figure: the one that was declared in advance, else its kind's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.report.families import Answers, FigureCells
from experiments.questions import QUESTIONS, Question

BY_KIND: Final[Mapping[str, tuple[Question, ...]]] = {
    "pressure": ("weak_against_strong", "drift"),
    "emptied": ("emptied_history", "drift"),
    "ablated": ("ablation", "drift"),
    "varied": ("factors", "drift"),
    "plain": ("drift",),
}
"""Kind of figure -> its primary question where none was declared; the first that the source can answer."""


@dataclass(frozen=True, slots=True)
class Primary:
    """The primary analysis of a figure."""

    question: Question | None
    """None where the figure raises no question at all."""
    told: str
    """Who decided, and why not what was declared."""


def primary_of(figure: FigureCells, answers: Sequence[Answers]) -> Primary:
    """Return the primary question of a figure.

    Args:
        figure: its cells, whose runs carry what their experiment declared.
        answers: the questions that the figure can answer.
    """
    asked = {answer.question for answer in answers}
    declared = Counter(str(name) for cell in figure.cells for name in cell.runs["primary"] if name)
    default = next((question for question in BY_KIND[_kind(figure)] if question in asked), None)
    by_kind = f"the default of {_kind(figure)} figures"
    if not declared:
        return Primary(default, f"{by_kind}, since no experiment file declares one")
    if len(declared) > 1:
        told = ", ".join(f"{name!r} ({n} runs)" for name, n in sorted(declared.items()))
        return Primary(default, f"{by_kind}, since the experiments declare different ones: {told}")
    (name,) = declared
    question = next((known for known in QUESTIONS if known == name), None)
    if question is None:
        return Primary(default, f"{by_kind}, since the declared {name!r} is no question of this version")
    if question not in asked:
        return Primary(default, f"{by_kind}, since the declared {name!r} does not arise here")
    return Primary(question, "declared in the experiment file")


def _kind(figure: FigureCells) -> str:
    names = figure.cells[0].names
    if names["factors"]:
        return "varied"
    if figure.name.startswith("pressure"):
        return "pressure"
    if names["history"] == "none":
        return "emptied"
    return "plain" if names["history"] == "own" else "ablated"
