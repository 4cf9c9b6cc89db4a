"""Owns the figure of freedom from divergence: a step curve a model, one panel a channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import add_legend
from analysis.palette import styles_of
from analysis.survival import CHANNELS, GROUP

_TITLES: Final = {"actions": "free of purchases", "inaction": "free of holdings"}


def plot_free_of_divergence(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of runs that have not diverged against quarters since the switch, a step curve a model.

    Args:
        table: rows of `analysis.survival.curves_table` of one group and channel.
        ax: where to draw; new axes where None.

    Raises:
        ValueError: for two rows of one model and quarter, which belong in figures of their own.
    """
    if table.duplicated(["model", "quarter"]).any():
        raise ValueError("more than one row for a model and a quarter: draw groups and channels in axes of their own")
    if ax is None:
        ax = Figure(figsize=(3.4, 2.6), layout="constrained").add_subplot()
    for model, style in styles_of(table["model"]).items():
        rows = table[table["model"] == model].sort_values("quarter")
        quarters = rows["quarter"].to_numpy(float)
        low, high = rows["free_frac_low"].to_numpy(float), rows["free_frac_high"].to_numpy(float)
        ax.fill_between(quarters, low, high, step="post", color=style.colour, alpha=0.13, linewidth=0, zorder=2)
        ax.step(
            quarters,
            rows["free_frac"],
            where="post",
            label=style.label,
            color=style.colour,
            marker=style.marker,
            markersize=3.6,
            markeredgewidth=0,
            linewidth=1.4,
            clip_on=False,
            zorder=3,
        )
    last = int(table["quarter"].max())
    ax.set_xlim(0, last + 0.5)
    ax.set_xticks(range(0, last + 1, max(1, last // 5)))
    ax.set_xlabel("quarters since the switch")
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    ax.set_ylabel("share free of divergence")
    return ax


def draw_free_of_divergence(curves: pd.DataFrame) -> Iterator[tuple[str, Figure, pd.DataFrame]]:
    """Yield the name, the figure and the table of each group of curves.

    Args:
        curves: from `analysis.survival.curves_table`.
    """
    if curves.empty:
        return
    for names, rows in curves.groupby(list(GROUP), sort=True, dropna=False):
        figure = Figure(figsize=(3.5 * len(CHANNELS) + 0.2, 2.9), layout="constrained")
        axes = list(figure.subplots(1, len(CHANNELS), sharey=True, squeeze=False)[0])
        for ax, channel in zip(axes, CHANNELS, strict=True):
            plot_free_of_divergence(rows[rows["channel"] == channel], ax)
            ax.set_title(_TITLES[channel], loc="left")
        axes[1].set_ylabel("")
        shared = (rows["n_clusters"] < rows["n_runs"]).any()
        caption = "Kaplan-Meier, 95 % pointwise; lengths of the phase pooled"
        add_legend(figure, axes, f"{caption}; runs share trajectories: bands too narrow" if shared else caption)
        special = [str(level) for level in names[2:] if level not in ("own", "")]
        title = ", ".join([str(names[0]), f"system goal {names[1]}", *special]).replace("_", " ").capitalize()
        figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
        name = "-".join(["free_of_divergence", *map(str, names[:2]), *special])
        yield name.replace("=", "_").replace(" ", "-"), figure, rows
