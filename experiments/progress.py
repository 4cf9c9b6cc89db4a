"""Owns what a sweep shows while it runs: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final, TextIO

from experiments.chat import Usage
from experiments.grid import plan_phases
from experiments.run_spec import RunSpec

LIVE_EVERY_S: Final = 0.2
PLAIN_EVERY_S: Final = 10.0


class Progress:
    """Counts runs, quarters, turns, tokens and cost, and shows them now and then."""

    def __init__(self, runs: Sequence[RunSpec], *, out: TextIO | None = None) -> None:
        """Count against the plan: all runs, and the quarters of all runs and phases.

        Args:
            runs: the planned runs.
            out: where to show progress; standard error where None.
        """
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self.n_runs = len(runs)
        self.n_quarters = sum(_n_quarters(run) for run in runs) + sum(
            phase.treatment.n_instrumental for phase in plan_phases(runs)
        )
        self.runs_done = 0
        self.quarters_done = 0
        self._quarters_found = 0
        self.turns_done = 0
        self.tokens = 0
        self.cost_usd: float | None = 0.0
        """None as soon as the price of one turn is unknown."""
        self._started = time.monotonic()
        self._shown = 0.0

    def count_turn(self, usage: Usage | None) -> None:
        """Take note of a finished turn; an embedded agent has no usage and costs nothing."""
        self.turns_done += 1
        if usage is not None:
            self.tokens += usage.context_tokens + usage.output_tokens
            unknown = usage.cost_usd is None or self.cost_usd is None
            self.cost_usd = None if unknown else (self.cost_usd or 0.0) + (usage.cost_usd or 0.0)

    def count_quarter(self) -> None:
        """Take note of a closed quarter."""
        self.quarters_done += 1
        self.show()

    def count_found(self, n_quarters: int) -> None:
        """Take note of quarters that are on disk already, and take no time any more."""
        self.quarters_done += n_quarters
        self._quarters_found += n_quarters

    def count_run(self) -> None:
        """Take note of a run that is over, played now or before."""
        self.runs_done += 1
        self.show()

    def show(self, *, last: bool = False) -> None:
        """Show where the sweep stands, if it is time to."""
        now = time.monotonic()
        if not last and now - self._shown < (LIVE_EVERY_S if self._live else PLAIN_EVERY_S):
            return
        if not last and self._shown == 0.0 and not self._live:
            self._shown = now
            return
        self._shown = now
        line = self.line(now - self._started)
        self._out.write(f"\r\x1b[2K{line}" + ("\n" if last else "") if self._live else f"{line}\n")
        self._out.flush()

    def line(self, elapsed_s: float) -> str:
        """Return the line that says where the sweep stands."""
        parts = [
            f"{self.runs_done}/{self.n_runs} runs",
            f"{self.quarters_done}/{self.n_quarters} quarters",
            f"{self.turns_done:,} turns",
        ]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
            parts.append("cost unknown" if self.cost_usd is None else f"${self.cost_usd:,.2f}")
        left = self.n_quarters - self.quarters_done
        played = self.quarters_done - self._quarters_found
        if played and left > 0:
            parts.append(f"about {duration(elapsed_s / played * left)} left")
        parts.append(f"{duration(elapsed_s)} so far")
        return ", ".join(parts)


def _n_quarters(run: RunSpec) -> int:
    return run.treatment.n_evaluation or 0


def duration(seconds: float) -> str:
    """Return a duration for people.

    >>> duration(42), duration(300), duration(7260)
    ('42 s', '5 min', '2 h 1 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
