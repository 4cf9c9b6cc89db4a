"""Owns the comparisons over all lengths of the instrumental phase: the trend, and an ablation against its original."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.conventions import ScoreName
from analysis.report.cell_runs import CellRuns, Sample, Scope, Units, pooled
from analysis.report.comparison import Comparison, conditional, of_groups, of_pairs, scoped, untested
from analysis.stats.ablation import ablation_test, paired_ablation_test
from analysis.stats.agreement import icc_2_1
from analysis.stats.association import pearson_interval, pearson_test
from analysis.stats.estimate import Estimate, join_reasons
from analysis.stats.samples import FloatArray
from analysis.stats.trend import block_table, page_test, slope_per_doubling

_LENGTHS_MOST = 8


@dataclass(frozen=True, slots=True)
class Likeness:
    """How an ablation's mean scores go along with the original's over the lengths: a description, no test of it."""

    label: str
    n_lengths: int
    pearson: Estimate
    """Blind to an offset between the two, and with five lengths hardly known at all."""
    pearson_p: float
    """Exact permutation p of it, described and not corrected."""
    icc: Estimate
    """ICC(2,1): falls when one curve lies above the other."""


def trend_of(cells: Sequence[CellRuns], label: str) -> Comparison:
    """Ask whether the share of the old position that is kept grows with the phase: Page's test within blocks.

    Blocks are trajectories, which serve several lengths, or seeds where no trajectory is shared. psi is not tested: it
    rises with the length for one and the same policy.

    Args:
        cells: one model's cells of a figure, one a phase length.
        label: what to call the comparison.
    """
    model, names = str(cells[0].names["model"]), [str(cell.names["cell"]) for cell in cells]
    lengths = sorted({int(cell.names["n_instrumental"]) for cell in cells})
    if not 2 <= len(lengths) <= _LENGTHS_MOST:
        reason = f"{len(lengths)} phase lengths, where 2 to {_LENGTHS_MOST} make a trend that can be tested"
        return untested(label, model, "retained", cells=names, reason=reason)
    samples = [cell.sample("retained") for cell in cells]
    sample = pooled(samples)
    at = np.concatenate(
        [np.full(s.values.size, float(c.names["n_instrumental"])) for c, s in zip(cells, samples, strict=True)]
    )
    if not sample.values.size:
        return untested(label, model, "retained", cells=names, reason="nothing to sell in any run")
    units = sample.units
    blocks = _blocks(sample, units)
    table = block_table(sample.values, at, blocks=blocks).reindex(columns=[float(length) for length in lengths])
    slope = slope_per_doubling(sample.values, at, clusters=blocks)
    test = page_test(table.to_numpy())
    declared = untested(label, model, "retained", cells=names, reason="")
    estimate, tested = scoped(slope, units.scope), conditional(test, units.scope)
    return replace(declared, design="blocks", scope=units.scope, estimate=estimate, test=tested)


def ablation_of(
    original: Mapping[int, CellRuns], ablated: Mapping[int, CellRuns], score: ScoreName, label: str
) -> tuple[Comparison, Likeness | None]:
    """Ask whether an ablated history changes drift at any phase length, by permuting the labels within lengths.

    Args:
        original: cells of one model with its own history, by phase length.
        ablated: cells of the same model with the ablated history, by phase length.
        score: what is compared.
        label: what to call the comparison.

    Returns:
        The comparison, and how alike the two curves of means are; None with fewer than three lengths.
    """
    lengths = sorted(set(original) & set(ablated))
    lone = sorted(set(original) ^ set(ablated))
    note = f"phase lengths on one side only, left out: {', '.join(map(str, lone))}" if lone else ""
    both = [(original[length], ablated[length]) for length in lengths]
    cells = [str(cell.names["cell"]) for pair in both for cell in pair]
    model = str(next(iter(ablated.values())).names["model"])
    if not lengths:
        reason = join_reasons("no phase length has both histories", note)
        return untested(label, model, score, cells=cells, reason=reason), None
    a, b = ([pair[side].sample(score) for pair in both] for side in (0, 1))
    paired = all(cell.shares_quarters for pair in both for cell in pair)
    made = _swapped(a, b, lengths) if paired else _permuted(a, b, lengths)
    made = replace(made, label=label, model=model, score=score, cells=tuple(cells), note=join_reasons(note, made.note))
    return made, _likeness(a, b, f"{label}, {score}")


def _swapped(a: Sequence[Sample], b: Sequence[Sample], lengths: Sequence[int]) -> Comparison:
    """Compare block by block, where both histories have the same seeds.

    Where a seed's runs go on from one trajectory under either history, they differ by the history alone, and labels are
    swapped seed by seed: the test then speaks of the trajectories that were played. Else blocks are trajectories.
    """
    every = pooled([*a, *b])
    units = every.units
    of_seed: dict[int, set[str]] = {}
    for seed, cluster in zip(every.seeds, every.clusters, strict=True):
        of_seed.setdefault(seed, set()).add(cluster)
    by_seed = units.scope == "trajectories" and all(len(clusters) == 1 for clusters in of_seed.values())
    tables = _block_tables(a, b, lengths, blocks=every.seeds if by_seed else _blocks(every, units))
    means = tables if not by_seed else _block_tables(a, b, lengths, blocks=_blocks(every, units))
    difference = means[1] - means[0]
    differences = np.nanmean(difference[~np.isnan(difference).all(axis=1)], axis=1)
    made = of_pairs(differences, Units(None, units.scope))
    n_clusters = None if units.scope == "runs" else differences.size
    scope: Scope = "these trajectories" if by_seed else units.scope
    estimate = scoped(replace(made.estimate, n=every.values.size, n_clusters=n_clusters), units.scope)
    test = conditional(paired_ablation_test(*tables), units.scope)
    sides = (pooled(b).unit_means(), pooled(a).unit_means())
    return replace(made, design="blocks", scope=scope, estimate=estimate, test=test, sides=sides)


def _block_tables(
    a: Sequence[Sample], b: Sequence[Sample], lengths: Sequence[int], *, blocks: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return the means of both histories, one row a block and one column a length."""
    n_first = sum(sample.values.size for sample in a)
    tables = []
    for samples, here in ((a, blocks[:n_first]), (b, blocks[n_first:])):
        at = np.concatenate([np.full(s.values.size, float(i)) for s, i in zip(samples, lengths, strict=True)])
        table = block_table(pooled(samples).values, at, blocks=here)
        table = table.reindex(index=sorted(set(blocks)), columns=[float(length) for length in lengths])
        tables.append(table.to_numpy(float))
    return tables[0], tables[1]


def _permuted(a: Sequence[Sample], b: Sequence[Sample], lengths: Sequence[int]) -> Comparison:
    """Compare runs against runs within each length; those of one trajectory count once where others exist."""
    made = of_groups(pooled(b), pooled(a))
    own, other = ({float(length): s.unit_means() for length, s in zip(lengths, side, strict=True)} for side in (a, b))
    return replace(made, test=conditional(ablation_test(own, other), made.scope))


def _likeness(a: Sequence[Sample], b: Sequence[Sample], label: str) -> Likeness | None:
    means = np.array([[_mean(one), _mean(other)] for one, other in zip(a, b, strict=True)])
    means = means[~np.isnan(means).any(axis=1)]
    if len(means) < 3:
        return None
    p = pearson_test(means[:, 0], means[:, 1]).p
    return Likeness(label, len(means), pearson_interval(means[:, 0], means[:, 1]), p, icc_2_1(means))


def _mean(sample: Sample) -> float:
    return float(sample.unit_means().mean()) if sample.values.size else math.nan


def _blocks(sample: Sample, units: Units) -> tuple[int, ...]:
    return tuple(range(sample.values.size)) if units.labels is None else units.labels
