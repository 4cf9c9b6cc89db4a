"""Owns which figure a cell belongs to, so that figures and statistics speak of the same families of cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

SWITCHES: Final = ("goal_switching", "combined")
"""Settings with an instrumental phase."""


def figure_name(cell: Mapping[str, Any]) -> str:
    """Return the name of the figure that shows a cell, the stem of its files; empty for a baseline.

    Cells of a switch share a figure if they differ in model and phase length alone, those under pressure if they differ
    in model, system goal and elicitation alone.

    Args:
        cell: what names a cell, by the columns of `analysis.run_table.CELL_COLUMNS`.

    >>> figure_name({"setting": "combined", "system_goal": "profit", "history": "none", "factors": "rules=published"})
    'length-combined-profit-none-rules_published'
    """
    return file_stem("-".join(figure_words(cell)))


def file_stem(words: str) -> str:
    """Return words as the stem of a file.

    >>> file_stem("pressure_kinds=praise_news+employee_mail")
    'pressure_kinds_praise_news-employee_mail'
    """
    return re.sub(r"[^\w.-]+", "-", words.replace("=", "_")).strip("-")


def figure_words(cell: Mapping[str, Any]) -> list[str]:
    """Return the kind of figure that shows a cell, and the levels that all its cells share; nothing for a baseline."""
    factors = [cell["factors"]] if cell["factors"] else []
    if cell["setting"] == "adversarial_pressure":
        return ["pressure", *factors]
    if cell["setting"] not in SWITCHES:
        return []
    history = [] if cell["history"] == "own" else [cell["history"]]
    parent = [f"from {cell['conditioned_on']}"] if cell["history"] == "borrowed" else []
    return ["length", cell["setting"], cell["system_goal"], *history, *parent, *factors]
