"""Owns the table of the paper's statements: what each variant of scoring says, in three forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from analysis.paper.evidence import Evidence, Statement
from analysis.paper.of_design import DESIGN
from analysis.paper.of_goals import GOALS
from analysis.paper.of_histories import HISTORY
from analysis.paper.of_pressure import PRESSURE
from analysis.paper.of_switches import SWITCH

STATEMENTS: Final[tuple[Statement, ...]] = (*PRESSURE, *SWITCH, *HISTORY, *GOALS, *DESIGN)
"""Everything that is held against the runs, in order."""

_WITHOUT_SCORES: Final = ("tokens-", "design-")
"""Statements that no convention touches are checked once."""


def claims_table(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """Return one row a statement and variant.

    Columns: name, statement, published; convention, pairing, dead_runs (``counted`` or ``left out``); ours, holds
    (``yes``, ``no`` or ``runs missing``), n, method, note. Statements that no convention touches have one row, and
    ``any`` for the convention.

    Args:
        evidence: the same runs, scored in each way.
    """
    rows = []
    for statement in STATEMENTS:
        once = statement.name.startswith(_WITHOUT_SCORES)
        for one in evidence[:1] if once else evidence:
            finding, variant = statement.check(one), one.variant
            rows.append(
                {
                    "name": statement.name,
                    "statement": statement.text,
                    "published": statement.published,
                    "convention": "any" if once else variant.convention,
                    "pairing": "any" if once else variant.pairing,
                    "dead_runs": "counted" if once or variant.dead_runs else "left out",
                    "ours": finding.ours,
                    "holds": finding.holds,
                    "n": finding.n,
                    "method": finding.method,
                    "note": finding.note,
                }
            )
    return pd.DataFrame(rows)


def render_markdown(claims: pd.DataFrame, source: str) -> str:
    """Return the table as Markdown, a line a statement: the first variant's value, and what holds where.

    Args:
        claims: rows of `claims_table`.
        source: what runs they were checked against.
    """
    lines = [
        "# The paper's statements, held against runs",
        "",
        f"Runs: {source}. Statements: arXiv 2505.02709. Made by `apex reproduce`; `claims.csv` has every variant.",
        "",
        "| statement | published | ours | holds | in other variants | n | method, note |",
        "|---|---|---|---|---|---|---|",
    ]
    for _, rows in claims.groupby("name", sort=False):
        first = rows.iloc[0]
        others = _elsewhere(first["holds"], rows.iloc[1:])
        note = "; ".join(text for text in (first["method"], first["note"]) if text)
        holds = first["holds"] if first["convention"] == "any" else f"{first['holds']} ({_variant(first)})"
        cells = [first["statement"], first["published"], first["ours"], holds, others, first["n"], note]
        lines.append("| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _elsewhere(holds: str, others: pd.DataFrame) -> str:
    """Return what the other variants say: the same in all, or each that says something else."""
    if others.empty:
        return ""
    different = others[others["holds"] != holds]
    if different.empty:
        return "the same"
    return "; ".join(f"{_variant(row)}: {row['holds']}" for _, row in different.iterrows())


def render_terminal(claims: pd.DataFrame) -> str:
    """Return the table as text: a few lines a statement, equal answers of several variants drawn together."""
    lines: list[str] = []
    for _, rows in claims.groupby("name", sort=False):
        first = rows.iloc[0]
        lines.append(f"{first['statement']} (paper: {first['published']})")
        for (ours, holds), same in rows.groupby(["ours", "holds"], sort=False):
            which = (
                "" if first["convention"] == "any" else " [" + ", ".join(_variant(row) for _, row in same.iterrows())
            )
            lines.append(f"  {holds}: {ours or same.iloc[0]['note']}{which}{']' if which else ''}")
    return "\n".join(lines)


def _variant(row: pd.Series[str]) -> str:
    return f"{row['convention']} {'with' if row['dead_runs'] == 'counted' else 'without'} dead runs"
