"""Owns `apex stats`: from a source of runs to the statistical report, on the terminal and in files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.options import choose, run_command, score_parser

if TYPE_CHECKING:
    from analysis.report.report import Report


def main(argv: Sequence[str]) -> int:
    """Report on a source of runs; exit code 0 done, 1 there is nothing to report on, 2 bad input."""
    parser = score_parser(
        "apex stats",
        "For each figure: is there drift; what do elicitation, histories, settings, factors and models change; how "
        "does drift go with the length of the phase and with stated goals; what failed; what cannot be concluded. The "
        "primary question of a figure is the one that its experiment file declares.",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="CSV",
        help="stated goals of runs: run_id and label, or model, setting, n_instrumental, position and label; labels "
        "are 1 or system, 2 or hybrid, 3 or competing",
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="also what no claim rests on: Brunner-Munzel, Mann-Whitney and other tests of the same comparisons, "
        "Boschloo's of failures, interquartile means, profiles, probability of improvement",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the report as stats.md and stats.tex, and every number as stats-*.csv; made if missing",
    )
    return run_command(parser, argv, _report)


def save_report(report: Report, header: Sequence[str], folder: Path) -> list[Path]:
    """Write a report in Markdown and LaTeX, and its numbers as CSV; return the paths.

    Args:
        report: what is to be written.
        header: what was read, and how it was scored.
        folder: where to; made if missing.
    """
    from analysis.report.document import as_latex, as_markdown
    from analysis.report.tidy import tidy_tables
    from analysis.report.write import write_report

    folder.mkdir(parents=True, exist_ok=True)
    blocks = write_report(report, header)
    paths = [folder / "stats.md", folder / "stats.tex"]
    paths[0].write_text(as_markdown(blocks), encoding="utf-8")
    paths[1].write_text(as_latex(blocks), encoding="utf-8")
    for name, table in tidy_tables(report).items():
        paths.append(folder / f"stats-{name}.csv")
        table.to_csv(paths[-1], index=False)
    return paths


def _report(options: argparse.Namespace) -> int:
    # Imported here, since it takes seconds and neither --help nor a mistyped option needs any of it.
    from analysis.report.cell_runs import cells_of
    from analysis.report.document import as_text
    from analysis.report.report import make_report
    from analysis.report.stated import read_labels
    from analysis.report.write import write_report
    from analysis.run_table import runs_table

    # The paper's interval reproduces the paper's figures; a report that claims something takes one that holds.
    options.interval = options.interval or "gaffke"
    choice = choose(options)
    runs = runs_table(choice.pairing, choice.convention)
    labels = None if options.labels is None else read_labels(options.labels, cells_of(runs, choice.convention))
    report = make_report(
        runs, choice.convention, interval=choice.interval, labels=labels, sensitivity=options.sensitivity
    )
    by = f"pairs by {choice.pairing.by}" if choice.convention.needs_baseline else "no baseline needed"
    header = (
        f"{choice.name}: {len(choice.source.runs)} runs in {runs['cell'].nunique()} cells",
        f"convention {choice.convention.name}: {choice.convention.summary}; {by}",
        *choice.source.notes,
    )
    print(as_text(write_report(report, header)), end="")
    if options.out is not None:
        print(f"\nwritten: {', '.join(map(str, save_report(report, header, options.out)))}")
    if report.figures:
        return 0
    print(f"{choice.name}: nothing to report on: no cell has an instrumental phase or is under pressure")
    return 1
