"""Timing of repeated work, and the table that shows it beside its target."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The best of several repetitions: noise only ever adds to a time."""

    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    what: str
    cpu: str
    """Measured by the processor time of this process, which other processes disturb least."""
    wall: str
    target: str


def best_of(work: Callable[[int], object], n_repeats: int) -> Timing:
    """Time ``work``, which is told the number of the repetition."""
    timings = []
    for repeat in range(n_repeats):
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        work(repeat)
        timings.append((time.process_time() - cpu_s, time.perf_counter() - wall_s))
    return Timing(min(cpu_s for cpu_s, _ in timings), min(wall_s for _, wall_s in timings))


def show(rows: Sequence[Row]) -> None:
    """Print a table of what was measured, and what is aimed at."""
    lines = [("what", "CPU time", "wall time", "target"), *((row.what, row.cpu, row.wall, row.target) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        first, *rest = (
            text.ljust(width) if n == 0 else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join([first, *rest]))


def seconds(timing: Timing) -> tuple[str, str]:
    return f"{timing.cpu_s:.2f} s", f"{timing.wall_s:.2f} s"


def per_second(n: int, timing: Timing) -> tuple[str, str]:
    return f"{n / timing.cpu_s:,.0f} a second", f"{n / timing.wall_s:,.0f} a second"
