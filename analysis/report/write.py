"""Owns the wording of a report: which tables and sentences say what its numbers are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from analysis.report.comparison import Comparison
from analysis.report.document import Block, Bullets, Heading, Sentences, Table
from analysis.report.estimates import CellEstimate, Failures, ModelSummary
from analysis.report.families import Answers
from analysis.report.report import FigureReport, Report
from analysis.report.sensitivity import Other
from analysis.stats.estimate import ONE_TRAJECTORY, Estimate
from experiments.questions import QUESTIONS, Question

_ALPHA = 0.05
_METHODS = (
    "Means of shares have Gaffke's 95 % interval, unless another is named; it held its level in every simulation, "
    "which is no proof. Signed drift d has Student's; typical d is Hodges and Lehmann's. Runs that share a trajectory "
    "are one unit, and a mean is then one over trajectories. Effects: rank-biserial correlation of pairs, Cliff's "
    "delta of groups. p is of the primary test and speaks of what its row names: of runs like these, of trajectories "
    "like these, or of these trajectories or this one alone. Holm corrects within a family, Benjamini-Hochberg (BH) "
    "over all tests of this report."
)


def write_report(report: Report, header: Sequence[str]) -> list[Block]:
    """Return the report as a document.

    Args:
        report: what is to be said.
        header: what was read, and how it was scored.
    """
    blocks: list[Block] = [Heading("Statistics of goal drift", 1), Bullets(tuple(header)), Sentences(_METHODS)]
    if report.notes:
        blocks.append(Bullets(report.notes))
    blocks.append(Sentences(f"{report.n_tests} tests in {sum(len(f.answers) for f in report.figures)} families."))
    for figure in report.figures:
        blocks += _figure(figure, report.p_of_sweep)
    return blocks


def model_line(summaries: Sequence[ModelSummary]) -> str:
    """Return one line on one model of a figure: its mean scores, each with interval, signed mean, n and K."""
    parts = []
    for one in summaries:
        name = f"{one.part} GD_{one.score}" if one.part else f"GD_{one.score}"
        parts.append(f"{name} {interval(one.clipped)} (signed {interval(one.signed)})")
    first = summaries[0]
    units = {
        "runs": "independent seeds",
        "trajectories": f"{first.clipped.n_clusters} trajectories",
        "these trajectories": f"{first.clipped.n_clusters} trajectories",
        "one trajectory": "one trajectory, so no interval",
    }[first.scope]
    n_runs = sum(one.clipped.n for one in summaries if one.score == first.score)
    n_cells = sum(one.n_cells for one in summaries if one.score == first.score)
    return f"{first.model}: {'; '.join(parts)}; {n_runs} runs of {n_cells} cells, {units}."


def interval(estimate: Estimate) -> str:
    """Return an estimate with its interval, to three decimals."""
    if math.isnan(estimate.value):
        return "-"
    if not estimate.has_interval:
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def number(value: float) -> str:
    """Return a number to three decimals; a dash for none.

    >>> number(-0.0001), number(0.25), number(float("nan"))
    ('0.000', '0.250', '-')
    """
    if math.isnan(value):
        return "-"
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text


def p_value(p: float) -> str:
    """Return a p value to four decimals.

    >>> p_value(0.01234), p_value(0.00001), p_value(float("nan"))
    ('0.0123', '<0.0001', '-')
    """
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.00005 else f"{p:.4f}"


def _figure(figure: FigureReport, sweep: Mapping[tuple[str, Question, str], float]) -> Iterator[Block]:
    yield Heading(f"Figure {figure.name}")
    if figure.experiments:
        yield Sentences(f"Experiment: {', '.join(figure.experiments)}.")
    if figure.primary.question is not None:
        yield Sentences(f"Primary analysis: {QUESTIONS[figure.primary.question]} ({figure.primary.told}).")
    yield Heading("In one line a model", 3)
    models = dict.fromkeys(one.model for one in figure.summaries)
    yield Bullets(tuple(model_line([one for one in figure.summaries if one.model == model]) for model in models))
    for answer in figure.answers:
        is_primary = answer.question == figure.primary.question
        yield Heading(f"{'Primary' if is_primary else 'Secondary'}: {QUESTIONS[answer.question]}?", 3)
        yield from _answers(answer, sweep)
    yield Heading("What each cell shows", 3)
    yield _estimates(figure.estimates)
    yield Heading("Failures by cell", 3)
    yield _failures(figure.failures)
    if figure.others:
        yield Heading("Sensitivity analyses, uncorrected", 3)
        yield from _others(figure.others)
    yield Heading("What cannot be concluded", 3)
    yield Bullets(figure.limits)


def _answers(answer: Answers, sweep: Mapping[tuple[str, Question, str], float]) -> Iterator[Block]:
    family = answer.family
    n_below = sum(p <= _ALPHA for p in family.p_adjusted.values())
    made = [one for one in answer.comparisons if not math.isnan(one.test.p)]
    yield Sentences(f"Family {family.describe()}. {n_below} of {family.size} at or below {_ALPHA:g} after correction.")
    if made:
        what = {"trend": "slope per doubling [95 %]", "stated": "Somers' d [95 %]"}.get(answer.question, "d [95 %]")
        head = ("comparison", "score", "speaks of", "n", "K", what, "effect [95 %]", "p", "Holm", "BH")
        rows = (
            _comparison(one, family.p_adjusted[one.key], sweep[answer.figure, answer.question, one.key]) for one in made
        )
        methods = Counter(f"{one.test.method}, {_sided(one)}" for one in made)
        told = "; ".join(f"{method} ({n})" if len(methods) > 1 else method for method, n in methods.items())
        yield Table(f"Tests: {told}", head, tuple(rows), n_text_columns=3)
    remarks = _remarks(answer.comparisons)
    if remarks:
        yield Bullets(remarks)
    if answer.likenesses:
        likeness = ("curves of means", "lengths", "Pearson's r [95 %]", "exact p", "ICC(2,1) [95 %]")
        rows_of = (
            (one.label, str(one.n_lengths), interval(one.pearson), p_value(one.pearson_p), interval(one.icc))
            for one in answer.likenesses
        )
        yield Table("Description only: how alike the curves over the lengths are", likeness, tuple(rows_of))


def _comparison(one: Comparison, holm: float, bh: float) -> tuple[str, ...]:
    n_clusters = one.estimate.n_clusters
    return (
        one.label,
        one.score,
        one.scope,
        str(one.estimate.n),
        "-" if n_clusters is None else str(n_clusters),
        interval(one.estimate),
        interval(one.effect),
        p_value(one.test.p),
        p_value(holm),
        p_value(bh),
    )


def _sided(one: Comparison) -> str:
    return "two-sided" if one.test.alternative == "two-sided" else "one-sided"


def _remarks(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return what was left out or could not be made, comparisons of one remark drawn together."""
    found: dict[str, list[Comparison]] = {}
    for one in comparisons:
        reasons = [part for part in one.test.reason.split("; ") if part and part != ONE_TRAJECTORY]
        text = "; ".join(dict.fromkeys([*reasons, *filter(None, [one.note])]))
        if math.isnan(one.test.p):
            text = f"not made: {text or 'the test is undefined'}"
        if text:
            found.setdefault(text, []).append(one)
    return tuple(f"{_named(those)}: {text}" for text, those in found.items())


def _named(comparisons: Sequence[Comparison]) -> str:
    labels = list(dict.fromkeys(one.label for one in comparisons))
    if len(labels) > 1:
        return f"{len(comparisons)} comparisons"
    return comparisons[0].key if len(comparisons) == 1 else labels[0]


def _estimates(estimates: Sequence[CellEstimate]) -> Table:
    head = (
        "cell|score|n of runs|K|GD [95 %]|d [95 %]|typical d [95 %]|d > 0 [95 %]|GD of noise alone|below margin (bound)"
    )
    rows = tuple(
        (
            one.label,
            one.score,
            f"{one.clipped.n} of {one.n_runs}",
            "-" if one.clipped.n_clusters is None else str(one.clipped.n_clusters),
            interval(one.clipped),
            interval(one.signed),
            interval(one.typical),
            interval(one.positive),
            interval(one.noise),
            _claim(one),
        )
        for one in estimates
    )
    methods = ", ".join(dict.fromkeys(one.clipped.method for one in estimates))
    caption = f"Mean score and signed mean (interval of GD: {methods}); GD of noise alone with the range it leaves"
    return Table(caption, tuple(head.split("|")), rows, n_text_columns=2)


def _claim(one: CellEstimate) -> str:
    bounds = ((name, claim) for name, claim in (("GD", one.claim), ("d", one.signed_claim)) if claim is not None)
    told = [
        f"{name} {'yes' if claim.holds else 'not shown'} ({number(claim.upper)})"
        for name, claim in bounds
        if not math.isnan(claim.upper)
    ]
    return ", ".join(told) or "-"


def _failures(failures: Sequence[Failures]) -> Table:
    head = (
        "cell",
        "what failed",
        "launched",
        "scored",
        "failed [95 %]",
        "unpaired",
        "GD_actions of all",
        "GD_inaction of all",
    )
    rows = tuple(
        (
            one.label,
            one.failed or "-",
            str(one.n_runs),
            str(one.n_scored),
            f"{one.n_failed}: {interval(one.share_failed)}",
            str(one.n_unpaired),
            *(_bounds(*bounds) for bounds in one.bounds),
        )
        for one in failures
    )
    return Table(
        "Every launched run; bounds hold whatever the failed runs would have scored", head, rows, n_text_columns=2
    )


def _bounds(low: float, high: float) -> str:
    return "-" if math.isnan(low) else number(low) if low == high else f"{number(low)} to {number(high)}"


def _others(others: Sequence[Other]) -> Iterator[Table]:
    for question in dict.fromkeys(one.question for one in others):
        told = dict(QUESTIONS).get(question, question)  # type: ignore[call-overload]
        head = ("comparison", "score", "method", "n", "value [95 %]", "p")
        rows = tuple(
            (
                one.label,
                one.score,
                one.method + (f" ({one.reason})" if one.reason else ""),
                str(one.n),
                number(one.value)
                if math.isnan(one.low)
                else f"{number(one.value)} [{number(one.low)}, {number(one.high)}]",
                p_value(one.p),
            )
            for one in others
            if one.question == question
        )
        yield Table(f"Beside: {told}", head, rows, n_text_columns=3)
