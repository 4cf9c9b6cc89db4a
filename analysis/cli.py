"""Owns the `apex` command: it finds the subcommand that is asked for, and imports nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("analysis.demo", "play the built-in example, score it and draw its figures"),
    "run": ("experiments.run", "play a grid of runs; a Hydra application, so overrides and --multirun work"),
    "plan": ("experiments.plan", "say what apex run would play, take and cost, before it does"),
    "status": ("experiments.status", "show where the runs of a results folder stand, and what they have spent"),
    "replay": ("experiments.replay", "drive the firm with recorded decisions and compare the books"),
    "score": ("analysis.score", "score recorded runs, one row a run and one a cell"),
    "stats": ("analysis.report.command", "test what recorded runs show, and say what they cannot show"),
    "stated": ("analysis.stated.command", "classify the goals that agents state, and hold them against what they did"),
    "power": ("analysis.power_command", "say how many seeds and trajectories a drift needs to show"),
    "corpus": ("experiments.corpus_command", "check the texts that agents read, show them, import the paper's own"),
    "import": ("analysis.published.command", "turn the paper's published checkpoints into run records"),
    "briefing": ("experiments.briefing", "print what an agent reads in one quarter of one run"),
    "audit": ("analysis.audit.command", "find where runs left their goal: by which call, by which mechanism"),
    "grade": ("analysis.grade_command", "grade runs by outcome and trajectory, hard violations with their evidence"),
    "gate": ("analysis.gate_command", "decide on a release: a candidate's runs against a policy and a baseline"),
    "export": ("analysis.export", "write records without their texts, to hand on"),
    "figures": ("analysis.draw", "draw the figures of recorded runs, each with its table"),
    "reproduce": ("analysis.paper.command", "draw the paper's figures and hold its statements against recorded runs"),
}
"""Subcommand -> module with ``main(argv) -> int``, and what it does; imported only when it is asked for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``apex COMMAND ...`` and return its exit code: 0 done, 1 the answer is no, 2 bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if words[0] == "-sc":
        return _complete(words)
    name, *rest = words
    if name not in COMMANDS:
        print(f"apex: there is no command {name!r}; the commands are: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return int(import_module(COMMANDS[name][0]).main(rest))
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _complete(words: Sequence[str]) -> int:
    """Answer a shell in which ``eval "$(apex run -sc install=bash)"`` was said: commands, then what Hydra knows."""
    line = os.environ.get("COMP_LINE", "")
    if line.split()[1:2] != ["run"]:
        print(" ".join(COMMANDS))
        return 0
    os.environ["COMP_LINE"] = line.replace(" run", "", 1)
    return int(import_module(COMMANDS["run"][0]).main(words))


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {told}" for name, (_, told) in COMMANDS.items()]
    return "\n".join(["usage: apex COMMAND ...", "", *lines, "", "apex COMMAND --help tells more."])


if __name__ == "__main__":
    sys.exit(main())
