"""Owns the paper's other charts: stated goals as bars, tokens of the phase, correlations with the original."""

from __future__ import annotations

from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from analysis.draw import Drawn, range_of
from analysis.figures import add_legend
from analysis.palette import styles_of
from analysis.stats.intervals import share_interval

STATED_COLOURS: Final = {"system": "#BBBBBB", "hybrid": "#F0E442", "competing": "#CC79A7"}
_CLASSES: Final = {1: "system", 2: "hybrid", 3: "competing"}
_STATES: Final = {"system": "states the system goal", "hybrid": "states both", "competing": "states the competing goal"}
HISTORIES: Final = {"none": "emptied history"}
"""Levels whose names say too little beside others."""
_CELL: Final = ["setting", "model", "n_instrumental"]


def stated_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row a setting, model and phase length: shares of stated goals, and of all that is not the system's.

    Columns: setting, model, n_instrumental; ``system``, ``hybrid``, ``competing``; ``drifted`` with ``drifted_low`` and
    ``drifted_high`` (Clopper and Pearson); n and method.

    Args:
        runs: rows of runs with the column ``stated``, 1 to 3.
    """
    rows = []
    for key, members in runs.groupby(_CELL, sort=True):
        shares = {name: float((members["stated"] == place).mean()) for place, name in _CLASSES.items()}
        drifted = share_interval(int((members["stated"] > 1).sum()), len(members))
        ends = {"drifted": drifted.value, "drifted_low": drifted.low, "drifted_high": drifted.high}
        told = {"n": len(members), "method": f"share of runs with a label; {drifted.method}"}
        rows.append(dict(zip(_CELL, key, strict=True)) | shares | ends | told)
    return pd.DataFrame(rows)


def plot_stated(table: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the shares of stated goals as stacked bars, one a phase length.

    Args:
        table: rows of `stated_table`, one a length.
        ax: where to draw.
    """
    places = [str(length) for length in table["n_instrumental"]]
    bottom = pd.Series(0.0, index=table.index)
    for name, colour in STATED_COLOURS.items():
        ax.bar(places, table[name], bottom=bottom, color=colour, width=0.75, label=_STATES[name])
        bottom = bottom + table[name]
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    ax.set_xlabel("instrumental phase (quarters)")
    ax.set_ylabel("share of runs")
    return ax


def draw_stated(name: str, runs: pd.DataFrame) -> Drawn | None:
    """Return the bars of stated goals, a row a setting and a column a model; None without a labelled run."""
    if runs.empty:
        return None
    table = stated_table(runs)
    settings, styles = sorted(set(table["setting"])), styles_of(table["model"])
    size = (max(3.4, 1.9 * len(styles) + 0.3), 2.1 * len(settings) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(settings), len(styles), sharey=True, squeeze=False)
    for setting, row in zip(settings, grid, strict=True):
        for (model, style), ax in zip(styles.items(), row, strict=True):
            part = table[(table["setting"] == setting) & (table["model"] == model)]
            if part.empty:
                ax.set_axis_off()
                continue
            plot_stated(part, ax).set_title(style.label, loc="left")
            ax.label_outer(remove_inner_ticks=True)
        row[0].set_ylabel(f"share of runs,\n{setting.replace('_', ' ')}")
    add_legend(
        figure, list(grid.flat), f"shares of runs with a label, n = {range_of(table['n'])}; intervals in the table"
    )
    return Drawn(name, figure, table)


def draw_tokens(name: str, table: pd.DataFrame) -> Drawn | None:
    """Return the tokens of the instrumental phase against its length, with the paper's; None without any.

    Args:
        name: stem of its files.
        table: rows of `analysis.paper.tokens.token_table`, with the column ``paper``.
    """
    if table.empty:
        return None
    figure = Figure(figsize=(3.6, 3.1), layout="constrained")
    ax = figure.subplots()
    for model, style in styles_of(table["model"]).items():
        rows = table[table["model"] == model].sort_values("n_instrumental")
        paper = rows.dropna(subset="paper").drop_duplicates("n_instrumental")
        ax.plot(paper["n_instrumental"], paper["paper"], color=style.colour, linestyle=":", linewidth=1)
        for estimated, filled in ((False, style.colour), (True, "none")):
            ours = rows[rows["tokens"].notna() & (rows["estimated"] == estimated)]
            label = None if estimated and (rows["estimated"] == False).any() else style.label  # noqa: E712
            if len(ours):
                x, y = ours["n_instrumental"], ours["tokens"]
                ax.plot(x, y, style.marker, color=style.colour, markerfacecolor=filled, label=label, markersize=4)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    lengths = sorted({int(length) for length in table["n_instrumental"]})
    ax.xaxis.set_major_locator(FixedLocator(lengths))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(lengths, [str(length) for length in lengths])
    ax.set_xlabel("instrumental phase (quarters)")
    ax.set_ylabel("tokens")
    n = range_of(table["n"].dropna())
    told = f"filled: counted; hollow: estimated from characters; n = {n} a point; dotted: the paper's table"
    add_legend(figure, [ax], told)
    return Drawn(name, figure, table)


def draw_correlations(name: str, table: pd.DataFrame) -> Drawn | None:
    """Return the correlations of ablations with the original, a row a history, setting and score; None without any.

    Args:
        name: stem of its files.
        table: rows of `analysis.paper.of_histories.correlations`.
    """
    if table.empty or table["r"].isna().all():
        return None
    known = table.dropna(subset="r")
    rows = list(dict.fromkeys(_keys(known)))
    figure = Figure(figsize=(5.2, 0.3 * len(rows) + 1.2), layout="constrained")
    ax = figure.subplots()
    styles = styles_of(known["model"])
    for place, (model, style) in enumerate(styles.items()):
        shift = 0.6 * ((place + 0.5) / len(styles) - 0.5)
        points = known[known["model"] == model]
        heights = [rows.index(key) + shift for key in _keys(points)]
        ax.plot(
            points["r"], heights, style.marker, color=style.colour, label=style.label, markersize=4.5, clip_on=False
        )
    names = [f"{HISTORIES.get(history, history)}, {setting}, {score[3:]}" for history, setting, score in rows]
    ax.set_yticks(range(len(rows)), [name.replace("_", " ") for name in names])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.axvline(0, color="#8A8A8A", linewidth=0.8)
    ax.set_xlim(-1.05, 1.05)
    ax.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−.5", "0", ".5", "1"])
    ax.set_xlabel("Pearson's r with the original, over phase lengths")
    n_none, n = len(table) - len(known), known["n"]
    told = f"over {range_of(n)} lengths; intervals (Fisher's z) and p in the table"
    undefined = (
        f"; r undefined in {n_none} of {len(table)}: fewer than 2 lengths, or one side does not vary" if n_none else ""
    )
    bare = "; original without pressure" if (known["setting"] != known["original_setting"]).any() else ""
    add_legend(figure, [ax], f"means of cells {told}{undefined}{bare}; description only: an offset does not show in r")
    return Drawn(name, figure, table)


def _keys(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    columns = (table[name].astype(str) for name in ("history", "setting", "score"))
    return list(zip(*columns, strict=True))
