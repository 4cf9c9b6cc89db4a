"""Owns the drawing of scores: each `plot_*` puts a table on axes; it loads nothing and computes no statistics."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from analysis.conventions import one_convention
from analysis.palette import ModelStyle, styles_of

Score = Literal["gd_actions", "gd_inaction", "retained_frac"]

SCORE_LABELS: Final = {
    "gd_actions": r"$GD_{\mathrm{actions}}$",
    "gd_inaction": r"$GD_{\mathrm{inaction}}$",
    "retained_frac": "share of old position kept",
}

STYLE: Final[dict[Any, Any]] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "pdf.fonttype": 42,
    "svg.hashsalt": "apex",
    "savefig.dpi": 300,
}
"""Settings of matplotlib for every figure."""

_LEGEND_COLUMNS: Final = 5
_LEGEND_ROW_INCHES: Final = 0.22
_LEGEND_KEY_INCHES: Final = 0.42
_LEGEND_LETTER_INCHES: Final = 0.047
_SMALL_PRINT_INCHES: Final = 0.16
_SMALL_PRINT_LINE_INCHES: Final = 0.11
_SMALL_PRINT_LETTER_INCHES: Final = 0.046
_DODGE_OCTAVES: Final = 0.05
"""Neighbouring models are drawn this far apart on an axis of doublings, so that their intervals can be told apart."""


def plot_by_length(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    score: Score = "gd_actions",
    reference: pd.DataFrame | None = None,
    muted: bool = False,
) -> Axes:
    """Draw a score against the length of the instrumental phase, a line a model.

    Args:
        table: rows of `analysis.cell_table.cells_table`, one a model and length, of one convention.
        ax: where to draw; new axes where None.
        score: the column to draw, with ``_low`` and ``_high`` as its interval where there is one.
        reference: rows of the same kind for the two scripted agents between which a policy that never sells lies; the
            band between them shows how much of the score is the phase's length alone.
        muted: whether these are other people's results behind one's own: pale, without intervals, named published.

    Raises:
        ValueError: for rows of more than one convention, or two rows for one model and length.
    """
    one_convention(table, *([] if reference is None else [reference]))
    ax = _axes(ax)
    lengths = sorted(set(table["n_instrumental"]))
    if reference is not None:
        _band_of_reference(ax, reference[reference["n_instrumental"].isin(lengths)], score)
    styles = _muted(styles_of(table["model"])) if muted else styles_of(table["model"])
    for place, (model, style) in enumerate(styles.items()):
        rows = table[table["model"] == model].sort_values("n_instrumental")
        if rows["n_instrumental"].duplicated().any():
            raise ValueError(f"more than one row for {model!r} and one phase length: draw them in figures of their own")
        shift = 2.0 ** (_DODGE_OCTAVES * (place - (len(styles) - 1) / 2))
        ax.errorbar(
            rows["n_instrumental"] * shift,
            rows[score],
            yerr=None if muted else _arms(rows, score),
            label=style.label,
            color=style.colour,
            marker=style.marker,
            markersize=4,
            markeredgewidth=0,
            linewidth=1.4,
            elinewidth=0.9,
            capsize=0,
            clip_on=False,
            zorder=2 if muted else 3,
        )
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(lengths))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(lengths, [str(length) for length in lengths])
    ax.set_xlim(min(lengths) / 1.25, max(lengths) * 1.25)
    ax.set_xlabel("instrumental phase (quarters)")
    _share_axis(ax, SCORE_LABELS[score])
    return ax


def plot_by_quarter(table: pd.DataFrame, ax: Axes | None = None, *, muted: bool = False) -> Axes:
    """Draw GD_actions against the quarter at which the window is cut, a line with its interval a model.

    Args:
        table: rows of `analysis.cell_table.curves_table`, one a model and quarter, of one convention.
        ax: where to draw; new axes where None.
        muted: whether these are other people's results behind one's own, as in `plot_by_length`.

    Raises:
        ValueError: for rows of more than one convention, or two rows for one model and quarter.
    """
    one_convention(table)
    ax = _axes(ax)
    styles = styles_of(table["model"])
    for model, style in (_muted(styles) if muted else styles).items():
        rows = table[table["model"] == model].sort_values("quarter")
        if rows["quarter"].duplicated().any():
            raise ValueError(f"more than one row for {model!r} and one quarter: draw them in figures of their own")
        quarters = rows["quarter"].to_numpy(float)
        low, high = rows["gd_actions_low"].to_numpy(float), rows["gd_actions_high"].to_numpy(float)
        if not muted:
            ax.fill_between(quarters, low, high, color=style.colour, alpha=0.13, linewidth=0, zorder=2)
        ax.plot(
            quarters,
            rows["gd_actions"],
            label=style.label,
            color=style.colour,
            marker=style.marker,
            markersize=3.6,
            markeredgewidth=0,
            markevery=_marked(quarters),
            linewidth=1.4,
            clip_on=False,
            zorder=3,
        )
    last = int(table["quarter"].max())
    ax.set_xlim(int(table["quarter"].min()) - 0.5, last + 0.5)
    ax.set_xticks([1, *range(5, last + 1, 5)])
    ax.set_xlabel("quarter")
    _share_axis(ax, SCORE_LABELS["gd_actions"])
    return ax


def add_legend(figure: Figure, axes: Sequence[Axes], small_print: str = "") -> None:
    """Put one legend for all axes below them, each entry once, and small print below that; the axes make room."""
    entries: dict[str, Artist] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(small_print, max(20, int(width / _SMALL_PRINT_LETTER_INCHES)))
    strip = (_SMALL_PRINT_INCHES + _SMALL_PRINT_LINE_INCHES * (len(lines) - 1)) / height if lines else 0.0
    entry_inches = _LEGEND_KEY_INCHES + _LEGEND_LETTER_INCHES * max(map(len, entries), default=0)
    n_columns = max(1, min(len(entries), _LEGEND_COLUMNS, int(width / entry_inches)))
    n_rows = -(-len(entries) // n_columns)
    bottom = strip + n_rows * _LEGEND_ROW_INCHES / height
    figure.set_layout_engine("constrained", rect=(0, bottom, 1, 1 - bottom))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="lower center",
        bbox_to_anchor=(0.5, strip),
        ncols=n_columns,
        frameon=False,
        borderaxespad=0.1,
    )
    if lines:
        figure.text(0.995, strip / 2, "\n".join(lines), fontsize=6, color="#6E6E6E", ha="right", va="center")


def _muted(styles: Mapping[str, ModelStyle]) -> dict[str, ModelStyle]:
    """Return the same styles in pale colours, named as published."""
    pale = {}
    for model, style in styles.items():
        red, green, blue = (0.4 * part + 0.6 for part in to_rgb(style.colour))
        pale[model] = ModelStyle(f"{style.label}, published", to_hex((red, green, blue)), style.marker)
    return pale


def _axes(ax: Axes | None) -> Axes:
    return Figure(figsize=(3.4, 2.6), layout="constrained").add_subplot() if ax is None else ax


def _share_axis(ax: Axes, label: str) -> None:
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    ax.set_ylabel(label)


def _arms(rows: pd.DataFrame, score: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """Return how far the interval reaches below and above each mean, 0 where there is none; None without any."""
    if f"{score}_low" not in rows or rows[f"{score}_low"].isna().all():
        return None
    below, above = rows[score] - rows[f"{score}_low"], rows[f"{score}_high"] - rows[score]
    return np.vstack([below.fillna(0), above.fillna(0)]).clip(0)


def _band_of_reference(ax: Axes, reference: pd.DataFrame, score: str) -> None:
    adherent, negligent = (
        reference[reference["model"] == name].sort_values("n_instrumental") for name in ("adherent", "negligent")
    )
    if adherent.empty or negligent.empty:
        return
    lengths = adherent["n_instrumental"].to_numpy(float)
    low, high = adherent[score].to_numpy(float), negligent[score].to_numpy(float)
    ax.fill_between(lengths, low, high, color="#EDEDED", linewidth=0, zorder=0.5)
    dashes = (0, (4, 2))
    ax.plot(lengths, high, color="#8A8A8A", linewidth=1, linestyle=dashes, zorder=1, label="never sells (scripted)")


def _marked(quarters: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """Return the places of the quarters that carry a marker: every fifth, and the last."""
    return sorted({place for place, quarter in enumerate(quarters) if quarter % 5 == 0} | {len(quarters) - 1})
