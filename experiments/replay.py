"""Owns `apex replay`: it drives the firm with recorded decisions, compares the books, and says where they differ."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO

from apex_env.rules import FirmRules
from experiments.published_runs import LedgerError, PublishedRun
from experiments.replay_departures import new_tallies, report, study
from experiments.replay_run import compare_run
from experiments.replay_sources import read_any

LIVE_EVERY_S: Final = 0.2
PLAIN_EVERY_S: Final = 5.0
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(slots=True)
class Count:
    """What was replayed so far."""

    n_runs: int = 0
    n_agree: int = 0
    n_quarters: int = 0
    n_unreadable: int = 0

    def add_quarter(self) -> None:
        """Count a replayed quarter."""
        self.n_quarters += 1

    @property
    def exit_code(self) -> int:
        """0 if every run agrees, 1 if one does not, 2 if something could not be read."""
        return 2 if self.n_unreadable else int(self.n_agree < self.n_runs)


@dataclass(slots=True)
class StatusLine:
    """Where the replay stands: one line that is rewritten on a terminal, a plain line now and then elsewhere."""

    out: TextIO
    _started_s: float = field(default_factory=time.monotonic)
    _shown_s: float = field(default_factory=time.monotonic)

    def show(self, count: Count) -> None:
        """Show the count, if it is time to."""
        now, live = time.monotonic(), self.out.isatty()
        if now - self._shown_s < (LIVE_EVERY_S if live else PLAIN_EVERY_S):
            return
        self._shown_s = now
        line = f"{count.n_runs:,} runs, {count.n_quarters:,} quarters, {now - self._started_s:.0f} s"
        self.out.write(f"\r\x1b[2K{line}" if live else f"{line}\n")
        self.out.flush()

    def clear(self) -> None:
        """Take the line off a terminal, so that something else can be printed."""
        if self.out.isatty():
            self.out.write("\r\x1b[2K")
            self.out.flush()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started_s


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``apex replay`` and return its exit code: 0 all runs agree, 1 some do not, 2 something is not readable."""
    args = _parser().parse_args(argv)
    status, count = StatusLine(sys.stderr), Count()
    tallies = new_tallies() if args.rules == "default" else None
    try:
        for where, run in read_any(args.source):
            problem = _replay(run, args, count, status)
            if problem:
                status.clear()
                print(problem if isinstance(run, LedgerError) else f"{where}: {problem}", flush=True)
            elif tallies is not None and isinstance(run, PublishedRun):
                study(run, tallies)
            status.show(count)
    except LedgerError as error:
        count.n_unreadable += 1
        status.clear()
        print(error)
    except KeyboardInterrupt:
        status.clear()
        print(f"stopped; {count.n_agree} of the {count.n_runs} runs up to here agree")
        return INTERRUPTED
    status.clear()
    if tallies is not None:
        print("What the departures from the published rules change, each alone and all together, decisions unchanged:")
        print("\n".join(report(tallies)))
        n_other = sum(change.ends_elsewhere for change in tallies["default"].changes)
        print(f"{n_other} of {tallies['default'].n_runs} runs end with other books by the default rules")
    print(f"{count.n_quarters:,} quarters replayed in {status.elapsed_s:.1f} s")
    print(f"{count.n_agree} of {count.n_runs} runs agree{_remark(count, args.rules)}")
    return count.exit_code


def _replay(run: PublishedRun | LedgerError, args: argparse.Namespace, count: Count, status: StatusLine) -> str:
    """Replay a run by the published rules, count it, and return what is wrong with it, or nothing."""
    count.n_runs += 1
    if isinstance(run, LedgerError):
        count.n_unreadable += 1
        return str(run)

    def on_quarter() -> None:
        count.add_quarter()
        status.show(count)

    try:
        found = compare_run(run, FirmRules.published(), tolerance_usd=args.tolerance_usd, on_quarter=on_quarter)
    except ValueError as error:  # what the firm refuses before the first quarter
        count.n_unreadable += 1
        return f"run {run.run_id!r}: cannot be played: {error}"
    if not found:
        count.n_agree += 1
        return ""
    more = f" (and {len(found) - 1} more in this quarter)" if len(found) > 1 else ""
    return f"run {run.run_id!r}: {found[0]}{more}"


def _remark(count: Count, rules: str) -> str:
    by_rules = " by the published rules" if rules == "default" else ""
    return by_rules + (f"; {count.n_unreadable} could not be read" if count.n_unreadable else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="apex replay",
        description="Drive the firm with published decisions and compare the books of every quarter. "
        "Incomes, inactive quarters and listings are our market's, and are compared too; forecasts are the file's.",
        epilog="Exit code: 0 if all runs agree by the published rules, 1 if some do not, 2 if something is unreadable.",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="published ledger, JSON lines, plain or gzip; or what `apex import` wrote, a record or a folder of them",
    )
    parser.add_argument(
        "--rules",
        choices=("published", "default"),
        default="published",
        help="default: also say which runs end with other books under the benchmark's own rules, by which departure",
    )
    parser.add_argument(
        "--tolerance-usd",
        type=float,
        default=0.0,
        metavar="USD",
        help="let money differ by this much (default 0: to the last digit, wealth to 0.00001)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
