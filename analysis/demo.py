"""Owns `apex demo`: the whole benchmark on embedded agents, from runs to scores and figures, and where each lies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from analysis import draw, score
from experiments import run
from experiments.config import Settings
from experiments.errors import InputError

EXPERIMENT: Final = "demo"


def main(argv: Sequence[str]) -> int:
    """Play the demonstration, score it and draw its figures; words are overrides as `apex run` takes them.

    Returns:
        0 done, 1 something is left to do, 2 bad input.
    """
    if set(argv) & {"-h", "--help"}:
        print("usage: apex demo [OVERRIDES]\n\nPlays conf/experiment/demo.yaml, scores it and draws its figures.")
        return 0
    started = time.monotonic()
    try:
        settings = run.settings_of([f"experiment={EXPERIMENT}", *argv])
    except InputError as error:
        print(f"apex demo: {error}", file=sys.stderr)
        return 2
    print(f"apex demo: {len(settings.runs)} runs of {len(settings.models)} embedded agents, no key and no network")
    with _other_half(argv) as helper:
        run.play_settings(run.settings_of([f"experiment={EXPERIMENT}", *argv, "shard=1/2"]) if helper else settings)
    # Whatever the halves have left undone is done here; what they did is only counted.
    code = run.play_and_tell(settings) if helper is None or helper.returncode else _tell_done(settings)
    if code:
        return code
    return _score_and_draw(settings, started)


@contextmanager
def _other_half(argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes] | None]:
    """Play the second of two shards in a process of its own, where there is a core for it; wait for it at the end."""
    if (os.cpu_count() or 1) < 2 or any(word.startswith("shard=") for word in argv):
        yield None
        return
    command = [sys.executable, "-m", "analysis.cli", "run", f"experiment={EXPERIMENT}", *argv, "shard=2/2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as helper:
        yield helper


def _tell_done(settings: Settings) -> int:
    print(f"{len(settings.runs)} runs of {settings.name} are done, by two processes that shared them")
    print(f"records: {settings.root}")
    return 0


def _score_and_draw(settings: Settings, started: float) -> int:
    root = str(settings.root)
    scores, figures = settings.root / "_scores", settings.root / "_figures"
    print()
    code = score.main([root, "--out", str(scores)])
    print()
    code = code or draw.main([root, "--out", str(figures)])
    if code:
        return code
    print()
    for what, place in (
        ("records", settings.root),
        ("scores", scores / "cells.csv"),
        ("figure", _main_figure(figures)),
        ("all figures", figures),
    ):
        print(f"{what + ':':<13}{place}")
    print(f"done in {time.monotonic() - started:.0f} s; the README says which score each agent must get")
    return 0


def _main_figure(figures: Path) -> Path:
    return figures / "length-combined-emissions.png"
