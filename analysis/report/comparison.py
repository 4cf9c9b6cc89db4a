"""Owns one comparison of a report: a difference with its interval, its effect size and its primary test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal, NamedTuple

import numpy as np

from analysis.conventions import ScoreName
from analysis.report.cell_runs import CellRuns, Column, Sample, Scope, Units, pooled, units_of
from analysis.stats.clusters import cluster_means
from analysis.stats.effects import cliffs_delta, hodges_lehmann, hodges_lehmann_shift, rank_biserial
from analysis.stats.estimate import LEVEL, ONE_TRAJECTORY, Estimate, TestResult, join_reasons
from analysis.stats.hypothesis_tests import cluster_t_test, sign_flip_test, two_sample_test
from analysis.stats.intervals import welch_interval
from analysis.stats.means import mean_interval
from analysis.stats.samples import FloatArray

Design = Literal["pairs", "groups", "blocks"]
"""`pairs`: one difference a seed; `groups`: runs against runs; `blocks`: over several phase lengths at once."""


_NARROWNESS: Final[tuple[Scope, ...]] = ("runs", "trajectories", "these trajectories", "one trajectory")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of a family of tests."""

    label: str
    """What is compared, within its family."""
    model: str
    score: Column
    cells: tuple[str, ...]
    """Ids of the cells that enter."""
    design: Design
    scope: Scope
    estimate: Estimate
    """Mean signed drift, or the difference of two; for trends the slope per doubling."""
    effect: Estimate
    """Rank-biserial correlation of pairs, Cliff's delta of groups."""
    shift: Estimate
    """Hodges-Lehmann estimate of the difference."""
    test: TestResult
    """The primary test."""
    note: str = ""
    """Seeds on one side only, and whatever else was left out."""
    differences: FloatArray | None = None
    """Differences of the independent units, for designs in pairs."""
    sides: tuple[FloatArray, FloatArray] | None = None
    """Values of the independent units of either side, as groups: what other tests are made from."""

    @property
    def key(self) -> str:
        """What tells it from all others of its family."""
        return f"{self.label}, {self.score}"


def untested(label: str, model: str, score: Column, *, cells: Sequence[str], reason: str) -> Comparison:
    """Return a comparison that was declared and cannot be made; it counts in the correction of its family."""
    nothing = Estimate(math.nan, math.nan, math.nan, 0, None, LEVEL, "none", reason)
    test = TestResult(math.nan, math.nan, "none", "two-sided", 0, False, reason)
    return Comparison(label, model, score, tuple(cells), "pairs", "runs", nothing, nothing, nothing, test)


def drift_of(cell: CellRuns, score: ScoreName, label: str) -> Comparison:
    """Ask whether the runs of a cell drift: pairs where they share quarters with their baseline, else groups.

    One-sided, towards the competing goal.
    """
    sample = cell.sample(score)
    if not cell.convention.needs_baseline:
        reason = f"convention {cell.convention.name} has no baseline to drift from"
        return untested(label, str(cell.names["model"]), score, cells=[str(cell.names["cell"])], reason=reason)
    own, baseline = cell.sides(score)
    if cell.shares_quarters:
        made = of_pairs(sample.values, sample.units, alternative="greater")
        made = replace(made, sides=(own.unit_means(), baseline))
    else:
        made = of_groups(own, baseline, alternative="greater")
        # The mean is that of the table of cells; the groups are for the test alone.
        mean = mean_interval(sample.values, sample.units.labels, method="t")
        made = replace(made, estimate=scoped(mean, made.scope))
    return replace(
        made,
        label=label,
        model=str(cell.names["model"]),
        score=score,
        cells=(str(cell.names["cell"]),),
        note=join_reasons(made.note, _unplaced(cell)),
    )


def contrast_of(pairs: Sequence[tuple[CellRuns, CellRuns]], score: ScoreName, label: str) -> Comparison:
    """Ask whether the first cells of some pairs drift otherwise than the second ones, over all pairs at once.

    By seed where every run shares its market with its baseline, else as groups. Two-sided.

    Args:
        pairs: cells that differ in one level alone.
        score: what is compared.
        label: what to call the comparison.
    """
    first, second = ([pair[side].sample(score) for pair in pairs] for side in (0, 1))
    cells = [cell for pair in pairs for cell in pair]
    if all(cell.shares_quarters for cell in cells):
        joined = [_joined(a, b) for a, b in zip(first, second, strict=True)]
        clusterings = (one.first for one in joined), (one.second for one in joined)
        seeds = tuple(chain.from_iterable(one.seeds for one in joined))
        units = units_of(seeds, *(tuple(chain.from_iterable(side)) for side in clusterings))
        made = of_pairs(np.concatenate([one.differences for one in joined]), units, alternative="two-sided")
    else:
        made = of_groups(pooled(first), pooled(second), alternative="two-sided")
    if made.design == "pairs":
        lone = join_reasons(*(_lone_seeds(a, b) for a, b in zip(first, second, strict=True)))
        made = replace(made, note=lone, sides=(pooled(first).unit_means(), pooled(second).unit_means()))
    return replace(
        made,
        label=label,
        model=str(cells[0].names["model"]),
        score=score,
        cells=tuple(str(cell.names["cell"]) for cell in cells),
        note=join_reasons(made.note, *map(_unplaced, cells)),
    )


def of_pairs(
    differences: FloatArray, units: Units, *, alternative: Literal["greater", "two-sided"] = "two-sided"
) -> Comparison:
    """Compare by one difference a seed: sign flips, or where runs share trajectories Student's t of these.

    Args:
        differences: one a seed and cell.
        units: which of them go together.
        alternative: of the test.
    """
    labels = units.labels
    means = differences if labels is None else cluster_means(differences, labels)
    if labels is not None and units.scope == "trajectories":
        test = cluster_t_test(differences, labels, alternative=alternative)
    else:
        test = sign_flip_test(differences, labels, alternative=alternative)
    return _comparison(
        "pairs",
        units.scope,
        estimate=scoped(mean_interval(differences, labels, method="t"), units.scope),
        effect=scoped(rank_biserial(means), units.scope),
        shift=scoped(hodges_lehmann(means), units.scope),
        test=conditional(test, units.scope),
        differences=means,
    )


def of_groups(
    a: Sample, b: Sample | FloatArray, *, alternative: Literal["greater", "two-sided"] = "two-sided"
) -> Comparison:
    """Compare two groups of runs by permutation of their independent units.

    Args:
        a: one group.
        b: the other; an array where its runs are independent whatever their seeds, as baselines are.
        alternative: of the test.
    """
    left, left_scope = a.unit_means(), a.units.scope
    right, right_scope = (b.unit_means(), b.units.scope) if isinstance(b, Sample) else (b, "runs")
    scope: Scope = max(left_scope, right_scope, key=_NARROWNESS.index)
    n_runs = a.values.size + (b.values.size if isinstance(b, Sample) else b.size)
    n_units = None if scope == "runs" else left.size + right.size
    return _comparison(
        "groups",
        scope,
        estimate=scoped(replace(welch_interval(left, right), n=n_runs, n_clusters=n_units), scope),
        effect=scoped(cliffs_delta(left, right), scope),
        shift=scoped(hodges_lehmann_shift(left, right), scope),
        test=conditional(two_sample_test(left, right, alternative=alternative), scope),
        sides=(left, right),
    )


def scoped(estimate: Estimate, scope: Scope) -> Estimate:
    """Return an estimate without its interval where that would speak of trajectories that were never played."""
    if scope != "one trajectory":
        return estimate
    reason = join_reasons(ONE_TRAJECTORY, estimate.reason)
    return replace(estimate, low=math.nan, high=math.nan, n_clusters=1, reason=reason)


def conditional(test: TestResult, scope: Scope) -> TestResult:
    """Return a test that says where it speaks of one trajectory alone."""
    return replace(test, reason=join_reasons(ONE_TRAJECTORY, test.reason)) if scope == "one trajectory" else test


def _comparison(
    design: Design,
    scope: Scope,
    *,
    estimate: Estimate,
    effect: Estimate,
    shift: Estimate,
    test: TestResult,
    differences: FloatArray | None = None,
    sides: tuple[FloatArray, FloatArray] | None = None,
) -> Comparison:
    unnamed = Comparison("", "", "actions", (), design, scope, estimate, effect, shift, test)
    return replace(unnamed, differences=differences, sides=sides)


class _Joined(NamedTuple):
    """Two cells seed by seed."""

    differences: FloatArray
    seeds: tuple[int, ...]
    first: tuple[str, ...]
    """Trajectory of each seed in the first cell."""
    second: tuple[str, ...]


def _joined(a: Sample, b: Sample) -> _Joined:
    """Return the differences of two cells seed by seed, with the seeds and the trajectories of both sides."""
    places = {seed: place for place, seed in enumerate(b.seeds)}
    both = [(place, places[seed]) for place, seed in enumerate(a.seeds) if seed in places]
    here, there = [one for one, _ in both], [other for _, other in both]
    return _Joined(
        a.values[here] - b.values[there],
        tuple(a.seeds[place] for place in here),
        tuple(a.clusters[place] for place in here),
        tuple(b.clusters[place] for place in there),
    )


def _lone_seeds(a: Sample, b: Sample) -> str:
    sides = (("first", set(a.seeds) - set(b.seeds)), ("second", set(b.seeds) - set(a.seeds)))
    return join_reasons(
        *(f"seeds in the {side} cell alone ({len(lone)}): {_listed(lone)}" for side, lone in sides if lone)
    )


def _listed(seeds: set[int]) -> str:
    shown = sorted(seeds)
    return ", ".join(map(str, shown[:10])) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def _unplaced(cell: CellRuns) -> str:
    return f"{cell.n_unplaced} runs of unknown trajectory left out" if cell.n_unplaced else ""
