"""Owns the drawing of the paper's curves: one function a kind, from tables to a figure with its table beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from analysis.conventions import one_convention
from analysis.draw import Drawn, sizes
from analysis.figure_names import file_stem
from analysis.figures import SCORE_LABELS, Score, add_legend, plot_by_length, plot_by_quarter
from analysis.palette import styles_of
from analysis.paper.charts import draw_correlations, draw_stated, draw_tokens
from analysis.paper.presets import Kind, Preset

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
    caption: Callable[[pd.DataFrame], str]
    """What the small print says of some cells: convention, pairing and interval."""
    reference: pd.DataFrame | None = None
    """Scripted agents between which a policy that never sells lies."""
    behind: Tables | None = None
    """Published results that are drawn behind these, muted."""

    @property
    def factors(self) -> list[str]:
        """Levels of further factors in which runs differ, the plain one first."""
        return sorted({str(level) for table in (self.cells, self.curves) if len(table) for level in table["factors"]})

    def at(self, factors: str) -> Tables:
        """Return the tables of one level of further factors; what is drawn behind stays."""
        tables = (_at(table, factors=factors) for table in (self.cells, self.curves, self.stated))
        cells, curves, stated = tables
        return replace(self, cells=cells, curves=curves, stated=stated)


def draw(preset: Preset, tables: Tables) -> Drawn | None:
    """Return a figure of the paper, or None where no run of it is there.

    Raises:
        ValueError: if what is drawn behind is of another convention.
    """
    return _KINDS[preset.kind](preset, tables)


def draw_levels(preset: Preset, tables: Tables) -> Iterator[Drawn]:
    """Yield a figure of the paper for each level of further factors in which runs of it are there.

    Names and titles leave out what all runs share, such as the rules of published ones.

    Raises:
        ValueError: if what is drawn behind is of another convention.
    """
    levels = tables.factors if preset.settings else []
    shared = set.intersection(*(set(level.split()) for level in levels)) if levels else set()
    parts = [(level, tables.at(level)) for level in levels] or [("", tables)]
    for level, part in parts:
        words = [word for word in level.split() if word not in shared]
        name, title = "-".join([preset.name, *map(file_stem, words)]), ", ".join([preset.title, *words])
        drawn = draw(replace(preset, name=name, title=title), part)
        if drawn is not None:
            yield drawn


def _by_quarter(preset: Preset, tables: Tables) -> Drawn | None:
    curves = preset.select(tables.curves)
    if curves.empty:
        return None
    behind = pd.DataFrame() if tables.behind is None else preset.select(tables.behind.curves)
    one_convention(curves, *([] if behind.empty else [behind]))
    goals = [goal for goal in ("profit", "emissions") if (curves["system_goal"] == goal).any()]
    prompts = [prompt for prompt in ("weak", "strong") if (curves["elicitation"] == prompt).any()]
    figure = Figure(figsize=(3.4 * len(prompts) + 0.2, 2.4 * len(goals) + 0.8), layout="constrained")
    grid = figure.subplots(len(goals), len(prompts), sharex=True, sharey=True, squeeze=False)
    for goal, row in zip(goals, grid, strict=True):
        for prompt, ax in zip(prompts, row, strict=True):
            for table, muted in ((behind, True), (curves, False)):
                panel = _at(table, system_goal=goal, elicitation=prompt)
                if len(panel):
                    plot_by_quarter(panel, ax, muted=muted)
            ax.set_title(f"System goal {goal}, {prompt} elicitation", loc="left")
            ax.label_outer()
    last = curves.sort_values("quarter").groupby("cell").tail(1)
    add_legend(figure, list(grid.flat), f"{tables.caption(last)}; {sizes(last)}")
    return Drawn(preset.name, figure, _joined(front=curves, behind=behind))


def _by_length(preset: Preset, tables: Tables) -> Drawn | None:
    cells = preset.select(tables.cells)
    cells = cells[cells["n_scored"] > 0] if len(cells) else cells
    if cells.empty:
        return None
    behind = pd.DataFrame() if tables.behind is None else preset.select(tables.behind.cells)
    behind = behind[behind["n_scored"] > 0] if len(behind) else behind
    one_convention(cells, *([] if behind.empty else [behind]))
    original = _original(preset, tables.cells, cells)
    split = [*_SPLIT, "conditioned_on"] if _borrows(preset) else _SPLIT
    panels = [(key, rows) for key, group in cells.groupby(split, sort=True) for rows in _unique(group)]
    scores = [score for score in _SCORES if cells[score].notna().any()]
    size = (2.5 * len(scores) + 0.2, (2.2 if len(panels) < 3 else 1.8) * len(panels) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(panels), len(scores), sharey=True, squeeze=False)
    for (key, rows), axes in zip(panels, grid, strict=True):
        levels = dict(zip(split, key, strict=True))
        beside = _at(original, setting=key[0], system_goal=key[1], model=tuple(rows["model"]))
        band = None if "own" not in preset.histories or tables.reference is None else tables.reference
        for ax, score in zip(axes, scores, strict=True):
            for part in _unique(_at(behind, **levels)):
                plot_by_length(part, ax, score=score, muted=True)
            plot_original(beside, ax, score)
            held = None if band is None or score == "retained_frac" else _at(band, system_goal=key[1])
            plot_by_length(rows, ax, score=score, reference=held)
            ax.label_outer()
            ax.set_ylabel(SCORE_LABELS[score])
            ax.set_title(" ", loc="left")
        # Wider than its panel: the blank ones beside it keep the row's height, and it does not push them away.
        axes[0].set_title(_title(preset, *map(str, key)), loc="left").set_in_layout(False)
    _share_lengths(list(grid.flat), [*cells["n_instrumental"], *(behind["n_instrumental"] if len(behind) else ())])
    dashed = f"; dashed: own history{', without pressure' if 'bare' in original else ''}" if len(original) else ""
    add_legend(figure, list(grid.flat), f"{tables.caption(cells)}; {sizes(cells)}{dashed}")
    return Drawn(preset.name, figure, _joined(front=cells, behind=behind, original=original))


def plot_original(table: pd.DataFrame, ax: Axes, score: Score) -> Axes:
    """Draw what models did on their own history as dashed lines in their colours, behind what they did on another.

    Args:
        table: rows of `analysis.cell_table.cells_table`; one a model and length, or nothing is drawn of the model.
        ax: where to draw.
        score: the column to draw.
    """
    for model, style in (styles_of(table["model"]) if len(table) else {}).items():
        rows = table[table["model"] == model].sort_values("n_instrumental")
        if not rows["n_instrumental"].duplicated().any():
            x, y = rows["n_instrumental"], rows[score]
            ax.plot(x, y, color=style.colour, linewidth=0.9, linestyle=(0, (3, 2)), alpha=0.6, zorder=1.5)
    return ax


_SPLIT: Final = ["setting", "system_goal"]

_KINDS: Final[Mapping[Kind, Callable[[Preset, Tables], Drawn | None]]] = {
    "quarters": _by_quarter,
    "lengths": _by_length,
    "stated": lambda preset, tables: draw_stated(preset.name, preset.select(tables.stated)),
    "tokens": lambda preset, tables: draw_tokens(preset.name, tables.tokens),
    "correlations": lambda preset, tables: draw_correlations(preset.name, tables.correlations),
}


def _original(preset: Preset, every: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which the same models went on from their own history, at the lengths of the figure.

    Where there are none under pressure, those without stand in, marked by the column ``bare``.
    """
    if "own" in preset.histories:
        return pd.DataFrame()
    levels = {name: tuple(cells[name]) for name in ("setting", "system_goal", "model", "n_instrumental")}
    own = _at(every, history="own", **levels)
    if own.empty:
        own = _at(every, history="own", **levels | {"setting": "goal_switching"}).assign(setting="combined", bare=True)
    return own[own["n_scored"] > 0]


def _title(preset: Preset, setting: str, goal: str, on: str = "") -> str:
    words = [preset.title, setting.replace("_", " "), f"system goal {goal}"]
    if preset.title.lower() == words[1]:
        del words[1]
    return ", ".join([*words, f"on {styles_of([on])[on].label}'s"] if on else words)


def _share_lengths(axes: Sequence[Axes], lengths: Sequence[int]) -> None:
    """Give all panels one axis of lengths, so that they can be compared, and nothing lies beside one."""
    marked = sorted({int(length) for length in lengths})
    for ax in axes:
        ax.xaxis.set_major_locator(FixedLocator(marked))
        ax.set_xticks(marked, [str(length) for length in marked])
        ax.set_xlim(marked[0] / 1.25, marked[-1] * 1.25)


def _borrows(preset: Preset) -> bool:
    return preset.histories == ("borrowed",)


def _at(table: pd.DataFrame, **levels: Any) -> pd.DataFrame:
    if table.empty:
        return table
    for name, level in levels.items():
        table = table[table[name].isin(level if isinstance(level, tuple) else (level,))]
    return table


def _unique(cells: pd.DataFrame) -> list[pd.DataFrame]:
    """Split cells so that one model has one row a length: by further factors, where runs differ in more."""
    if cells.empty:
        return []
    if not cells.duplicated(["model", "n_instrumental"]).any():
        return [cells]
    return [rows for _, rows in cells.groupby("factors", sort=True)]


def _joined(*, front: pd.DataFrame, **others: pd.DataFrame) -> pd.DataFrame:
    """Return all tables with a column that says which is drawn how."""
    named = {"front": front} | {name: table for name, table in others.items() if len(table)}
    if len(named) == 1:
        return front
    return pd.concat([table.assign(drawn=name) for name, table in named.items()], ignore_index=True)
