"""Owns `apex briefing`: what an agent reads in one quarter of one run.

Pressure answers to what the agent did before, so there is no briefing without an agent: a scripted one plays the run by
the way of `apex run`, in a folder that is thrown away, and the briefing is what its record holds.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from apex_env.streams import check_seed
from experiments.config import Settings
from experiments.errors import InputError
from experiments.record import Line, read_record
from experiments.run import play_settings, settings_of
from experiments.run_spec import RunSpec
from experiments.runner import record_path

USAGE: Final = """\
usage: apex briefing seed=S quarter=Q [treatment=NAME] [treatment.FACTOR=LEVEL ...] [model=SCRIPTED] [corpus=PATH]

Print what an agent reads in one quarter of one run: the system prompt, and the quarter's briefing. Everything but seed
and quarter is as for `apex run`. The dose of pressure depends on what the agent did before, so a scripted agent plays
the run first: adherent, unless model= names another. Example:

  apex briefing seed=3 quarter=12 treatment=adversarial_pressure treatment.system_goal=profit"""

_OWN: Final = ("seed", "quarter")


def main(argv: Sequence[str]) -> int:
    """Run ``apex briefing seed=S quarter=Q OVERRIDES``; exit code 0 done, 2 bad input."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    try:
        print(briefing(argv))
    except InputError as error:
        print(f"apex briefing: {error}", file=sys.stderr)
        return 2
    return 0


def briefing(words: Sequence[str]) -> str:
    """Return what an agent reads in the quarter that a command line asks for, with a heading that says how it came.

    Raises:
        InputError: for words that are missing or not allowed.
    """
    own = {name: value for name, _, value in (word.partition("=") for word in words) if name in _OWN}
    missing = [name for name in _OWN if not own.get(name)]
    if missing:
        raise InputError(f"{' and '.join(f'{name}=NUMBER' for name in missing)} must be given")
    seed, quarter = (_number(name, own[name]) for name in _OWN)
    try:
        check_seed(seed)
    except ValueError as error:
        raise InputError(str(error)) from error
    rest = [word for word in words if word.partition("=")[0] not in _OWN]
    settings = settings_of([*rest, f"seeds=[{seed}]"])
    run = _only_run(settings)
    scenario = run.treatment.scenario(seed, run.phase_seed)
    if not scenario.first_quarter <= quarter <= scenario.last_quarter:
        allowed = f"{scenario.first_quarter} to {scenario.last_quarter}"
        raise InputError(f"quarter {quarter} is not allowed: {allowed}, with the quarters of {scenario.setting}")
    header, opened = _played(settings, run, quarter)
    return _told(run, header, opened)


def _number(name: str, word: str) -> int:
    if not word.isdecimal():
        raise InputError(f"{name} {word!r} is not allowed: a whole number")
    return int(word)


def _only_run(settings: Settings) -> RunSpec:
    """Return the run that is asked for: the only one beside baselines and donors that came along."""
    needed = [spec for run in settings.runs for spec in (run.baseline_spec(), run.donor_spec())]
    along = {spec.run_id for spec in needed if spec is not None}
    runs = [run for run in settings.runs if run.run_id not in along]
    if len(runs) != 1:
        names = ", ".join(dict.fromkeys(run.cell_id for run in runs))
        raise InputError(f"{len(runs)} runs are asked for where one is expected: {names}")
    model = runs[0].model
    if model.adapter != "scripted":
        raise InputError(f"model {model.name!r} is of adapter {model.adapter!r}: a scripted agent is expected")
    return runs[0]


def _played(settings: Settings, run: RunSpec, quarter: int) -> tuple[Line, Line]:
    """Return header and opening of a quarter, from the run's record or from that of its instrumental phase."""
    yoked = run.treatment.pressure_schedule == "yoked"
    with TemporaryDirectory(prefix="apex-briefing-") as folder:
        root = Path(folder)
        with redirect_stderr(io.StringIO()):
            report = play_settings(replace(settings, root=root, runs=settings.runs if yoked else (run,)))
        if report.problems or report.stopped:
            raise InputError("; ".join([*report.problems, report.stopped]).strip("; "))
        for spec in (run, run.phase_spec()):
            if spec is None or not record_path(root, spec).exists():
                continue
            record = read_record(record_path(root, spec))
            for opened in record.of_type("opened"):
                if opened["quarter"] == quarter:
                    return record.header, opened
    raise InputError(f"{run.model.name} did not get as far as quarter {quarter}")


def _told(run: RunSpec, header: Line, opened: Line) -> str:
    factors = ", ".join(f"{name} {value}" for name, value in run.treatment.identity().items())
    items = ", ".join(f"{item_id} ({kind})" for item_id, kind in opened["items"])
    return "\n".join(
        [
            f"# Seed {run.seed}, quarter {opened['quarter']}: {factors}",
            f"# The dose of pressure depends on what an agent did; here it is {run.model.name}, a scripted one.",
            f"# Dealt: {items or 'nothing'}",
            "",
            "# System prompt",
            "",
            header["system_prompt"],
            "",
            "# Briefing",
            "",
            opened["text"],
        ]
    )
