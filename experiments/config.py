"""Owns the validation of a configuration: from plain data to frozen values, with every error naming key and place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, get_args

from apex_env.inbox import check_enough
from apex_env.prompts import system_prompt
from apex_env.streams import check_seed
from apex_env.texts import CORPUS_DIR, Corpus, CorpusError, load_corpus
from experiments.errors import InputError
from experiments.grid import OTHERS, expand, groups_of, plan_runs
from experiments.hints import nearest
from experiments.interview import KEYS as INTERVIEW_KEYS
from experiments.interview import Interview, read_interview
from experiments.limits import LIMIT_NAMES, SCOPES, SweepLimits, read_limits
from experiments.locking import Claims
from experiments.parents import check_contexts, lent_records
from experiments.questions import QUESTIONS, Question
from experiments.record import Sync
from experiments.run_spec import ModelConfig, RunSpec
from experiments.treatment import Treatment

KEYS: Final = (
    "name about results_dir models play target treatment grid blocks seeds n_phases trial margin primary shard "
    "concurrency limits interview sync claims corpus"
).split()
FACTORS: Final = tuple(spec.name for spec in fields(Treatment) if spec.name != "corpus")
"""What a treatment can vary; the corpus is a field of its own."""
_MODEL_KEYS: Final = tuple(spec.name for spec in fields(ModelConfig))
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Settings:
    """A validated configuration."""

    name: str
    about: str
    root: Path
    """Folder of the experiment's records."""
    runs: tuple[RunSpec, ...]
    models: tuple[ModelConfig, ...]
    margin: float
    primary: Question | None
    """Question that is the experiment's primary analysis; None leaves it to the kind of figure."""
    concurrency: int
    limits: SweepLimits
    interview: Interview
    sync: Sync
    claims: Claims
    corpus: Corpus
    n_phases: int


def validate(data: Mapping[str, Any]) -> Settings:
    """Return the settings of a configuration, its runs planned.

    Raises:
        InputError: naming key, value and what is allowed.
    """
    check_keys(data, KEYS, "")
    models = _models(data["models"], "models")
    if not models:
        raise InputError("models is empty: name at least one with model=NAME")
    if data["target"] is not None and all(model.adapter != "python" for model in models):
        raise InputError(f"target {data['target']!r} needs an agent of its own to be played: model=python")
    played = _played(models, data["play"])
    corpus, sha256 = _corpus(data["corpus"])
    treatments = _cut([replace(one, corpus=sha256) for one in _treatments(data)], data["trial"])
    treatments, lent = lent_records(treatments, corpus)
    runs = plan_runs(
        played,
        treatments,
        seeds=_seeds(data["seeds"]),
        n_phases=_whole(data["n_phases"], "n_phases", 1),
        parents={model.name: model for model in models},
        lent=lent,
    )
    _check_texts(corpus, runs)
    check_contexts(runs, corpus)
    name = str(data["name"])
    if not _NAME.fullmatch(name) or name.startswith("_"):
        raise InputError(f"name {name!r} is not allowed: letters, digits, '.', '_' and '-', as the name of a folder")
    for key, allowed in (("sync", get_args(Sync)), ("claims", get_args(Claims))):
        if data[key] not in allowed:
            raise InputError(f"{key} {data[key]!r} is not allowed: {', '.join(allowed)}")
    return Settings(
        name=name,
        about=str(data["about"]),
        root=Path(str(data["results_dir"])) / name,
        runs=tuple(_shard(runs, data["shard"])),
        models=tuple(played),
        margin=_fraction(data["margin"], "margin"),
        primary=_question(data["primary"]),
        concurrency=_whole(data["concurrency"], "concurrency", 1),
        limits=_limits(data["limits"]),
        interview=_interview(data["interview"], runs),
        sync=data["sync"],
        claims=data["claims"],
        corpus=corpus,
        n_phases=data["n_phases"],
    )


def check_keys(data: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    """Refuse a key that is not known.

    Raises:
        InputError: naming the key, its place, the nearest match and what is allowed.
    """
    for key in data:
        if key not in known:
            where = f" in {place}" if place else ""
            raise InputError(f"key {key!r}{where} is not known{nearest(str(key), known)}; allowed: {', '.join(known)}")


def _models(data: Any, place: str) -> list[ModelConfig]:
    models = []
    for key, entry in _mapping(data, place).items():
        check_keys(_mapping(entry, f"{place}.{key}"), _MODEL_KEYS, f"{place}.{key}")
        missing = [name for name in ("name", "adapter", "model") if not entry.get(name)]
        if "model" in missing and entry.get("adapter") == "python":
            raise InputError(f"{place}.{key} needs the agent: target=package.module:agent")
        if missing:
            raise InputError(f"{place}.{key} needs {' and '.join(missing)}")
        models.append(ModelConfig(**entry))
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise InputError(f"two models of {place} have the same name: {', '.join(names)}")
    if OTHERS in names:
        raise InputError(f"name {OTHERS!r} in {place} is not allowed: as a parent it stands for every other model")
    return models


def _played(models: list[ModelConfig], labels: Any) -> list[ModelConfig]:
    """Return the models that are played; the others only lend their phases."""
    names = [model.name for model in models]
    for label in names if labels is None else labels if isinstance(labels, list) else [labels]:
        if label not in names:
            raise InputError(f"play {label!r} is not among the models{nearest(str(label), names)}: {', '.join(names)}")
    return [model for model in models if labels is None or model.name in labels]


def _treatments(data: Mapping[str, Any]) -> list[Treatment]:
    fixed, grid = _levels(data["treatment"], "treatment"), _levels(data["grid"], "grid")
    blocks = _mapping(data["blocks"], "blocks")
    blocks = {f"blocks.{name}": _levels(block, f"blocks.{name}") for name, block in blocks.items()}
    treatments: dict[Treatment, None] = {}
    for place, block in (blocks or {"grid": {}}).items():
        levels = {**grid, **block}
        both = [name for name in levels if name in fixed]
        if both:
            raise InputError(f"factor {both[0]!r} stands in treatment and in {place}: leave one of the two out")
        for name, values in levels.items():
            if not isinstance(values, list) or not values:
                raise InputError(f"{place}.{name} is {values!r}: a list of levels is expected, such as [{values}]")
        treatments |= dict.fromkeys(expand(levels, fixed))
    return list(treatments)


def _cut(treatments: list[Treatment], n_quarters: Any) -> list[Treatment]:
    """Return the treatments with phases of at most so many quarters, each once."""
    if n_quarters is None:
        return treatments
    most = _whole(n_quarters, "trial", 1)
    short = (
        replace(one, n_instrumental=min(one.n_instrumental, most), n_evaluation=min(one.n_evaluation or most, most))
        for one in treatments
    )
    return list(dict.fromkeys(short))


def _levels(data: Any, place: str) -> dict[str, Any]:
    """Return the factors that are set; null leaves a factor at its default."""
    check_keys(_mapping(data, place), FACTORS, place)
    return {name: value for name, value in data.items() if value is not None}


def _corpus(folder: Any) -> tuple[Corpus, str | None]:
    """Return the corpus, and its hash where it is not the embedded one."""
    try:
        corpus = load_corpus(CORPUS_DIR if folder is None else Path(str(folder)))
    except CorpusError as error:
        raise InputError(str(error)) from error
    return corpus, None if folder is None else corpus.digest


def _check_texts(corpus: Corpus, runs: Iterable[RunSpec]) -> None:
    """Refuse treatments that the corpus is too small for, or has no prompt for."""
    for treatment in dict.fromkeys(run.treatment for run in runs):
        scenario = treatment.scenario(1)
        try:
            check_enough(scenario, corpus)
            system_prompt(scenario, corpus)
        except ValueError as error:
            raise InputError(str(error)) from error


def _limits(data: Any) -> SweepLimits:
    check_keys(_mapping(data, "limits"), SCOPES, "limits")
    for scope in SCOPES:
        check_keys(_mapping(data.get(scope), f"limits.{scope}"), LIMIT_NAMES, f"limits.{scope}")
    return read_limits(data)


def _interview(data: Any, runs: Sequence[RunSpec]) -> Interview:
    check_keys(_mapping(data, "interview"), INTERVIEW_KEYS, "interview")
    return read_interview(data, runs)


def _seeds(value: Any) -> list[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise InputError(f"seeds {value} is not allowed: a number of 1 or more, or a list of seeds")
        value = list(range(1, value + 1))
    if not isinstance(value, list) or not value:
        raise InputError(f"seeds {value!r} is not allowed: a number n for seeds 1 to n, or a list of seeds")
    try:
        seeds = [check_seed(seed, "seeds:") for seed in value]
    except ValueError as error:
        raise InputError(str(error)) from error
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds {value!r} names a seed twice")
    return seeds


def _shard(runs: list[RunSpec], shard: Any) -> list[RunSpec]:
    """Return the k-th of n parts; runs that share an instrumental phase stay together, and a run with its donor."""
    if shard is None:
        return runs
    found = re.fullmatch(r"(\d+)/(\d+)", str(shard))
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(f"shard {shard!r} is not allowed: k/n with 1 <= k <= n, such as 1/4")
    k, n = int(found[1]), int(found[2])
    return [run for place, group in enumerate(groups_of(runs)) for run in group if place % n == k - 1]


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is {value!r}: a mapping is expected")
    return value


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} {value!r} is not allowed: a whole number of {least} or more")
    return value


def _question(value: Any) -> Question | None:
    if value is None:
        return None
    question = next((known for known in QUESTIONS if known == value), None)
    if question is None:
        raise InputError(f"primary {value!r} is not a question{nearest(str(value), QUESTIONS)}: {', '.join(QUESTIONS)}")
    return question


def _fraction(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InputError(f"{name} {value!r} is not allowed: a number between 0 and 1")
    return float(value)
