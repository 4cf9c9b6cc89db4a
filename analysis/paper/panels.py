"""Owns the drawing of the paper's figures: one function a kind, from tables to a figure with its table beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.conventions import one_convention
from analysis.draw import Drawn
from analysis.figures import Score, add_legend, plot_by_length, plot_by_quarter
from analysis.palette import styles_of
from analysis.paper.presets import Kind, Preset

STATED_COLOURS: Final = {"system": "#BBBBBB", "hybrid": "#F0E442", "competing": "#CC79A7"}
_CLASSES: Final = {1: "system", 2: "hybrid", 3: "competing"}
_SCORES: Final[tuple[Score, ...]] = ("gd_actions", "gd_inaction", "retained_frac")


@dataclass(frozen=True)
class Tables:
    """All that figures are drawn from, of one convention; what a source lacks is empty."""

    cells: pd.DataFrame
    curves: pd.DataFrame
    stated: pd.DataFrame
    """Rows of runs with the column ``stated``, 1 to 3."""
    tokens: pd.DataFrame
    correlations: pd.DataFrame
    caption: str
    reference: pd.DataFrame | None = None
    """Scripted agents between which a policy that never sells lies."""
    behind: Tables | None = None
    """Published results that are drawn behind these, muted."""


def draw(preset: Preset, tables: Tables) -> Drawn | None:
    """Return a figure of the paper, or None where no run of it is there.

    Raises:
        ValueError: if what is drawn behind is of another convention.
    """
    return _KINDS[preset.kind](preset, tables)


def _by_quarter(preset: Preset, tables: Tables) -> Drawn | None:
    curves = _chosen(preset, tables.curves)
    if curves.empty:
        return None
    behind = pd.DataFrame() if tables.behind is None else _chosen(preset, tables.behind.curves)
    one_convention(curves, *([] if behind.empty else [behind]))
    goals = [goal for goal in ("profit", "emissions") if (curves["system_goal"] == goal).any()]
    prompts = [prompt for prompt in ("weak", "strong") if (curves["elicitation"] == prompt).any()]
    figure = Figure(figsize=(3.4 * len(prompts) + 0.2, 2.4 * len(goals) + 0.8), layout="constrained")
    grid = figure.subplots(len(goals), len(prompts), sharex=True, sharey=True, squeeze=False)
    for goal, row in zip(goals, grid, strict=True):
        for prompt, ax in zip(prompts, row, strict=True):
            for table, muted in ((behind, True), (curves, False)):
                panel = table if table.empty else _at(table, system_goal=goal, elicitation=prompt)
                if len(panel):
                    plot_by_quarter(panel, ax, muted=muted)
            ax.set_title(f"System goal {goal}, {prompt} elicitation", loc="left")
            ax.label_outer()
    add_legend(figure, list(grid.flat), tables.caption)
    return Drawn(preset.name, figure, _joined(curves, behind))


def _by_length(preset: Preset, tables: Tables) -> Drawn | None:
    cells = _chosen(preset, tables.cells)
    cells = cells[cells["n_scored"] > 0]
    if cells.empty:
        return None
    behind = pd.DataFrame() if tables.behind is None else _chosen(preset, tables.behind.cells)
    one_convention(cells, *([] if behind.empty else [behind]))
    panels = list(
        cells.groupby(["setting", "system_goal", "conditioned_on"] if _borrows(preset) else _SPLIT, sort=True)
    )
    panels = [(key, rows) for key, group in panels for rows in _unique(group)]
    scores = [score for score in _SCORES if cells[score].notna().any()]
    figure = Figure(figsize=(2.5 * len(scores) + 0.2, 2.4 * len(panels) + 0.6), layout="constrained")
    grid = figure.subplots(len(panels), len(scores), sharey=True, squeeze=False)
    for (key, rows), axes in zip(panels, grid, strict=True):
        goal = str(key[1])
        for ax, score in zip(axes, scores, strict=True):
            under = behind if behind.empty else _at(behind, setting=key[0], system_goal=goal)
            if _borrows(preset) and len(under):
                under = _at(under, conditioned_on=key[2])
            for part in [] if under.empty else _unique(under):
                plot_by_length(part, ax, score=score, muted=True)
            band = tables.reference if "own" in preset.histories and score != "retained_frac" else None
            plot_by_length(rows, ax, score=score, reference=None if band is None else _at(band, system_goal=goal))
            ax.tick_params(labelleft=ax is axes[0])
        on = f", on {key[2]}" if _borrows(preset) else ""
        axes[0].set_title(f"{preset.title}: {str(key[0]).replace('_', ' ')}, system goal {goal}{on}", loc="left")
    add_legend(figure, list(grid.flat), tables.caption)
    return Drawn(preset.name, figure, _joined(cells, behind))


def plot_stated(table: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the shares of stated goals as stacked bars, one a phase length.

    Args:
        table: one row a length: n_instrumental, and the shares ``system``, ``hybrid`` and ``competing``.
        ax: where to draw.
    """
    places = [str(length) for length in table["n_instrumental"]]
    bottom = pd.Series(0.0, index=table.index)
    for name, colour in STATED_COLOURS.items():
        ax.bar(places, table[name], bottom=bottom, color=colour, width=0.75, label=f"states the {name} goal")
        bottom = bottom + table[name]
    ax.set_ylim(0, 1)
    ax.set_xlabel("instrumental phase (quarters)")
    ax.set_ylabel("share of runs")
    return ax


def _stated(preset: Preset, tables: Tables) -> Drawn | None:
    runs = _chosen(preset, tables.stated)
    if runs.empty:
        return None
    rows = []
    for key, members in runs.groupby(["setting", "model", "n_instrumental"], sort=True):
        shares = {name: float((members["stated"] == place).mean()) for place, name in _CLASSES.items()}
        rows.append(dict(zip(("setting", "model", "n_instrumental"), key, strict=True)) | shares | {"n": len(members)})
    table = pd.DataFrame(rows)
    panels = [
        (setting, model, part)
        for setting, of_setting in table.groupby("setting")
        for model in styles_of(of_setting["model"])
        if len(part := of_setting[of_setting["model"] == model])
    ]
    figure = Figure(figsize=(2.2 * len(panels) + 0.3, 2.7), layout="constrained")
    axes = list(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0])
    for ax, (setting, model, part) in zip(axes, panels, strict=True):
        plot_stated(part, ax).set_title(
            f"{styles_of([model])[model].label}, {str(setting).replace('_', ' ')}", loc="left"
        )
    add_legend(figure, axes, f"{int(table['n'].sum())} runs with a label")
    return Drawn(preset.name, figure, table)


def _tokens(preset: Preset, tables: Tables) -> Drawn | None:
    table = tables.tokens
    if table.empty:
        return None
    figure = Figure(figsize=(3.8, 3.0), layout="constrained")
    ax = figure.subplots()
    for model, style in styles_of(table["model"]).items():
        rows = table[table["model"] == model]
        ours = rows.dropna(subset="tokens")
        ax.plot(rows["n_instrumental"], rows["paper"], color=style.colour, linestyle=":", linewidth=1)
        ax.plot(
            ours["n_instrumental"], ours["tokens"], style.marker, color=style.colour, label=style.label, markersize=4
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("instrumental phase (quarters)")
    ax.set_ylabel("tokens")
    add_legend(figure, [ax], "points: these runs; dotted: the paper's table")
    return Drawn(preset.name, figure, table)


def _correlations(preset: Preset, tables: Tables) -> Drawn | None:
    table = tables.correlations
    if table.empty or table["r"].isna().all():
        return None
    known = table.dropna(subset="r").reset_index(drop=True)
    figure = Figure(figsize=(4.6, 0.24 * len(known) + 1.2), layout="constrained")
    ax = figure.subplots()
    styles = styles_of(known["model"])
    for model, style in styles.items():
        rows = known[known["model"] == model]
        ax.plot(rows["r"], rows.index, style.marker, color=style.colour, label=style.label, markersize=5)
    words = zip(known["history"].astype(str), known["score"].astype(str), known["n"], strict=True)
    names = [f"{history.replace('_', ' ')}, {score[3:]}, {n} lengths" for history, score, n in words]
    ax.set_yticks(range(len(known)), names)
    ax.axvline(0, color="#8A8A8A", linewidth=0.8)
    ax.set_xlim(-1.05, 1.05)
    ax.set_xlabel("Pearson's r with the original, over phase lengths")
    add_legend(figure, [ax], "description only: an offset does not show in r")
    return Drawn(preset.name, figure, table)


_SPLIT: Final = ["setting", "system_goal"]

_KINDS: Final[Mapping[Kind, Callable[[Preset, Tables], Drawn | None]]] = {
    "quarters": _by_quarter,
    "lengths": _by_length,
    "stated": _stated,
    "tokens": _tokens,
    "correlations": _correlations,
}


def _chosen(preset: Preset, table: pd.DataFrame) -> pd.DataFrame:
    return table if table.empty else preset.select(table)


def _borrows(preset: Preset) -> bool:
    return preset.histories == ("borrowed",)


def _at(table: pd.DataFrame, **levels: Any) -> pd.DataFrame:
    for name, level in levels.items():
        table = table[table[name] == level]
    return table


def _unique(cells: pd.DataFrame) -> list[pd.DataFrame]:
    """Split cells so that one model has one row a length: by further factors, where runs differ in more."""
    if not cells.duplicated(["model", "n_instrumental"]).any():
        return [cells]
    return [rows for _, rows in cells.groupby("factors", sort=True)]


def _joined(front: pd.DataFrame, behind: pd.DataFrame) -> pd.DataFrame:
    """Return both tables with a column that says which is drawn how."""
    if behind.empty:
        return front
    return pd.concat([front.assign(drawn="front"), behind.assign(drawn="behind")], ignore_index=True)
