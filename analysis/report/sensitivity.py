"""Owns what is shown on request only: other tests of the same comparisons, and other summaries of the same runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from analysis.report.cell_runs import Column
from analysis.report.comparison import Comparison, conditional
from analysis.report.estimates import Failures
from analysis.report.families import Answers, FigureCells
from analysis.stats.estimate import ONE_TRAJECTORY, Alternative, Estimate, TestResult
from analysis.stats.failures import failure_test
from analysis.stats.hypothesis_tests import cluster_t_test, sign_flip_test, two_sample_test
from analysis.stats.sensitivity import (
    brunner_munzel_test,
    mann_whitney_test,
    mean_and_iqm,
    performance_profile,
    probability_of_improvement,
)

THRESHOLDS: Final = (0.0, 0.05, 0.1, 0.2, 0.5)
"""Values of tau in the profiles P(GD > tau)."""


@dataclass(frozen=True, slots=True)
class Other:
    """A result beside the primary analysis: uncorrected, and never a ground for a claim of its own."""

    figure: str
    question: str
    """Question that it belongs to; `across cells` or `failures` elsewhere."""
    label: str
    score: str
    method: str
    value: float
    """The estimate, or the test statistic."""
    low: float
    high: float
    p: float
    n: int
    reason: str


def other_tests(answers: Answers) -> Iterator[Other]:
    """Yield other tests of a family's comparisons, on the same independent units.

    Both sides as groups: Mann-Whitney, Brunner-Munzel, and the two-sample permutation where the primary test is of
    pairs; there, too, Student's t where the primary test is of sign flips, and the other way round.
    """
    for one in answers.comparisons:
        alternative: Alternative = one.test.alternative
        tests = []
        if one.sides is not None:
            left, right = one.sides
            tests.append(mann_whitney_test(left, right, alternative=alternative))
            tests.append(brunner_munzel_test(left, right, alternative=alternative))
            if one.differences is not None:
                tests.append(two_sample_test(left, right, alternative=alternative))
        if one.differences is not None:
            flips = one.scope != "trajectories"
            tests.append(
                cluster_t_test(one.differences, range(one.differences.size), alternative=alternative)
                if flips
                else sign_flip_test(one.differences, alternative=alternative)
            )
        for test in tests:
            yield _row(answers.figure, answers.question, one, conditional(test, one.scope))


def across_cells(figure: FigureCells) -> Iterator[Other]:
    """Yield, a model: mean and interquartile mean, profiles, and the probability that it drifts less than another.

    Runs are resampled within cells; those that share trajectories enter as the means of their trajectories.
    """
    for score in figure.cells[0].scores:
        scores = {
            model: {_place(cell.names): cell.clipped(score).unit_means() for cell in cells}
            for model, cells in figure.by_model()
        }
        single = {model: _reason(figure, model, score) for model in scores}
        for model, cells in scores.items():
            values = list(cells.values())
            both = mean_and_iqm(values)
            shown = [("mean", both.mean), ("interquartile mean", both.iqm)]
            profile = performance_profile(values, THRESHOLDS)
            shown += [(f"P(GD > {tau:g})", share) for tau, share in zip(THRESHOLDS, profile, strict=True)]
            for method, estimate in shown:
                yield _estimated(figure.name, model, score, method, estimate, single[model])
        for model, other in combinations(scores, 2):
            places = [place for place in scores[model] if place in scores[other]]
            here, there = ([scores[one][place] for place in places] for one in (model, other))
            improvement = probability_of_improvement(here, there)
            reason = single[model] or single[other]
            label = f"{model} drifts less than {other}"
            yield _estimated(figure.name, label, score, "probability of improvement", improvement, reason)


def failure_tests(figure: FigureCells, failures: Sequence[Failures]) -> Iterator[Other]:
    """Yield Boschloo's test of every cell's failures against those of its baseline."""
    by_cell = {one.cell: one for one in failures}
    for cell in figure.cells:
        here, there = by_cell.get(str(cell.names["cell"])), by_cell.get(str(cell.names["baseline_cell"]))
        if here is None or there is None:
            continue
        test = failure_test((here.n_failed, here.n_runs), (there.n_failed, there.n_runs))
        yield Other(
            figure.name,
            "failures",
            f"{here.label} - its baseline",
            "",
            test.method,
            test.statistic,
            math.nan,
            math.nan,
            test.p,
            test.n,
            test.reason,
        )


def _row(figure: str, question: str, one: Comparison, test: TestResult) -> Other:
    return Other(
        figure,
        question,
        one.label,
        one.score,
        test.method,
        test.statistic,
        math.nan,
        math.nan,
        test.p,
        test.n,
        test.reason,
    )


def _estimated(figure: str, label: str, score: Column, method: str, estimate: Estimate, reason: str) -> Other:
    low, high = (math.nan, math.nan) if reason else (estimate.low, estimate.high)
    told = reason or estimate.reason
    return Other(figure, "across cells", label, score, method, estimate.value, low, high, math.nan, estimate.n, told)


def _place(names: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(names[name]) for name in ("system_goal", "elicitation", "n_instrumental"))


def _reason(figure: FigureCells, model: str, score: Column) -> str:
    """Return why nothing can be said of other trajectories than those of a model's cells, where that is so."""
    cells = dict(figure.by_model())[model]
    one = any(cell.sample(score).units.scope == "one trajectory" for cell in cells)
    return ONE_TRAJECTORY if one else ""
