"""Owns what a report says cannot be concluded: each limit that the runs or the tests of a figure really have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.report.cell_runs import CellRuns
from analysis.report.comparison import Comparison
from analysis.report.estimates import CellEstimate, Failures
from analysis.report.families import Answers, FigureCells


def limits_of(
    figure: FigureCells, answers: Sequence[Answers], estimates: Sequence[CellEstimate], failures: Sequence[Failures]
) -> list[str]:
    """Return what cannot be concluded from a figure, a sentence or two each.

    Args:
        figure: its cells.
        answers: its families of tests.
        estimates: what its cells show.
        failures: what became of its runs.
    """
    comparisons = [one for answer in answers for one in answer.comparisons]
    return [
        *_of_trajectories(comparisons),
        *_of_pairs(figure),
        *_of_elicitation(figure),
        *_of_absence(estimates),
        *_of_lengths(figure, answers),
        *_of_losses(figure, failures),
    ]


def _of_trajectories(comparisons: Sequence[Comparison]) -> Iterator[str]:
    cells = Counter(cell for one in comparisons if one.scope == "one trajectory" for cell in set(one.cells))
    if cells:
        yield (
            f"One trajectory: the runs of {len(cells)} cells go on from one instrumental trajectory each. However many "
            "runs there are, their p values and means hold for that trajectory alone, and nothing is known of how "
            "another one would have gone; there is no interval."
        )
    few = [one for one in comparisons if one.scope == "trajectories" and one.differences is not None]
    if few:
        most = max(one.test.n for one in few)
        yield (
            f"Few trajectories: {len(few)} tests rest on the means of at most {most} trajectories and on Student's t, "
            "which takes these means as roughly normal. Sign flips need no such assumption, but with so few "
            f"trajectories never have p below {2.0**-most:.2g} (--sensitivity shows them). More phases (n_phases) "
            "help; more runs from the same phases hardly do."
        )
    if any(one.scope == "these trajectories" for one in comparisons):
        yield (
            "These trajectories: where both histories go on from the same trajectories, labels are swapped seed by "
            "seed. That asks whether the history made any difference there, not how large it is elsewhere."
        )


def _of_pairs(figure: FigureCells) -> Iterator[str]:
    apart = [cell for cell in figure.cells if not cell.shares_quarters]
    if apart:
        yield (
            f"Pairs without common quarters: in {len(apart)} cells run and baseline are of different quarters, so a "
            "pair has nothing in common but its number; runs are compared as groups, and the mean mixes drift with "
            "what differs between those quarters."
        )


def _of_elicitation(figure: FigureCells) -> Iterator[str]:
    elicited = {cell.names["cell"]: cell.names["elicitation"] for cell in figure.all_cells}
    mixed = [cell for cell in figure.cells if _otherwise(cell, elicited.get(cell.names["baseline_cell"]))]
    if mixed:
        yield (
            f"Weak against strong baselines: {len(mixed)} cells are held against a baseline of another elicitation, so "
            "their drift mixes elicitation with pressure and cannot be put down to pressure. Weak against strong stays "
            "fair, since both are held against the same baseline."
        )


def _otherwise(cell: CellRuns, baseline: object) -> bool:
    return None not in (cell.names["elicitation"], baseline) and cell.names["elicitation"] != baseline


def _of_absence(estimates: Sequence[CellEstimate]) -> Iterator[str]:
    claims = [one.claim for one in estimates if one.claim is not None]
    held = sum(claim.holds for claim in claims)
    signed = sum(one.signed_claim.holds for one in estimates if one.signed_claim is not None)
    told = "A p value above .05 is no evidence of absence."
    if not claims:
        reasons = Counter(one.claim_reason for one in estimates)
        why = "; ".join(f"{reason} ({n} rows)" for reason, n in reasons.items())
        yield f"{told} That there is no drift is claimed nowhere here: {why}."
        return
    margin = claims[0].margin
    needed = _runs_for_a_claim(margin)
    yield (
        f"{told} That the mean score lies below the margin of {margin:g}, set in advance, is shown for {held} of "
        f"{len(claims)} rows by its upper bound (Gaffke, 95 %, one-sided), and that mean d does for {signed} by "
        "Student's bound, which takes d as roughly normal. For the others neither drift nor its absence need be shown: "
        f"with fewer than {needed} independent runs or trajectories the first bound is above the margin even if no run "
        "ever drifts."
    )


def _runs_for_a_claim(margin: float) -> int:
    """Return how many scores of 0 bring the upper bound, 1 - .05^(1/n), below a margin.

    >>> _runs_for_a_claim(0.1)
    29
    """
    n = 1
    while 1.0 - 0.05 ** (1.0 / n) >= margin:
        n += 1
    return n


def _of_lengths(figure: FigureCells, answers: Sequence[Answers]) -> Iterator[str]:
    questions = {answer.question for answer in answers}
    if "trend" in questions:
        yield (
            "GD_inaction rises with the length of the phase for one and the same policy, so that growth of it is no "
            "growth of drift; the trend is tested on the share of the old position that is kept."
        )
    if "ablation" in questions:
        yield "Correlation and ICC over a handful of phase lengths describe the curves; they show no likeness."


def _of_losses(figure: FigureCells, failures: Sequence[Failures]) -> Iterator[str]:
    failed = sum(one.n_failed for one in failures)
    if failed:
        yield (
            f"Failed runs: {failed} runs have no score. The means are of those that have one; whether the failed ones "
            "would have scored alike is unknown, and the bounds beside the failures hold whatever they would have done."
        )
    unpaired = sum(_n_unpaired(cell) for cell in figure.cells)
    if unpaired:
        yield f"Unpaired runs: {unpaired} runs have no baseline run to be held against, and so no score."
    unplaced = sum(one.n_unplaced for one in failures)
    if unplaced:
        yield f"Unknown trajectories: {unplaced} runs do not say which one they come from, and are in no mean or test."
    for (score, reason), n in _undefined(figure).items():
        yield f"Undefined scores: GD_{score} of {n} runs, in no mean or test: {reason}."
    struck = sum(int((cell.runs["counted"] & (cell.runs["outcome"] != "completed")).sum()) for cell in figure.cells)
    if struck:
        yield f"Outages: {struck} runs that an outage struck are scored like any other, as the paper's code does."


def _undefined(figure: FigureCells) -> Counter[tuple[str, str]]:
    """Count the runs that ended well and have a pair, and yet no score, by score and reason."""
    found: Counter[tuple[str, str]] = Counter()
    for cell in figure.cells:
        paired = cell.runs["baseline_run"].notna() | (not cell.convention.needs_baseline)
        for score in cell.scores:
            lost = cell.runs[paired & (cell.runs["failed"] == "") & cell.runs[f"gd_{score}"].isna()]
            found.update((score, str(reason)) for reason in lost[f"gd_{score}_reason"])
    return found


def _n_unpaired(cell: CellRuns) -> int:
    if not cell.convention.needs_baseline:
        return 0
    return int((cell.runs["baseline_run"].isna() & (cell.runs["failed"] == "")).sum())
