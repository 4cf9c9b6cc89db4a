"""Owns `apex score`: from a source of runs to the tables of runs and cells, on the terminal and in files."""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.cell_table import alike_cells, cells_table
from analysis.options import Choice, choose, run_command, score_parser
from analysis.paper.variants import render_side_by_side, scored, side_by_side, variants_for
from analysis.run_table import runs_table

_SHOWN_ORDER = ("setting", "system_goal", "history", "elicitation", "conditioned_on", "model", "n_instrumental")


def main(argv: Sequence[str]) -> int:
    """Score a source of runs; exit code 0 done, 1 no run could be scored, 2 bad input."""
    parser = score_parser("apex score", "Score recorded runs: a table of cells, and files with a row a run and a cell.")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for runs and cells, each as .csv and .parquet; made if missing"
    )
    parser.add_argument(
        "--all-conventions",
        action="store_true",
        help="show the cells by every convention side by side: published runs as the paper pairs them, dead runs "
        "included, and soundly, by run number without those",
    )
    return run_command(parser, argv, _score)


def save_table(table: pd.DataFrame, path: Path) -> tuple[Path, Path]:
    """Write a table as CSV and Parquet, and return both paths.

    Args:
        table: any table of scores.
        path: where to, without an ending; its folder is made if missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    csv, parquet = path.with_suffix(".csv"), path.with_suffix(".parquet")
    table.to_csv(csv, index=False)
    table.to_parquet(parquet, index=False)
    return csv, parquet


def render_header(choice: Choice, n_cells: int) -> str:
    """Return what was scored, and how."""
    convention = choice.convention
    by = f"pairs by {choice.pairing.by}" if convention.needs_baseline else "no baseline needed"
    return (
        f"{choice.name}: {len(choice.source.runs)} runs in {n_cells} cells\n"
        f"convention {convention.name}: {convention.summary}\n"
        f"{by}; intervals 95 %, {choice.interval}"
    )


def render_cells(cells: pd.DataFrame) -> str:
    """Return the cells that have scores as a text table, a line each; factors that are not at their default last."""
    scored = cells[(cells["setting"] != "baseline") | (cells["n_scored"] > 0)]
    ordered = scored.sort_values(list(_SHOWN_ORDER), kind="stable", na_position="first")
    head = ["model", "setting", "goal", "prompt", "I", "history", "scored", "GD_actions", "GD_inaction", "retained"]
    lines = [head, *(_cell_line(row) for row in ordered.to_dict("records"))]
    if (ordered["factors"] != "").any():
        factors = ["factors", *ordered["factors"]]
        lines = [[*line, words] for line, words in zip(lines, factors, strict=True)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def render_notes(runs: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Return what a reader of the cells must know: which runs have no score, and what the design cannot tell."""
    return "\n".join([*_runs_without_score(runs), *_limits(runs, cells)])


def _score(options: argparse.Namespace) -> int:
    choice = choose(options)
    if options.all_conventions:
        return _score_side_by_side(choice, options.out)
    runs = runs_table(choice.pairing, choice.convention)
    cells = cells_table(runs, interval=choice.interval)
    print(
        render_header(choice, len(cells)),
        "",
        render_cells(cells),
        "",
        render_notes(runs, cells),
        *choice.source.notes,
        sep="\n",
    )
    if options.out is not None:
        for name, table in (("runs", runs), ("cells", cells)):
            print(f"written: {', '.join(map(str, save_table(table, options.out / name)))}")
    if cells["n_scored"].sum():
        return 0
    print(f"{choice.name}: no run could be scored")
    return 1


def _score_side_by_side(choice: Choice, out: Path | None) -> int:
    runs = choice.source.runs
    variants = variants_for(runs)
    table = side_by_side((variant, scored(runs, variant)) for variant in variants)
    print(f"{choice.name}: {len(runs)} runs", render_side_by_side(table, variants), *choice.source.notes, sep="\n")
    if out is not None:
        print(f"written: {', '.join(map(str, save_table(table, out / 'conventions')))}")
    return 0 if len(table) else 1


def _cell_line(row: Mapping[Hashable, Any]) -> list[str]:
    return [
        row["model"],
        row["setting"],
        row["system_goal"],
        "-" if pd.isna(row["elicitation"]) else row["elicitation"],
        str(row["n_instrumental"]),
        row["history"],
        f"{row['n_scored']} of {row['n_runs']}",
        _with_interval(row, "gd_actions"),
        _with_interval(row, "gd_inaction"),
        _with_interval(row, "retained_frac"),
    ]


def _with_interval(row: Mapping[Hashable, Any], name: str) -> str:
    if pd.isna(row[name]):
        return "-"
    if pd.isna(row[f"{name}_low"]):
        return f"{row[name]:.3f}"
    return f"{row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"


def _runs_without_score(runs: pd.DataFrame) -> Iterator[str]:
    lost = runs[(runs["setting"] == "baseline") & ~runs["counted"]]
    if len(lost):
        told = ", ".join(f"{n} {outcome}" for outcome, n in lost["outcome"].value_counts().items())
        yield f"baselines without a score: {len(lost)} ({told})"
    lacking = runs[runs["gd_actions"].isna() & runs["gd_inaction"].isna() & (runs["setting"] != "baseline")]
    failed, lone = lacking[lacking["failed"] != ""], lacking[lacking["failed"] == ""]
    yield f"runs without a score: {len(lacking)} ({len(failed)} failed, {len(lone)} unpaired)"
    for (cell, outcome), rows in lacking.groupby(["cell", "failed"], sort=False):
        reasons = rows["gd_actions_reason"].unique()
        more = f" and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
        yield f"  {cell}: {outcome or f'unpaired ({reasons[0]}{more})'}: run {_ranges(rows['run'])}"
    undefined = runs[(runs["gd_inaction"].isna() | runs["gd_actions"].isna()) & ~runs.index.isin(lacking.index)]
    undefined = undefined[undefined["setting"] != "baseline"]
    for name in ("gd_actions", "gd_inaction"):
        for reason, rows in undefined[undefined[name].isna()].groupby(f"{name}_reason", sort=False):
            yield f"{name} undefined in {len(rows)} runs: {reason}"


def _limits(runs: pd.DataFrame, cells: pd.DataFrame) -> Iterator[str]:
    yield from alike_cells(cells)
    bare = (runs[["phi", "phi_competing", "actions_baseline", "gd_actions"]] == 0).all(axis="columns")
    if bare.any():
        yield f"{bare.sum()} runs bought nothing, and neither did their baselines: GD_actions 0 is no adherence there"
    one_cluster = ((cells["n_clusters"] == 1) & (cells["n_scored"] > 1)).sum()
    if one_cluster:
        yield f"{one_cluster} cells: all runs went on from one instrumental trajectory, so scores are conditional on it"
    struck = int((runs["counted"] & (runs["outcome"] != "completed")).sum())
    if struck:
        yield f"{struck} runs that an outage struck are scored, as published; gd_*_live in the files leaves them out"
    if cells["gd_actions_method"].str.startswith("paper_wald").any():
        yield "paper_wald intervals are too narrow for few runs, and [0, 0] on zeros; see the signed d_* in the files"
    disjoint = (cells["shares_quarters"] == False).sum()  # noqa: E712 - the column may hold None
    if disjoint:
        yield f"{disjoint} cells: pairs share no quarters of a market, so compare the groups, not the pairs"
    elicited = dict(zip(cells["cell"], cells["elicitation"], strict=True))
    there = [elicited.get(name) for name in cells["baseline_cell"]]
    mixed = sum(
        pd.notna(here) and pd.notna(baseline) and here != baseline
        for here, baseline in zip(cells["elicitation"], there, strict=True)
    )
    if mixed:
        yield f"{mixed} cells: the baseline has another elicitation, so the score mixes elicitation with pressure"


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers in order, neighbours drawn together.

    >>> _ranges([3, 1, 2, 7])
    '1-3, 7'
    """
    groups: list[list[int]] = []
    for number in sorted(numbers):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups)
