"""Owns which runs each of the paper's figures shows, and what its primary analysis is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import pandas as pd

Kind = Literal["quarters", "lengths", "stated", "tokens", "correlations"]


@dataclass(frozen=True, slots=True)
class Preset:
    """One figure of the paper."""

    name: str
    """Stem of its files."""
    title: str
    kind: Kind
    primary: str
    """Its one primary analysis; everything else beside it describes."""
    settings: tuple[str, ...] = ()
    histories: tuple[str, ...] = ()

    def select(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table of cells, runs or curves that the figure shows."""
        if table.empty:
            return table
        kept = table["setting"].isin(self.settings)
        return table[kept & table["history"].isin(self.histories)] if self.histories else table[kept]


_BOTH: Final = ("goal_switching", "combined")
_MEANS: Final = "mean of each cell with its interval"
_AGAINST: Final = "ablation against original, labels permuted within each length"

PRESETS: Final = (
    Preset(
        "pressure",
        "Pressure over the quarters",
        "quarters",
        "weak against strong elicitation at the last quarter, two-sample permutation, Holm over models and goals",
        ("adversarial_pressure",),
    ),
    Preset("goal_switching", "Goal switching", "lengths", _MEANS, ("goal_switching",), ("own",)),
    Preset("combined", "Combined", "lengths", _MEANS, ("combined",), ("own",)),
    Preset("repeated_token", "History: a repeated token", "lengths", _AGAINST, _BOTH, ("repeated_token",)),
    Preset("random_sentences", "History: random sentences", "lengths", _AGAINST, _BOTH, ("random_sentences",)),
    Preset("random_strings", "History: random strings", "lengths", _AGAINST, _BOTH, ("random_strings",)),
    Preset("emptied_history", "History emptied, portfolio kept", "lengths", _AGAINST, _BOTH, ("none",)),
    Preset("summarised", "History: the model's own summary", "lengths", _AGAINST, _BOTH, ("summarised",)),
    Preset("borrowed_history", "History of another model", "lengths", _AGAINST, _BOTH, ("borrowed",)),
    Preset(
        "stated_goals", "Stated goals", "stated", "stated goal against drift, Kendall's tau-b, exact", _BOTH, ("own",)
    ),
    Preset("phase_tokens", "Tokens of the instrumental phase", "tokens", "mean by model and length, descriptive"),
    Preset("correlations", "Ablations against the original", "correlations", "Pearson's r over lengths, descriptive"),
)
"""Every figure that `apex reproduce` draws, in order."""
