"""Owns `apex import`: it turns published checkpoints into records, shows how far it is, and says what was found."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from analysis.published.clusters import write_whole
from analysis.published.importing import Imported, import_all
from analysis.published.places import count_in
from analysis.published.quality import KINDS, Row, quality_rows, summary
from analysis.published.records import SOURCE
from experiments.errors import InputError

QUALITY_TABLE: Final = "quality.csv"
"""Every oddity that was found, a row each."""
INDEX: Final = "checkpoints.csv"
"""Every checkpoint, imported or not, a row each."""

LIVE_EVERY_S: Final = 0.2
PLAIN_EVERY_S: Final = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``apex import`` and return its exit code: 0 all imported, 1 some are not, 2 bad input, 130 interrupted."""
    args = _parser().parse_args(argv)
    started_s = time.monotonic()
    progress = _Progress(sys.stderr, count_in(args.clone))
    try:
        if args.out.exists() and not args.out.is_dir():
            raise InputError(f"{args.out} is a file: a folder for the records is expected")
        args.out.mkdir(parents=True, exist_ok=True)
        imported = import_all(args.clone, args.out, n_processes=args.jobs, on_result=progress.show)
        progress.clear()
        rows = quality_rows(imported)
        _write_tables(args.out, imported, rows)
    except (InputError, OSError) as error:
        progress.clear()
        print(f"apex import: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        progress.clear()
        print(f"apex import: interrupted; what is in {args.out} is whole, the same command does all", file=sys.stderr)
        return 130
    _tell(imported, rows, args.out, time.monotonic() - started_s)
    return int(bool(imported.failures))


def _tell(imported: Imported, rows: Sequence[Row], out: Path, elapsed_s: float) -> None:
    n_files = len(imported.runs) + len(imported.failures)
    n_cells = len({run.name.cell.of_length(run.n_instrumental) for run in imported.runs})
    n_trajectories = len({run.cluster_id for run in imported.runs if run.trajectory})
    print("\n".join(summary(rows)))
    for failure in imported.failures:
        print(f"not imported: {failure.file}: {failure.code}: {failure.text}")
    told = f"{n_cells} cells, {n_trajectories} instrumental trajectories, {elapsed_s:.1f} s"
    print(f"{len(imported.runs):,} of {n_files:,} checkpoints imported into {out}; {told}")
    print(f"every oddity, a row each: {out / QUALITY_TABLE}; every checkpoint: {out / INDEX}")


def _write_tables(out: Path, imported: Imported, rows: Iterable[Row]) -> None:
    table = [("kind", "cell", "run_id", "n", "detail", "meaning"), *((*row, KINDS[row.kind]) for row in rows)]
    write_whole(out / QUALITY_TABLE, _csv(table))
    index: list[Sequence[object]] = [("file", "status", "run_id", "cluster_id", "sha256", "n_quarters", "reason")]
    index += (
        (run.file, "imported", run.name.run_id, run.cluster_id, run.sha256, run.n_quarters, "") for run in imported.runs
    )
    index += ((failure.file, failure.code, "", "", "", "", failure.text) for failure in imported.failures)
    write_whole(out / INDEX, _csv(index))


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


@dataclass(slots=True)
class _Progress:
    """How far the import is: one line that is rewritten on a terminal, a plain line now and then elsewhere."""

    out: TextIO
    n_expected: int | None
    _started_s: float = field(default_factory=time.monotonic)
    _shown_s: float = field(default_factory=time.monotonic)

    def show(self, imported: Imported) -> None:
        """Show the count, if it is time to."""
        now, live = time.monotonic(), self.out.isatty()
        if now - self._shown_s < (LIVE_EVERY_S if live else PLAIN_EVERY_S):
            return
        self._shown_s = now
        n_done, n_failed = len(imported.runs) + len(imported.failures), len(imported.failures)
        of = f" of {self.n_expected:,}" if self.n_expected is not None else ""
        failed = f", {n_failed} not imported" if n_failed else ""
        line = f"{n_done:,}{of} checkpoints{failed}, {now - self._started_s:.0f} s"
        self.out.write(f"\r\x1b[2K{line}" if live else f"{line}\n")
        self.out.flush()

    def clear(self) -> None:
        """Take the line off a terminal, so that something else can be printed."""
        if self.out.isatty():
            self.out.write("\r\x1b[2K")
            self.out.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="apex import",
        description="Turn the paper's published checkpoints into run records. They are pickles; none is executed, and "
        "neither of the SDKs that they name is needed.",
        epilog="Exit code: 0 if every checkpoint was imported, 1 if some were not, 2 for bad input.",
    )
    parser.add_argument("source", choices=[SOURCE], help="which published data")
    parser.add_argument(
        "clone",
        type=Path,
        metavar="CLONE",
        help="a clone of the public repository, or an archive of it (tar or zip), packed or not",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the records and two tables; made if missing")
    n_cpus = os.cpu_count() or 1
    parser.add_argument(
        "--jobs", type=_positive, default=n_cpus, metavar="N", help=f"processes (default: {n_cpus}, one a processor)"
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a whole number of 1 or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
