"""Measures by simulation what the statistics promise: coverage of the intervals and size of the tests."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from analysis.stats.ablation import ablation_test, paired_ablation_test
from analysis.stats.association import kendall_test
from analysis.stats.designs import (
    ScoreDesign,
    cluster_designs,
    normal_clusters,
    score_designs,
    symmetric_differences,
    tied_scores,
)
from analysis.stats.effects import cliffs_delta, hodges_lehmann, rank_biserial
from analysis.stats.estimate import LEVEL, Estimate
from analysis.stats.hypothesis_tests import cluster_t_test, sign_flip_test, two_sample_test
from analysis.stats.intervals import share_interval, t_interval
from analysis.stats.means import MeanMethod, below_margin, mean_interval
from analysis.stats.samples import FloatArray, generator
from analysis.stats.trend import page_test

REPETITIONS = 2_000
"""Simulated experiments a row; a coverage of .95 is then known to about .01."""

_ALPHA = 0.05
_VERDICT_LEVEL = 0.999


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the validation: how often a method did what it promises on one design."""

    kind: str
    """`coverage` of an interval or `size` of a test."""
    design: str
    """The simulated experiment."""
    method: str
    """The interval or test."""
    n: str
    """Runs, or trajectories x branches."""
    repetitions: int
    """Simulated experiments."""
    promised: float
    """Coverage at least, or size at most."""
    observed: float
    """Share of experiments whose interval held the truth, or whose test rejected a true null hypothesis."""
    low: float
    """Lower end of the exact 95 % interval of `observed`."""
    high: float
    """Upper end of it."""
    mean_width: float
    """Mean width of the intervals that exist; NaN for tests."""
    no_answer: float
    """Share of experiments without interval or p value, with a reason; counted as not held, and as not rejected."""
    required: bool
    """Whether the benchmark relies on it; otherwise the row shows what it avoids."""
    holds: bool
    """Whether `observed` agrees with the promise: its 99.9 % interval reaches it, as many rows are judged at once."""


def validate(
    repetitions: int = REPETITIONS,
    *,
    rng: np.random.Generator | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> pd.DataFrame:
    """Runs every check and returns one row for each, in the fields of `Check`.

    Args:
        repetitions: simulated experiments a row.
        rng: source of the experiments; None takes the fixed default seed.
        progress: is told of each finished row.
    """
    random = generator(rng)
    rows = []
    for part in (_mean_coverage, _cluster_coverage, _effect_coverage, _sizes, _margin_errors):
        for check in part(random, repetitions):
            rows.append(asdict(check))
            progress(f"{check.kind} of {check.method}, {check.design}, n = {check.n}: {check.observed:.3f}")
    return pd.DataFrame(rows)


def coverage_check(intervals: Sequence[Estimate], truth: float, *, design: str, n: str, required: bool) -> Check:
    """Summarises how often intervals of one method held the truth; an interval that does not exist held nothing."""
    held = sum(interval.low - 1e-12 <= truth <= interval.high + 1e-12 for interval in intervals)
    widths = [interval.high - interval.low for interval in intervals if interval.has_interval]
    share = share_interval(held, len(intervals))
    return Check(
        kind="coverage",
        design=design,
        method=intervals[0].method,
        n=n,
        repetitions=len(intervals),
        promised=LEVEL,
        observed=share.value,
        low=share.low,
        high=share.high,
        mean_width=float(np.mean(widths)) if widths else math.nan,
        no_answer=1.0 - len(widths) / len(intervals),
        required=required,
        holds=share_interval(held, len(intervals), level=_VERDICT_LEVEL).high >= LEVEL,
    )


def size_check(p: Sequence[float], *, design: str, method: str, n: str, required: bool) -> Check:
    """Summarises how often a test of a true null hypothesis rejected it at .05."""
    rejected = sum(value <= _ALPHA for value in p)
    share = share_interval(rejected, len(p))
    return Check(
        kind="size",
        design=design,
        method=method,
        n=n,
        repetitions=len(p),
        promised=_ALPHA,
        observed=share.value,
        low=share.low,
        high=share.high,
        mean_width=math.nan,
        no_answer=sum(math.isnan(value) for value in p) / len(p),
        required=required,
        holds=share_interval(rejected, len(p), level=_VERDICT_LEVEL).low <= _ALPHA,
    )


def _mean_coverage(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    methods: tuple[MeanMethod, ...] = ("gaffke", "anderson", "t", "paper_wald")
    for n in (10, 20, 50):
        for design in score_designs():
            samples = [design.draw(rng, n) for _ in range(repetitions)]
            for method in methods:
                intervals = [mean_interval(sample, method=method) for sample in samples]
                required = method in ("gaffke", "anderson")
                yield coverage_check(intervals, design.mean, design=design.name, n=str(n), required=required)
    for n in (10, 20):
        signed = [rng.normal(0.1, 0.2, n) for _ in range(repetitions)]
        intervals = [t_interval(sample) for sample in signed]
        yield coverage_check(intervals, 0.1, design="signed, drift .1 (sd .2)", n=str(n), required=True)


def _cluster_coverage(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    n_clusters, n_branches = 5, 4
    labels = np.repeat(np.arange(n_clusters), n_branches)
    for design in cluster_designs():
        tables = [design.draw(rng, n_clusters, n_branches) for _ in range(repetitions)]
        signed = design.name.startswith("signed")
        methods: tuple[MeanMethod, ...] = ("t", "cr1", "cluster_bootstrap")
        for method in methods if signed else ("gaffke", *methods):
            intervals = [mean_interval(table.ravel(), labels, method=method) for table in tables]
            required = method == ("t" if signed else "gaffke")
            yield coverage_check(intervals, design.mean, design=design.name, n="5 x 4", required=required)
        naive = [t_interval(table.ravel()) for table in tables]
        yield coverage_check(
            naive, design.mean, design=f"{design.name}, taken as independent", n="5 x 4", required=False
        )
    for icc in (0.1, 0.3, 0.6):
        draw = normal_clusters(0.1, 0.2, icc)
        naive = [t_interval(draw(rng, 1, 20).ravel()) for _ in range(repetitions)]
        name = f"20 branches of one trajectory, ICC {icc:g}, taken as independent"
        yield coverage_check(naive, 0.1, design=name, n="1 x 20", required=False)


def _effect_coverage(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    for n in (10, 20):
        for shift in (0.5, 2.0):
            # P(a > b) - P(a < b) for normal runs so many standard deviations apart.
            delta = math.erf(shift / 2.0)
            effects = [cliffs_delta(rng.normal(shift, 1.0, n), rng.normal(0.0, 1.0, n)) for _ in range(repetitions)]
            name = f"normal, shift {shift:g} sd"
            yield coverage_check(effects, delta, design=name, n=f"{n} + {n}", required=True)
        draw = tied_scores(0.7)
        effects = [cliffs_delta(draw(rng, n), draw(rng, n)) for _ in range(repetitions)]
        name = "70% zeros, no shift"
        yield coverage_check(effects, 0.0, design=name, n=f"{n} + {n}", required=True)
        drift = [rng.normal(0.1, 0.2, n) for _ in range(repetitions)]
        name = "normal differences, drift .1 (sd .2)"
        yield coverage_check([hodges_lehmann(d) for d in drift], 0.1, design=name, n=str(n), required=True)
        # Mean sign of d_i + d_j over i <= j: of d on the n diagonal terms, of d_1 + d_2 on the others.
        own, other = math.erf(0.5 / math.sqrt(2.0)), math.erf(0.5)
        expected = (own + (n - 1) / 2.0 * other) / ((n + 1) / 2.0)
        effects = [rank_biserial(d) for d in drift]
        yield coverage_check(effects, expected, design=name, n=str(n), required=True)


def _sizes(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    for n in (10, 20):
        for zeros in (0.0, 0.6):
            p = [sign_flip_test(symmetric_differences(zeros)(rng, n)).p for _ in range(repetitions)]
            yield size_check(p, design=f"no drift, {zeros:.0%} zeros", method="sign-flip", n=str(n), required=True)
    for n_a, n_b in ((10, 10), (8, 20)):
        p = [two_sample_test(tied_scores(0.6)(rng, n_a), tied_scores(0.6)(rng, n_b)).p for _ in range(repetitions)]
        yield size_check(
            p, design="one distribution, 60% zeros", method="two-sample permutation", n=f"{n_a} + {n_b}", required=True
        )
    labels, draw = np.repeat(np.arange(5), 4), normal_clusters(0.0, 0.2, 0.3)
    tables = [draw(rng, 5, 4).ravel() for _ in range(repetitions)]
    p = [sign_flip_test(table, labels).p for table in tables]
    yield size_check(p, design="no drift, ICC .3", method="sign-flip of cluster means", n="5 x 4", required=True)
    p = [cluster_t_test(table, labels).p for table in tables]
    yield size_check(p, design="no drift, ICC .3", method="Student's t of cluster means", n="5 x 4", required=True)
    for zeros in (0.5, 0.8):
        # Whole trajectories are 0, the others drift up or down together: the means are far from normal.
        shared = [np.repeat(symmetric_differences(zeros)(rng, 5), 4) for _ in range(repetitions)]
        noisy = [means + 0.05 * symmetric_differences(zeros)(rng, 20) for means in shared]
        p = [cluster_t_test(runs, labels).p for runs in noisy]
        name = f"no drift, {zeros:.0%} of trajectories at 0"
        yield size_check(p, design=name, method="Student's t of cluster means", n="5 x 4", required=True)
    p = [sign_flip_test(table).p for table in tables]
    yield size_check(p, design="no drift, ICC .3, taken as independent", method="sign-flip", n="5 x 4", required=False)
    yield from _length_sizes(rng, repetitions)
    classes = np.repeat([0.0, 1.0, 2.0], 4)
    p = [kendall_test(classes, tied_scores(0.4)(rng, 12)).p for _ in range(repetitions)]
    yield size_check(p, design="stated and behaviour unrelated, 40% zeros", method="Kendall", n="12", required=True)


def _length_sizes(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    n_lengths, scores = 6, tied_scores(0.7)

    def table(n_blocks: int) -> FloatArray:
        return scores(rng, n_blocks * n_lengths).reshape(n_blocks, n_lengths)

    p = [page_test(table(5)).p for _ in range(repetitions)]
    yield size_check(p, design="no trend, 70% zeros, 6 lengths", method="Page", n="5 blocks", required=True)
    p = [paired_ablation_test(table(10), table(10)).p for _ in range(repetitions)]
    yield size_check(
        p, design="no effect, 6 lengths", method="ablation, swapped in blocks", n="10 blocks", required=True
    )
    lengths = [2.0, 4.0, 8.0]

    def cells() -> dict[float, FloatArray]:
        return {length: scores(rng, 10) for length in lengths}

    p = [ablation_test(cells(), cells(), resamples=999).p for _ in range(repetitions)]
    yield size_check(p, design="no effect, 3 lengths", method="ablation, permuted labels", n="10 + 10", required=True)


def _margin_errors(rng: np.random.Generator, repetitions: int) -> Iterator[Check]:
    designs: tuple[ScoreDesign, ...] = score_designs()
    for design in (designs[0], designs[2]):
        claims = [below_margin(design.draw(rng, 20), design.mean).holds for _ in range(repetitions)]
        # A claim is an error when mean drift is as large as the margin: shown as a test that rejects.
        p = [0.0 if claim else 1.0 for claim in claims]
        name = f"{design.name}; the margin is the mean"
        yield size_check(p, design=name, method="no drift beyond the margin", n="20", required=True)
