"""Owns what the report computes on: the runs of a cell as numbers, and which of them are independent of each other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from analysis.conventions import Convention, ScoreName, drift_sign, one_convention
from analysis.figure_names import figure_name
from analysis.run_table import CELL_COLUMNS
from analysis.stats.clusters import cluster_means
from analysis.stats.samples import FloatArray

Scope = Literal["runs", "trajectories", "these trajectories", "one trajectory"]
"""What a p value speaks of: all runs of this kind; all trajectories; runs that go on from the trajectories that were
played; or from the only one."""

Column = Literal["actions", "inaction", "retained"]


@dataclass(frozen=True, slots=True)
class Units:
    """Which runs go together: runs that share a trajectory, or a seed, are no independent observations."""

    labels: tuple[int, ...] | None
    """One number a run, equal where runs go together; None where every run is independent."""
    scope: Scope

    @property
    def n(self) -> int | None:
        """Independent units where runs share some; None where every run is one."""
        return None if self.labels is None else len(set(self.labels))


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs of one or more cells that have a value."""

    values: FloatArray
    seeds: tuple[int, ...]
    clusters: tuple[str, ...]

    @property
    def units(self) -> Units:
        """The independent units of the sample."""
        return units_of(self.seeds, self.clusters)

    def unit_means(self) -> FloatArray:
        """Return the mean of each independent unit, or all values where every run is one."""
        labels = self.units.labels
        return self.values if labels is None else cluster_means(self.values, labels)


@dataclass(frozen=True, slots=True)
class CellRuns:
    """A cell with its runs, as the report needs them."""

    names: Mapping[str, Any]
    """What names the cell, by `CELL_COLUMNS`; missing levels are None."""
    figure: str
    """Name of the figure that shows it; empty for a baseline."""
    runs: pd.DataFrame
    """Its rows of `analysis.run_table.runs_table`."""
    convention: Convention

    @property
    def scores(self) -> tuple[ScoreName, ...]:
        """The scores that its setting has under the convention."""
        return self.convention.scores_in(str(self.names["setting"]))

    @property
    def shares_quarters(self) -> bool:
        """Whether its pairs are of the same quarters of a market; so, too, where the convention needs no pairs."""
        return not (self.runs["shares_quarters"] == False).any()  # noqa: E712 - the column may hold None

    @property
    def n_unplaced(self) -> int:
        """Scored runs whose record does not say which trajectory they come from; they are in no sample."""
        return int((_is_scored(self.runs) & (self.runs["cluster"] == "")).sum())

    def sample(self, column: Column) -> Sample:
        """Return the signed drift of its runs, or the share of the old position kept; the score where none is signed.

        A convention without a baseline has no signed drift; its score then stands in.
        """
        if column == "retained":
            values = self.runs["retained_frac"].where(self.runs["counted"].astype(bool))
        else:
            values = self.runs[f"{'d' if self.convention.needs_baseline else 'gd'}_{column}"]
        return self._sample(values.to_numpy(float))

    def clipped(self, column: ScoreName) -> Sample:
        """Return the scores of its runs."""
        return self._sample(self.runs[f"gd_{column}"].to_numpy(float))

    def sides(self, column: ScoreName) -> tuple[Sample, FloatArray]:
        """Return the measure of its runs, and of the baseline runs that they are paired with; both rise with drift."""
        measure = self.convention.measure_in(str(self.names["setting"])) if column == "actions" else "psi"
        sign = drift_sign(measure)
        kept = self.runs[self._placed(self.runs[f"d_{column}"].to_numpy(float))]
        own = self._sample(sign * self.runs[f"{column}_own"].where(self.runs[f"d_{column}"].notna()).to_numpy(float))
        return own, sign * kept.drop_duplicates("baseline_run")[f"{column}_baseline"].to_numpy(float)

    def _placed(self, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(~np.isnan(values) & (self.runs["cluster"] != "").to_numpy())

    def _sample(self, values: FloatArray) -> Sample:
        kept = self._placed(values)
        rows = self.runs[kept]
        return Sample(values[kept], tuple(int(seed) for seed in rows["seed"]), tuple(map(str, rows["cluster"])))


def cells_of(runs: pd.DataFrame, convention: Convention) -> list[CellRuns]:
    """Return the cells of a table of runs, in its order.

    Args:
        runs: rows of one convention, from `analysis.run_table.runs_table`.
        convention: the one that they were scored in.

    Raises:
        ValueError: for rows of more than one convention, or of another one.
    """
    if one_convention(runs) != convention.name:
        raise ValueError(f"the runs are scored in {one_convention(runs)!r}, not in {convention.name!r}")
    cells = []
    for _, rows in runs.groupby("cell", sort=False):
        first = rows.iloc[0]
        names = {name: None if pd.isna(first[name]) else first[name] for name in CELL_COLUMNS}
        names["factors"] = names["factors"] or ""
        cells.append(CellRuns(names, figure_name(names), rows, convention))
    return cells


def pooled(samples: Sequence[Sample]) -> Sample:
    """Return all runs of several samples as one."""
    values = np.concatenate([np.empty(0), *(sample.values for sample in samples)])
    seeds = tuple(seed for sample in samples for seed in sample.seeds)
    return Sample(values, seeds, tuple(cluster for sample in samples for cluster in sample.clusters))


def units_of(seeds: Sequence[int], *clusterings: Sequence[str]) -> Units:
    """Return which runs go together: those of one seed, one cluster of any clustering, and whatever that chains up.

    Where all runs hang together by one trajectory, nothing is known of others: the units are then the seeds, and what
    is computed holds for that trajectory alone.

    Args:
        seeds: one a run.
        clusterings: trajectories, one label a run each; two for pairs of runs that come from two of them.

    >>> units_of([1, 2, 3, 4], ["a", "b", "a", "b"])
    Units(labels=(0, 1, 0, 1), scope='trajectories')
    >>> units_of([1, 2, 3], ["a", "b", "c"]), units_of([1, 2, 3], ["a", "a", "a"])
    (Units(labels=None, scope='runs'), Units(labels=None, scope='one trajectory'))
    """
    by_seed = _components(seeds)
    together = _components(seeds, *clusterings)
    if len(set(together)) == 1 < len(set(by_seed)):
        return Units(_or_none(by_seed), "one trajectory")
    shares_trajectory = len(set(together)) < len(set(by_seed))
    return Units(_or_none(together), "trajectories" if shares_trajectory else "runs")


def _or_none(labels: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if len(set(labels)) == len(labels) else labels


def _components(*labelings: Sequence[Hashable]) -> tuple[int, ...]:
    """Number the groups of places that share a label in any labeling, directly or through others."""
    parents = list(range(len(labelings[0])))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for labels in labelings:
        first: dict[Hashable, int] = {}
        for place, label in enumerate(labels):
            parents[root(place)] = root(first.setdefault(label, place))
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(root(place), len(numbers)) for place in range(len(parents)))


def _is_scored(runs: pd.DataFrame) -> pd.Series[bool]:
    return runs["gd_actions"].notna() | runs["gd_inaction"].notna()
