"""Owns the ways to score that are held side by side: every convention, as published and soundly paired."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS, ConventionName
from analysis.pairing import PairBy, pair_runs
from analysis.run_table import CELL_COLUMNS, runs_table
from analysis.runs import Run

SCORES: Final = ("gd_actions", "gd_inaction")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to score: a convention with its pairing, which says whether dead runs count."""

    convention: ConventionName
    pairing: PairBy

    @property
    def dead_runs(self) -> bool:
        """Whether runs that an outage struck are scored: only pairing by position does so, as the paper's code did."""
        return self.pairing == "position"

    @property
    def name(self) -> str:
        """Name in columns and tables.

        >>> Variant("reference", "position").name, Variant("paper", "run").name
        ('reference_published', 'paper_sound')
        """
        return f"{self.convention}_{'published' if self.dead_runs else 'sound'}"


def variants_for(runs: Sequence[Run]) -> tuple[Variant, ...]:
    """Return every variant that fits: pairing by position, dead runs included, is for published runs alone."""
    with_baseline: list[ConventionName] = [
        name for name in ("reference", "paper_all_funds", "paper") if CONVENTIONS[name].needs_baseline
    ]
    if not all_published(runs):
        return tuple(Variant(name, "seed") for name in with_baseline)
    return tuple(Variant(name, by) for name in with_baseline for by in ("position", "run"))


def all_published(runs: Sequence[Run]) -> bool:
    """Return whether there are runs, and all are the paper's own."""
    return bool(runs) and all(run.filed is not None for run in runs)


def scored(runs: Sequence[Run], variant: Variant) -> pd.DataFrame:
    """Return the table of runs by one variant."""
    return runs_table(pair_runs(runs, variant.pairing), CONVENTIONS[variant.convention])


def side_by_side(tables: Iterable[tuple[Variant, pd.DataFrame]]) -> pd.DataFrame:
    """Return one row a cell with both scores by every variant, each the plain mean over runs.

    Columns: the cell's; for each score and variant ``SCORE_VARIANT`` and ``SCORE_VARIANT_n``; and for each score
    ``SCORE_difference``, reference as published less reference soundly paired: what pairing by position and counting
    dead runs adds to a score of the paper.

    Args:
        tables: rows of `analysis.run_table.runs_table`, with the variant that they were made by.
    """
    sides: list[pd.DataFrame | pd.Series[Any]] = []
    named: pd.DataFrame | None = None
    for variant, runs in tables:
        cells = cells_table(runs, interval="paper_wald").set_index("cell")
        cells = cells[cells["setting"] != "baseline"]
        columns = {f"{score}{end}": f"{score}_{variant.name}{end}" for score in SCORES for end in ("", "_n")}
        sides.append(cells[list(columns)].rename(columns=columns))
        these = cells[[name for name in CELL_COLUMNS if name != "cell"]]
        named = these if named is None else named.combine_first(these)
    if named is None:
        return pd.DataFrame()
    table = named.join(sides)
    for score in SCORES:
        published, sound = f"{score}_reference_published", f"{score}_reference_sound"
        if published in table and sound in table:
            table[f"{score}_difference"] = table[published] - table[sound]
    return table.reset_index(names="cell")


def render_side_by_side(table: pd.DataFrame, variants: Sequence[Variant]) -> str:
    """Return both scores of every cell as text, a column a variant."""
    head = " ".join(f"{variant.convention}/{variant.pairing}" for variant in variants)
    lines = [f"columns: {head}; then what the published pairing adds"]
    for score in SCORES:
        lines += ["", score]
        width = max((len(str(cell)) for cell in table["cell"]), default=0)
        names = [*(f"{score}_{variant.name}" for variant in variants), f"{score}_difference"]
        for row in table.to_dict("records"):
            values = [row.get(name, float("nan")) for name in names]
            if all(pd.isna(value) for value in values):
                continue
            shown = " ".join("      -" if pd.isna(value) else f"{round(value, 4) + 0.0:7.4f}" for value in values)
            lines.append(f"{row['cell']:<{width}} {shown}")
    return "\n".join(lines)
