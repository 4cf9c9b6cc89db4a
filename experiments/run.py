"""Owns the Hydra side of `apex run`: from the command line to validated settings; DictConfig never leaves this file."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from omegaconf import DictConfig, OmegaConf

from experiments import launchers
from experiments.budget import check_prices, known_price
from experiments.config import Settings, validate
from experiments.errors import InputError
from experiments.overrides import jobs_of, problem_in, secret_in
from experiments.progress import Progress
from experiments.run_spec import ModelConfig
from experiments.sweep import Report, Sweep, run_sweep
from experiments.watch import BY_THE_USER

CONF_DIR: Final = Path(__file__).parent.parent / "conf"

INTERRUPTED: Final = 130
"""Exit code after an interrupt, as shells give it."""
REFUSED: Final = 2
"""Exit code of bad input, with which nothing is played."""

_PROCESS: Final = secrets.token_hex(8)

# Where a job runs elsewhere, this module is imported before its folder is named; the launching process's value stays.
OmegaConf.register_new_resolver("apex_pid", os.getpid, use_cache=True, replace=True)


def main(argv: Sequence[str]) -> int:
    """Run ``apex run OVERRIDES`` and return its exit code.

    0: complete; 1: something is left to do; 2: bad input; 130: interrupted. Of jobs that a launcher has put elsewhere,
    1 where not all are complete.
    """
    import hydra
    from hydra.core.hydra_config import HydraConfig

    # Completion is bound to the name of the command, which is its first word alone.
    sys.argv = ["apex" if "-sc" in argv else "apex run", *argv]
    problem = secret_in(argv) or launchers.missing_plugin(argv) or problem_in(argv, CONF_DIR)
    if problem:
        print(f"apex run: {problem}", file=sys.stderr)
        return 2
    launchers.prepare(argv)
    codes: list[int] = []
    launched_by = this_process()

    def job(config: DictConfig) -> None:
        if INTERRUPTED in codes:
            return
        plain = OmegaConf.to_container(config, resolve=True)
        if not isinstance(plain, dict):
            raise InputError(f"the configuration is {type(plain).__name__}: a mapping is expected")
        code = run_job({str(key): value for key, value in plain.items()})
        if code == REFUSED:
            forget_saved(Path(HydraConfig.get().runtime.output_dir))
        codes.append(code)
        if code and launched_by != this_process():
            folder = Path(str(plain["results_dir"])) / str(plain["name"])
            raise launchers.JobUnfinished(f"a job ended with exit code {code}; `apex status {folder}` tells of all")

    hydra.main(version_base="1.3", config_path=str(CONF_DIR), config_name="config")(job)()
    return max(codes, default=0)


def this_process() -> str:
    """Return a name of this process, by which a job knows whether it runs in the one that has launched it."""
    return _PROCESS


def run_job(data: Mapping[str, Any]) -> int:
    """Validate one configuration, play it, and return its exit code."""
    from experiments.models import build_model

    try:
        settings = validate(data)
        # What a model cannot be built from is told before any run starts, and so is a limit that cannot be kept.
        for model in asked_models(settings):
            build_model(model)
        check_prices(settings.limits, asked_models(settings))
    except InputError as error:
        print(f"apex run: {error}", file=sys.stderr)
        return REFUSED
    return play_and_tell(settings)


def forget_saved(folder: Path) -> None:
    """Remove the configuration that Hydra has saved of a refused job, and the folders that it was alone in."""
    shutil.rmtree(folder / ".hydra", ignore_errors=True)
    for log in folder.glob("*.log"):
        if not log.stat().st_size:
            log.unlink()
    with suppress(OSError):  # of a folder that holds something else
        for place in (folder, *folder.parents[:2]):
            place.rmdir()


def play_and_tell(settings: Settings) -> int:
    """Play validated settings, say what came of it, and return 0 if all is done, 130 if interrupted, else 1."""
    try:
        report = play_settings(settings)
    except KeyboardInterrupt:
        print("interrupted at once; turns that were running are lost. The same command goes on from here.")
        return INTERRUPTED
    print(told(settings, report))
    if report.complete:
        return 0
    return INTERRUPTED if report.stopped == BY_THE_USER else 1


def settings_of(overrides: Sequence[str]) -> Settings:
    """Return the settings of a command line without playing them, for commands that need what `apex run` would do.

    Raises:
        InputError: if the overrides do not compose, or what they ask for is not allowed.
    """
    configurations = configurations_of(overrides)
    if len(configurations) > 1:
        raise InputError(f"{' '.join(overrides)}: {len(configurations)} configurations, where one is expected")
    return validate(configurations[0])


def configurations_of(overrides: Sequence[str]) -> list[dict[str, Any]]:
    """Return the configuration of each job of a command line: one, or with ``--multirun`` one a combination of values.

    Raises:
        InputError: if the overrides do not compose, or hold what looks like a key.
    """
    from hydra import compose, initialize_config_dir
    from hydra._internal.utils import get_args_parser
    from hydra.errors import HydraException

    problem = secret_in(overrides) or problem_in(overrides, CONF_DIR)
    if problem:
        raise InputError(problem)
    arguments = get_args_parser().parse_args(list(overrides))
    jobs = jobs_of(arguments.overrides) if arguments.multirun else [arguments.overrides]
    found = []
    with initialize_config_dir(str(CONF_DIR), version_base="1.3"):
        for job in jobs:
            try:
                plain = OmegaConf.to_container(compose("config", overrides=list(job)), resolve=True)
            except HydraException as error:
                raise InputError(str(error).splitlines()[0]) from error
            if not isinstance(plain, dict):
                raise InputError(f"the configuration is {type(plain).__name__}: a mapping is expected")
            found.append({str(key): value for key, value in plain.items()})
    return found


def play_settings(settings: Settings) -> Report:
    """Play the runs of validated settings, with progress on standard error."""
    from experiments.models import build_model

    progress = Progress(settings.runs)
    prices = {model.name: known_price(model) for model in asked_models(settings)}
    sweep = Sweep(
        root=settings.root,
        runs=settings.runs,
        build_model=build_model,
        concurrency=settings.concurrency,
        sync=settings.sync,
        claims=settings.claims,
        corpus=settings.corpus,
        notes={
            "name": settings.name,
            "about": settings.about,
            "margin": settings.margin,
            "primary": settings.primary or "",
        },
        interview=settings.interview,
        limits=settings.limits,
        price_of=lambda model: prices.get(model["name"]),
    )
    try:
        return asyncio.run(run_sweep(sweep, progress))
    finally:
        progress.show(last=True)


def asked_models(settings: Settings) -> list[ModelConfig]:
    """Return every model that the runs of a configuration ask, those that only lend a phase or a dose included."""
    lenders = [run.parent_model for run in settings.runs if run.parent_record is None]
    models = [*settings.models, *lenders, *(run.model for run in settings.runs)]
    return list({model.name: model for model in models if model is not None}.values())


def told(settings: Settings, report: Report) -> str:
    """Return what a finished sweep says: outcomes, problems, and how to go on."""
    counts = ", ".join(f"{n} {name}" for name, n in sorted(report.outcomes.items()))
    lines = [f"{len(settings.runs)} runs of {settings.name}: {counts}", *report.problems]
    lines += [f"{n} runs or phases ended at {limit}" for limit, n in sorted(report.limited.items())]
    lines.append(f"records: {settings.root}")
    if not report.complete:
        why = f"not everything is done; `apex status {settings.root}` says why"
        lines.append(f"stopped: {report.stopped}" if report.stopped else why)
        reached = [*([report.stopped.split()[0]] if report.stopped.startswith("limits.") else []), *report.limited]
        raised = f", with a higher {' and '.join(reached)}," if reached else ""
        lines.append(f"The same command{raised} goes on from here.")
    return "\n".join(lines)
