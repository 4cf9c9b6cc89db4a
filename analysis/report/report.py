"""Owns the report as a value: everything that `apex stats` says of a source, figure by figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.cell_table import Interval, cells_table
from analysis.conventions import Convention
from analysis.report.cell_runs import cells_of
from analysis.report.estimates import (
    CellEstimate,
    Failures,
    ModelSummary,
    cell_estimates,
    failures_of,
    model_summaries,
)
from analysis.report.families import Answers, FigureCells, answers_of, figures_of
from analysis.report.limits import limits_of
from analysis.report.primary import Primary, primary_of
from analysis.report.sensitivity import Other, across_cells, failure_tests, other_tests
from analysis.report.stated import Labels, stated_answers
from analysis.stats.correction import correct_family
from experiments.questions import Question


@dataclass(frozen=True, slots=True)
class FigureReport:
    """What is said of one figure."""

    name: str
    experiments: tuple[str, ...]
    """Names of the experiments whose runs it shows; empty where the source names none."""
    primary: Primary
    answers: tuple[Answers, ...]
    """The primary question first, then the others."""
    estimates: tuple[CellEstimate, ...]
    summaries: tuple[ModelSummary, ...]
    failures: tuple[Failures, ...]
    limits: tuple[str, ...]
    others: tuple[Other, ...]
    """Sensitivity analyses; empty unless asked for."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of a source."""

    figures: tuple[FigureReport, ...]
    p_of_sweep: Mapping[tuple[str, Question, str], float]
    """(figure, question, key of the comparison) -> p after Benjamini and Hochberg over all tests of the report."""
    n_tests: int
    notes: tuple[str, ...]
    """Labels without a run, and the like."""


def make_report(
    runs: pd.DataFrame,
    convention: Convention,
    *,
    interval: Interval = "gaffke",
    labels: Labels | None = None,
    sensitivity: bool = False,
) -> Report:
    """Return the report on the runs of a source.

    Args:
        runs: rows of one convention, from `analysis.run_table.runs_table`.
        convention: the one that they were scored in.
        interval: of clipped means.
        labels: stated goals of runs, from `analysis.report.stated.read_labels`.
        sensitivity: whether to make the analyses that are shown on request only.

    Raises:
        ValueError: for runs of more than one convention.
    """
    cell_rows = cells_table(runs, interval=interval)
    figures = tuple(
        _figure(figure, cell_rows, interval, labels=labels, sensitivity=sensitivity)
        for figure in figures_of(cells_of(runs, convention))
    )
    tests = {
        (figure.name, answer.question, one.key): one.test
        for figure in figures
        for answer in figure.answers
        for one in answer.comparisons
    }
    places = {str(place): place for place in tests}
    sweep = correct_family("all tests", {str(place): test for place, test in tests.items()}, correction="bh")
    adjusted = {places[place]: p for place, p in sweep.p_adjusted.items()}
    return Report(figures, adjusted, len(tests), () if labels is None else labels.notes)


def _figure(
    figure: FigureCells, cell_rows: pd.DataFrame, interval: Interval, *, labels: Labels | None, sensitivity: bool
) -> FigureReport:
    answers = answers_of(figure)
    stated = stated_answers(figure, labels) if labels is not None else None
    answers += [stated] if stated is not None else []
    primary = primary_of(figure, answers)
    answers.sort(key=lambda answer: answer.question != primary.question)
    estimates = tuple(cell_estimates(figure, interval))
    failures = tuple(failures_of(figure, cell_rows))
    experiments = Counter(str(name) for cell in figure.cells for name in cell.runs["experiment"] if name)
    return FigureReport(
        figure.name,
        tuple(sorted(experiments)),
        primary,
        tuple(answers),
        estimates,
        tuple(model_summaries(figure, interval)),
        failures,
        tuple(limits_of(figure, answers, estimates, failures)),
        tuple(_others(figure, answers, failures)) if sensitivity else (),
    )


def _others(figure: FigureCells, answers: Sequence[Answers], failures: Sequence[Failures]) -> list[Other]:
    tests = [other for answer in answers for other in other_tests(answer)]
    return [*tests, *across_cells(figure), *failure_tests(figure, failures)]
