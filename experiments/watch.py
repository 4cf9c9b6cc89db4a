"""Owns what may end a run between two of its turns: the user's wish, a stopped sweep, and limits on spending."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from experiments.budget import Spending
from experiments.chat import Usage
from experiments.errors import Cancelled
from experiments.glance import PriceOf, glance_at, unknown_price
from experiments.limits import SweepLimits
from experiments.progress import Progress
from experiments.spending import Spent, spent_in

S_PER_HOUR: Final = 3600
BY_THE_USER: Final = "interrupted by the user"


class Stop:
    """The wish to end a sweep, looked at before every model call; the first reason stays."""

    def __init__(self) -> None:
        self.reason = ""

    def ask(self, reason: str) -> None:
        """Let running turns finish and no other begin."""
        self.reason = self.reason or reason


@dataclass(slots=True)
class SweepWatch:
    """What all runs of a sweep are watched by."""

    root: Path
    """Folder of the experiment, whose records tell what has been spent."""
    progress: Progress
    limits: SweepLimits = SweepLimits()
    price_of: PriceOf = unknown_price
    stop: Stop = field(default_factory=Stop)
    reached: Counter[str] = field(default_factory=Counter)
    """Runs that have ended at a limit of their own, by the limit's name."""
    _spending: Spending = field(init=False)
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Begin with what is on disk."""
        self._spending = Spending(self.root, self.price_of)

    def check(self) -> None:
        """Ask the sweep to stop if one of its limits is reached."""
        limits = self.limits.sweep
        if not self.stop.reason and (limits.counts_spending or limits.max_hours is not None):
            spent = self._spending.total if limits.counts_spending else Spent()
            hours = (time.monotonic() - self._began) / S_PER_HOUR
            reason = limits.reached("sweep", spent, hours)
            if reason:
                self.stop.ask(reason)

    def take(self, usage: Usage | None) -> None:
        """Take note of a turn of any run."""
        self.progress.count_turn(usage)
        self._spending.take(usage)

    def run(self, record: Path) -> RunWatch:
        """Return the watch of one run, which knows what the run's record says that it has spent.

        Raises:
            RecordError: if there is a record that cannot be read.
        """
        watch = RunWatch(self)
        limits = self.limits.run
        if (limits.counts_spending or limits.max_hours is not None) and record.exists() and record.stat().st_size:
            glance = glance_at(record, self.price_of)
            watch.spent, watch.played_before_s = glance.spent, glance.played_s
        return watch


@dataclass(slots=True)
class RunWatch:
    """Watches one run."""

    sweep: SweepWatch
    spent: Spent = Spent()
    played_before_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def before_turn(self) -> None:
        """Allow one more model call.

        Raises:
            Cancelled: if the sweep stops, or a limit of the run is reached.
        """
        self.sweep.check()
        if self.sweep.stop.reason:
            raise Cancelled(self.sweep.stop.reason)
        played_s = self.played_before_s + time.monotonic() - self._began
        reason = self.sweep.limits.run.reached("run", self.spent, played_s / S_PER_HOUR)
        if reason:
            self.sweep.reached[reason.partition(" ")[0]] += 1
            raise Cancelled(reason)

    def after_turn(self, usage: Usage | None) -> None:
        """Take note of a finished turn."""
        self.spent += spent_in(usage)
        self.sweep.take(usage)

    def found(self, n_periods: int) -> None:
        """Take note of quarters that the record holds already."""
        self.sweep.progress.count_found(n_periods)

    def after_period(self) -> None:
        """Take note of a closed quarter."""
        self.sweep.progress.count_quarter()


@contextmanager
def interrupts(stop: Stop) -> Iterator[None]:
    """Turn the first interrupt into a wish to stop; the second ends the program at once."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.ask(BY_THE_USER)
        for number in signals:
            loop.remove_signal_handler(number)

    signals: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, first)
    except (NotImplementedError, RuntimeError, ValueError):
        signals = ()
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
