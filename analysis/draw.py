"""Owns `apex figures`: from a source of runs to the paper's figures, each in three formats with its table beside."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.cell_table import alike_cells, cells_table, curves_table
from analysis.figure_names import SWITCHES, figure_name, figure_words
from analysis.figures import STYLE, Score, add_legend, plot_by_length, plot_by_quarter
from analysis.options import Choice, choose, run_command, score_parser
from analysis.palette import styles_of
from analysis.run_table import runs_table
from analysis.runs import SourceError
from analysis.survival import curves_table as survival_table
from analysis.survival import times_table
from analysis.survival_figure import draw_free_of_divergence

REFERENCE: Final = Path(__file__).resolve().parents[1] / "results" / "reference" / "policies_by_length.csv"
"""Scores of the two scripted agents that figures of phase length are held against; a test makes them anew."""

_FORMATS: Final = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Formats of every figure, with what keeps the same figure the same file."""

_LENGTH_SCORES: Final[tuple[Score, ...]] = ("gd_actions", "gd_inaction", "retained_frac")


_LEVELS: Final = ["setting", "system_goal", "history", "conditioned_on", "factors"]
_FEW_RUNS: Final = 20
"""Up to so many runs a cell, each is drawn as a point of its own."""


class Drawn(NamedTuple):
    """A figure with the table that it shows."""

    name: str
    figure: Figure
    table: pd.DataFrame
    runs: pd.DataFrame | None = None
    """The runs that are drawn as points; None where there are none."""
    reference: pd.DataFrame | None = None
    """The scripted agents' scores that are drawn behind; None where they are not."""


def main(argv: Sequence[str]) -> int:
    """Draw the figures of a source of runs; exit code 0 done, 1 nothing to draw, 2 bad input."""
    parser = score_parser(
        "apex figures",
        "Draw GD_actions and GD_inaction against the length of the instrumental phase, GD_actions over the quarters "
        "under pressure, and the share of runs free of divergence by quarters since the switch: .png, .pdf and .svg, "
        "with the table of each as .csv.",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder for figures; made if missing")
    return run_command(parser, argv, _draw)


def draw_by_length(
    cells: pd.DataFrame, caption: str, reference: pd.DataFrame | None = None, runs: pd.DataFrame | None = None
) -> Iterator[Drawn]:
    """Yield a figure of scores against phase length for each setting, system goal and history with a switch.

    Args:
        cells: rows of `analysis.cell_table.cells_table`.
        caption: small print below the axes.
        reference: rows of the scripted agents, as in `plot_by_length`; drawn where the history is the model's own.
        runs: rows of `analysis.run_table.runs_table`, drawn as points where a cell has few; none where None.
    """
    switched = cells[cells["setting"].isin(SWITCHES) & (cells["n_scored"] > 0)]
    for name, rows in switched.groupby(_figure_names(switched), sort=True):
        _, setting, system_goal, *special = figure_words(_names(rows.iloc[0]))
        beside = None if special or reference is None else reference[reference["system_goal"] == system_goal]
        scores = [score for score in _LENGTH_SCORES if rows[score].notna().any()]
        points = None if runs is None else _few(runs, rows)
        figure = Figure(figsize=(2.5 * len(scores) + 0.2, 2.9), layout="constrained")
        axes = list(figure.subplots(1, len(scores), sharey=True, squeeze=False)[0])
        for ax, score in zip(axes, scores, strict=True):
            band = None if score == "retained_frac" else beside
            plot_by_length(rows, ax, score=score, reference=band).tick_params(labelleft=ax is axes[0])
            if points is not None:
                _add_points(ax, points, score)
        title = [setting, f"system goal {system_goal}", *special]
        axes[0].set_title(", ".join(title).replace("_", " ").capitalize(), loc="left")
        add_legend(figure, axes, f"{caption}; {sizes(rows)}")
        yield Drawn(str(name), figure, rows, points, beside)


def draw_pressure(curves: pd.DataFrame, caption: str) -> Iterator[Drawn]:
    """Yield one figure of GD_actions over the quarters under pressure: a row a system goal, a column an elicitation.

    Args:
        curves: rows of `analysis.cell_table.curves_table`.
        caption: small print below the axes.
    """
    for name, panels in curves.groupby(_figure_names(curves), sort=True) if len(curves) else ():
        yield _pressure(str(name), panels, caption)


def _pressure(name: str, curves: pd.DataFrame, caption: str) -> Drawn:
    goals = [goal for goal in ("profit", "emissions") if (curves["system_goal"] == goal).any()]
    prompts = [prompt for prompt in ("weak", "strong") if (curves["elicitation"] == prompt).any()]
    size = (3.4 * len(prompts) + 0.2, 2.4 * len(goals) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(goals), len(prompts), sharex=True, sharey=True, squeeze=False)
    for goal, row in zip(goals, grid, strict=True):
        for prompt, ax in zip(prompts, row, strict=True):
            panel = curves[(curves["system_goal"] == goal) & (curves["elicitation"] == prompt)]
            if panel.empty:
                ax.set_axis_off()
                continue
            plot_by_quarter(panel, ax)
            ax.set_title(f"System goal {goal}, {prompt} elicitation", loc="left")
            ax.label_outer()
    last = curves.sort_values("quarter").groupby("cell").tail(1)
    add_legend(figure, list(grid.flat), f"{caption}; {sizes(last)}")
    return Drawn(name, figure, curves)


def save(drawn: Drawn, folder: Path) -> list[Path]:
    """Write a figure in every format, and its table as CSV; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{drawn.name}.csv"]
    drawn.table.to_csv(paths[0], index=False)
    for what, table in (("runs", drawn.runs), ("reference", drawn.reference)):
        if table is not None and len(table):
            paths.append(folder / f"{drawn.name}-{what}.csv")
            table.to_csv(paths[-1], index=False)
    for ending, metadata in _FORMATS.items():
        paths.append(folder / f"{drawn.name}.{ending}")
        drawn.figure.savefig(paths[-1], metadata=metadata)
        drawn.figure.set_layout_engine("none")  # laid out once, so that all formats are the same figure
    return paths


def reference_policies(convention: str, path: Path = REFERENCE) -> pd.DataFrame | None:
    """Return the scripted agents' scores in a convention, or None where they are not at hand."""
    if not path.is_file():
        return None
    table = pd.read_csv(path)
    return table[table["convention"] == convention]


def _names(row: pd.Series[Any]) -> dict[str, Any]:
    """Return what names the figure of a cell, missing levels None."""
    return {name: None if pd.isna(row[name]) else row[name] for name in _LEVELS} | {
        "factors": "" if pd.isna(row["factors"]) else row["factors"]
    }


def _figure_names(rows: pd.DataFrame) -> pd.Series[str]:
    return pd.Series([figure_name(_names(row)) for _, row in rows.iterrows()], index=rows.index, dtype=object)


def _few(runs: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the counted runs of those cells that have few of them."""
    few = cells.loc[cells["n_scored"] <= _FEW_RUNS, "cell"]
    columns = ["run_id", "cell", "model", "n_instrumental", "seed", "cluster", *_LENGTH_SCORES]
    return runs.loc[runs["cell"].isin(few) & runs["counted"], columns]


def _add_points(ax: Axes, runs: pd.DataFrame, score: Score) -> None:
    """Put a faint point a run where its model's line has its mean."""
    labels = {style.label: model for model, style in styles_of(runs["model"]).items()}
    for drawn in ax.containers:
        model = labels.get(str(drawn.get_label()))
        line = drawn[0]
        lengths = sorted(set(runs["n_instrumental"]))
        for x in line.get_xdata() if model is not None else ():
            length = min(lengths, key=lambda length: abs(length / x - 1))
            values = runs.loc[(runs["model"] == model) & (runs["n_instrumental"] == length), score].dropna()
            ax.scatter([x] * len(values), values, s=5, color=line.get_color(), alpha=0.25, linewidths=0, zorder=2)


def sizes(cells: pd.DataFrame) -> str:
    """Return how many runs and trajectories stand behind the means of some cells, as captions have it."""
    n = _n_of(cells)
    told = [f"n = {range_of(n)}"]
    if "n_clusters" in cells and (cells["n_clusters"] < n).any():
        told.append(f"K = {range_of(cells['n_clusters'])} trajectories")
    return ", ".join(told)


def _n_of(cells: pd.DataFrame) -> pd.Series[Any]:
    return cells["n_scored" if "n_scored" in cells else "gd_actions_n"]


def range_of(numbers: pd.Series[Any]) -> str:
    """Return the least and the largest of some numbers, as captions have it."""
    low, high = int(numbers.min()), int(numbers.max())
    return str(low) if low == high else f"{low} to {high}"


def _draw(options: argparse.Namespace) -> int:
    choice = choose(options)
    n_figures = 0
    with mpl.rc_context(STYLE):
        for drawn in _figures(choice):
            n_figures += 1
            save(drawn, options.out)
            print(options.out / f"{drawn.name}.png")
    if n_figures:
        print(f"{n_figures} figures, each also as .pdf and .svg, and what it shows as .csv")
        return 0
    print(f"{choice.name}: nothing to draw: no scored run has an instrumental phase or is under pressure")
    return 1


def _figures(choice: Choice) -> Iterator[Drawn]:
    runs = runs_table(choice.pairing, choice.convention)
    cells = cells_table(runs, interval=choice.interval)
    if alike := alike_cells(cells):
        raise SourceError("; ".join(alike))
    curves = curves_table(choice.pairing, choice.convention, interval=choice.interval)
    reference = reference_policies(choice.convention.name)
    switched = cells[cells["setting"].isin(SWITCHES)]
    yield from draw_by_length(cells, caption_of(choice, switched), reference, runs)
    yield from draw_pressure(curves, caption_of(choice, cells[cells["setting"] == "adversarial_pressure"]))
    yield from (Drawn(*one) for one in draw_free_of_divergence(survival_table(times_table(choice.source.runs))))


def caption_of(choice: Choice, cells: pd.DataFrame) -> str:
    """Return what a figure's small print says of the means of some cells: convention, pairing and interval."""
    pairs = f"pairs by {choice.pairing.by}" if choice.convention.needs_baseline else "no baseline"
    words = f"convention {choice.convention.name}, {pairs}; mean{{}}, 95 % interval {choice.interval}"
    if not (cells["n_clusters"] < _n_of(cells)).any():
        return words.format(" of runs")
    if choice.interval == "paper_wald":
        return words.format(" of runs") + ", as if runs that share a trajectory were independent"
    return words.format(" over trajectories") + " of these, none where all runs share one"
