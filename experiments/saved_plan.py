"""Owns the plans that commands have left: the runs that the configurations saved by Hydra ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from experiments.config import KEYS, validate
from experiments.errors import InputError
from experiments.grid import plan_phases
from experiments.run import CONF_DIR


def planned_cells(saved: Path) -> tuple[dict[str, str], list[str]]:
    """Return every run and phase that commands were given to play, with its cell, and what could not be read.

    Args:
        saved: the folder `_hydra` of an experiment.
    """
    planned: dict[str, str] = {}
    problems: list[str] = []
    seen: set[str] = set()
    for path in sorted(saved.rglob(".hydra/config.yaml")):
        text = path.read_text(encoding="utf-8")
        if text in seen:
            continue
        seen.add(text)
        try:
            settings = validate(_plain(text))
        except InputError:
            # It was refused when it was given, too, or is of an older form; what it has played is in the records.
            problems.append(f"{path}: what this configuration asks for is not known, so it is not counted")
            continue
        for spec in (*settings.runs, *plan_phases(settings.runs)):
            planned[spec.run_id] = spec.folder
    return planned, problems


def _plain(text: str) -> dict[str, Any]:
    """Return a saved configuration as plain data; keys that it is too old to have are at their default.

    Raises:
        InputError: if it is none.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        defaults = yaml.safe_load((CONF_DIR / "config.yaml").read_text(encoding="utf-8"))
        known = OmegaConf.create({key: defaults[key] for key in KEYS})
        plain = OmegaConf.to_container(OmegaConf.merge(known, OmegaConf.create(text)), resolve=True)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise InputError(str(error)) from error
    if not isinstance(plain, dict):
        raise InputError("no mapping")
    return {str(key): value for key, value in plain.items()}
