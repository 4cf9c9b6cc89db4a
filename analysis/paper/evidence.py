"""Owns what a statement of the paper is checked against: scored runs, and what is found there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pandas as pd

from analysis.paper.variants import Variant

Holds = Literal["yes", "no", "runs missing"]

LENGTHS: Final = (2, 4, 8, 16, 32, 64)
MODELS: Final = ("gpt-4o", "gpt-4o-mini", "claude-3.5-sonnet", "claude-3.5-haiku")
"""The four models of the paper."""
MINI, SONNET, HAIKU = MODELS[1:]
SWITCHES: Final = ("goal_switching", "combined")
N_PUBLISHED: Final = 3163
"""Runs in the paper's public repository."""

_LEVELS: Final = ("run_id", "cell", "model", "setting", "system_goal", "elicitation", "history", "conditioned_on")
_COLUMNS: Final = (*_LEVELS, "n_instrumental", "cluster", "outcome", "gd_actions", "gd_inaction")


def narrowed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that statements are about, their words as plain objects: dozens of filters run over them."""
    return runs[list(_COLUMNS)].astype(dict.fromkeys((*_LEVELS, "cluster", "outcome"), object))


@dataclass(frozen=True)
class Evidence:
    """All runs of a source, scored in one way."""

    variant: Variant
    runs: pd.DataFrame
    """Rows of `analysis.run_table.runs_table`."""
    first_purchases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Run id -> dollars spent in quarters 1 and 2: on the competing cluster, and in all."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Run id -> stated goal, 1 system, 2 hybrid, 3 competing; empty where there are no labels."""
    tokens: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Rows of `analysis.paper.tokens.token_table`."""

    @property
    def complete(self) -> bool:
        """Whether these are all of the paper's runs, so that what they lack was never there."""
        return self.variant.pairing in ("position", "run") and len(self.runs) >= N_PUBLISHED

    def of(self, **levels: object) -> pd.DataFrame:
        """Return the runs at given levels of columns; a tuple allows any of its values."""
        kept = np.ones(len(self.runs), bool)
        for name, level in levels.items():
            column = self.runs[name]
            kept &= column.isin(level).to_numpy() if isinstance(level, tuple) else (column == level).to_numpy(bool)
        return self.runs[kept]

    def means(self, score: str, by: Sequence[str], **levels: object) -> pd.Series[float]:
        """Return the mean over runs of a score by columns, where any run has one."""
        runs = self.of(**levels).dropna(subset=score)
        if runs.empty:
            return pd.Series(dtype=float)
        return runs.groupby(list(by) if len(by) > 1 else by[0])[score].mean()


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs say to a statement."""

    ours: str
    """The value from the same runs, in the form of the published one."""
    holds: Holds
    n: int
    """Runs that it rests on."""
    method: str = "mean over runs"
    note: str = ""
    """What is missing, or what limits the answer."""

    @classmethod
    def missing(cls, what: str) -> Finding:
        """Return the finding where the runs that a statement is about are not there."""
        return cls("", "runs missing", 0, "", f"missing: {what}")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that the paper says of its runs."""

    name: str
    text: str
    published: str
    """The published value, as printed; words where the paper gives no number."""
    check: Callable[[Evidence], Finding]


def verdict(truth: bool) -> Holds:
    """Return a truth in the words of the table."""
    return "yes" if truth else "no"


def number(value: float) -> str:
    """Return a score in few digits, without the zero before the point.

    >>> number(0.5191), number(1.0), number(-0.02), number(0.0)
    ('.519', '1.000', '-.020', '.000')
    """
    return f"{value + 0.0:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"
