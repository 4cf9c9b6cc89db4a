"""Owns what `--multirun` needs of Hydra's launchers: a job elsewhere that tells how it ended, and patience with Ray."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

from hydra.errors import CompactHydraException

OBJECT_STORE_BYTES: Final = 75 * 2**20
"""The least that Ray takes; jobs hand over nothing but what came of them."""
PLUGINS: Final = {
    "joblib": "hydra_joblib_launcher",
    "ray": "hydra_ray_launcher",
    "submitit": "hydra_submitit_launcher",
}
"""Package of each launcher, by how its name begins."""


class JobUnfinished(CompactHydraException):
    """A job in another process has left something to do; Hydra tells it to the process that has launched it."""


def missing_plugin(overrides: Sequence[str]) -> str:
    """Return what to do where a command line asks for a launcher that is not installed, or nothing.

    >>> missing_plugin(["hydra/launcher=basic", "seeds=1,2"])
    ''
    """
    for word in overrides:
        key, _, name = word.partition("=")
        package = PLUGINS.get(name.partition("_")[0] if key == "hydra/launcher" else "")
        if package is not None and not is_installed(package):
            return f"{word} needs the plugin {package}: `make setup-cluster` installs it"
    return ""


def prepare(overrides: Sequence[str]) -> None:
    """Make Ray's launcher patient, where a command line asks for it; the others are as they come.

    The plugin's own method raises when it comes to a job whose process was killed, and the program that ends then takes
    Ray and all other jobs with it. A subclass would not do: Hydra finds launchers by their name in their package.

    Args:
        overrides: a command line whose launcher is installed.
    """
    if "hydra/launcher=ray" in overrides:
        from hydra_plugins.hydra_ray_launcher.ray_launcher import RayLauncher

        plugin: Any = RayLauncher
        plugin.launch = _launched


def is_installed(package: str) -> bool:
    """Whether a plugin of Hydra is there."""
    # Without any plugin there is no `hydra_plugins` either, and looking below it raises.
    return find_spec("hydra_plugins") is not None and find_spec(f"hydra_plugins.{package}") is not None


def _launched(launcher: Any, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
    """Launch jobs on Ray, and return what came of each, in order, when all have ended.

    No dashboard, no usage statistics, no automatic reruns, a process of its own for each job.
    """
    import ray
    from hydra.core.singleton import Singleton
    from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
    from hydra_plugins.hydra_ray_launcher._launcher_util import launch_job_on_ray, start_ray
    from omegaconf import open_dict

    setup_globals()
    hydra = launcher.config.hydra
    configure_log(hydra.hydra_logging, hydra.verbose)
    os.makedirs(hydra.sweep.dir, exist_ok=True)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings = launcher.ray_cfg
    with open_dict(settings):
        settings.remote.setdefault("max_retries", 0)
        settings.remote.setdefault("max_calls", 1)
        if settings.init.get("address") is None and not os.environ.get("RAY_ADDRESS"):
            settings.init.setdefault("include_dashboard", False)
            settings.init.setdefault("object_store_memory", OBJECT_STORE_BYTES)
    start_ray(settings.init)
    jobs = []
    for number, overrides in enumerate(job_overrides, initial_job_idx):
        config = launcher.hydra_context.config_loader.load_sweep_config(launcher.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = f"job_id_for_{number}", number
        jobs.append(
            launch_job_on_ray(
                launcher.hydra_context, settings.remote, config, launcher.task_function, Singleton.get_state()
            )
        )
    ray.wait(jobs, num_returns=len(jobs))
    ended = []
    for number, job in enumerate(jobs, initial_job_idx):
        try:
            ended.append(ray.get(job))
        except ray.exceptions.RayError as error:
            lost = JobUnfinished(f"job {number} was lost, its process may have been killed: {type(error).__name__}")
            ended.append(JobReturn(_return_value=lost, status=JobStatus.FAILED))
    return ended
