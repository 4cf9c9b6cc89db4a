"""Owns the options that every command on scores has: source, convention, pairing, interval."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from analysis.cell_table import INTERVALS, Interval
from analysis.conventions import CONVENTIONS, Convention, convention_named
from analysis.pairing import PairBy, Pairing, pair_runs
from analysis.runs import SourceError
from analysis.sources import Source, read_source


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs, and how they are to be scored."""

    name: str
    """Where the runs are from, as the user put it."""
    source: Source
    pairing: Pairing
    convention: Convention
    interval: Interval


def score_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that commands on scores share."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument(
        "source", metavar="SOURCE", help="folder of run records, or published ledger (.jsonl or .jsonl.gz)"
    )
    told = "; ".join(f"{name}: {convention.summary}" for name, convention in CONVENTIONS.items())
    parser.add_argument(
        "--convention", choices=tuple(CONVENTIONS), default="paper", help=f"how to score (default: paper). {told}"
    )
    parser.add_argument(
        "--pairing",
        choices=get_args(PairBy),
        help="which baseline run a run is held against: of the same seed, of the same run number, or (published runs "
        "only) at the same position of its folder, outages included, as the paper's code does; default: seed, and "
        "position for published runs in the reference convention",
    )
    parser.add_argument(
        "--interval",
        choices=INTERVALS,
        help="95 %% interval of mean scores (default: gaffke, and paper_wald in the reference convention)",
    )
    return parser


def choose(options: argparse.Namespace) -> Choice:
    """Read the source and pair its runs as the options say.

    Raises:
        SourceError: for a source that cannot be read, or a pairing that does not fit it.
    """
    convention = convention_named(options.convention)
    source = read_source(options.source)
    if not source.runs:
        raise SourceError("; ".join([f"{options.source}: there is no run in it", *source.notes]))
    as_published = convention.name == "reference"
    by: PairBy = options.pairing
    if by is None:
        by = "position" if as_published and all(run.filed for run in source.runs) else "seed"
    interval: Interval = options.interval or ("paper_wald" if as_published else "gaffke")
    return Choice(options.source, source, pair_runs(source.runs, by), convention, interval)


def run_command(
    parser: argparse.ArgumentParser, argv: Sequence[str], command: Callable[[argparse.Namespace], int]
) -> int:
    """Parse the arguments and run a command; what the user can mend becomes one line and exit code 2."""
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        return command(options)
    except SourceError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{parser.prog}: {error.filename or options.out}: {error.strerror or error}", file=sys.stderr)
        return 2
