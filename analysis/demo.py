"""Owns `apex demo`: the whole benchmark on embedded agents, from runs to scores and figures, and where each lies."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
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
    code = run.play_and_tell(settings)
    if code:
        return code
    return _score_and_draw(settings, started)


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
    for told, place in (
        ("records", settings.root),
        ("scores", scores / "cells.csv"),
        ("figure", _main_figure(figures)),
        ("all figures", figures),
    ):
        print(f"{told + ':':<13}{place}")
    print(f"done in {time.monotonic() - started:.0f} s; the README says which score each agent must get")
    return 0


def _main_figure(figures: Path) -> Path:
    return figures / "length-combined-emissions.png"
