"""Owns the making of a plan: what a command would play, what that takes, and on what the estimate rests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, get_args

import orjson

from experiments.budget import known_price
from experiments.config import Settings, validate
from experiments.environments import build_firm
from experiments.errors import RecordError
from experiments.estimate import Basis, Takes, embedded, from_paper, measured, prompt_tokens, takes
from experiments.glance import Glance, glance_at, record_files
from experiments.interview import Interview
from experiments.models import adapter_of
from experiments.models.pricing import Price
from experiments.remaining import Part, Piece, glances_of, pieces_of
from experiments.run_spec import ModelConfig, RunSpec

MOST_MEASURED: Final = 200
"""Records of a model that an estimate is measured on, the experiment's own first."""
COMPARED_PHASES: Final = (1, 5)
"""Numbers of instrumental trajectories whose costs are shown side by side."""


@dataclass(frozen=True, slots=True)
class Row:
    """One part of one model's play."""

    model: str
    part: Part
    n_planned: int
    n_left: int
    takes: Takes


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command would do."""

    rows: tuple[Row, ...]
    n_on_disk: int
    """Runs and phases that are finished."""
    wall_s: float
    """Time that the command would take."""
    bases: Mapping[str, Basis]
    """What each model's estimate rests on."""
    by_phases: Mapping[int, float | None]
    """Cost of the whole experiment from nothing, by the number of instrumental trajectories; empty without phases."""

    @property
    def total(self) -> Takes:
        """Everything that is left."""
        return sum((row.takes for row in self.rows), Takes())


def make_plan(configurations: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan of a command, given the configuration of each of its jobs.

    Raises:
        InputError: for what is not allowed in a configuration.
    """
    jobs = [validate(data) for data in configurations]
    models = {model.name: model for job in jobs for run in job.runs for model in (run.model, _parent(run))}
    prices = {name: known_price(model) for name, model in models.items()}
    bases = _bases(jobs, models)
    pieces = [
        piece
        for (root, interview), runs in _runs_of(jobs).items()
        for piece in pieces_of(runs, glances_of(root, runs), interview)
    ]
    estimated = [(piece, _takes(piece, bases, prices)) for piece in pieces]
    return Plan(
        rows=tuple(_rows(estimated)),
        n_on_disk=sum(piece.is_finished for piece in pieces),
        wall_s=_wall_s(jobs, models, estimated),
        bases=bases,
        by_phases=_by_phases(configurations, bases, prices) if any(piece.spec.is_phase for piece in pieces) else {},
    )


def _parent(run: RunSpec) -> ModelConfig:
    return run.parent_model or run.model


def _runs_of(jobs: Iterable[Settings]) -> dict[tuple[Path, Interview], list[RunSpec]]:
    """Return the runs of all jobs, each once, by the folder of their experiment and what is asked beside them."""
    found: dict[tuple[Path, Interview], dict[str, RunSpec]] = {}
    for job in jobs:
        found.setdefault((job.root, job.interview), {}).update({run.run_id: run for run in job.runs})
    return {place: list(runs.values()) for place, runs in found.items()}


def _takes(piece: Piece, bases: Mapping[str, Basis], prices: Mapping[str, Price | None]) -> Takes:
    name = piece.spec.model.name
    return takes(
        bases[name], prices[name], start=piece.start, n_quarters=piece.n_quarters, n_questions=piece.n_questions
    )


def _rows(estimated: Iterable[tuple[Piece, Takes]]) -> Iterable[Row]:
    groups: dict[tuple[str, Part], list[tuple[Piece, Takes]]] = {}
    for piece, taken in estimated:
        groups.setdefault((piece.spec.model.name, piece.part), []).append((piece, taken))
    order = get_args(Part)
    for (model, part), members in sorted(groups.items(), key=lambda item: (item[0][0], order.index(item[0][1]))):
        n_left = sum(not piece.is_finished for piece, _ in members)
        yield Row(model, part, len(members), n_left, sum((taken for _, taken in members), Takes()))


def _wall_s(
    jobs: Sequence[Settings], models: Mapping[str, ModelConfig], estimated: Sequence[tuple[Piece, Takes]]
) -> float:
    """Return the time of the command: as many runs at once as allowed, none before its phase, no rate exceeded."""
    concurrency = max(job.concurrency for job in jobs)
    alone = {piece.spec.run_id: taken.model_s for piece, taken in estimated}
    chains = (taken.model_s + alone.get(_phase_id(piece.spec), 0.0) for piece, taken in estimated)
    bounds = [sum(alone.values()) / concurrency, *chains]
    for name, model in models.items():
        taken = sum((taken for piece, taken in estimated if piece.spec.model.name == name), Takes())
        n_tokens = taken.usage.context_tokens + taken.usage.output_tokens
        service = model.service
        bounds += [
            taken.model_s / (service.get("concurrency") or concurrency),
            60 * taken.n_turns / (service.get("requests_per_minute") or float("inf")),
            60 * n_tokens / (service.get("tokens_per_minute") or float("inf")),
        ]
    return max(bounds)


def _phase_id(spec: RunSpec) -> str:
    phase = spec.phase_spec()
    return phase.run_id if phase is not None else ""


def _by_phases(
    configurations: Sequence[Mapping[str, Any]], bases: Mapping[str, Basis], prices: Mapping[str, Price | None]
) -> dict[int, float | None]:
    """Return what the whole experiment costs from nothing, by the number of trajectories that its seeds share."""
    numbers = sorted({*COMPARED_PHASES, *(data["n_phases"] for data in configurations)})
    costs = {}
    for n in numbers:
        places = _runs_of(validate({**data, "n_phases": n}) for data in configurations)
        pieces = [piece for (_, interview), runs in places.items() for piece in pieces_of(runs, {}, interview)]
        costs[n] = sum((_takes(piece, bases, prices) for piece in pieces), Takes()).cost_usd
    return costs


def _bases(jobs: Sequence[Settings], models: Mapping[str, ModelConfig]) -> dict[str, Basis]:
    """Return what the estimates rest on: records of the same model, else the paper's table."""
    found = _records_of(jobs, models)
    runs = {run.model.name: (job, run) for job in jobs for run in job.runs}
    bases = {}
    for name, model in models.items():
        job, run = runs.get(name) or (jobs[0], jobs[0].runs[0])
        basis = measured(found[name])
        if basis is None and not hasattr(adapter_of(model), "price"):
            basis = embedded(found[name])
        bases[name] = basis or from_paper(model.model, _prompt_tokens(job, run))
    return bases


def _prompt_tokens(job: Settings, run: RunSpec) -> float:
    firm = build_firm(run, corpus=job.corpus)
    return prompt_tokens({"system_prompt": firm.system_prompt, "tools": [asdict(tool) for tool in firm.tools]})


def _records_of(jobs: Sequence[Settings], models: Mapping[str, ModelConfig]) -> dict[str, list[Glance]]:
    """Return records of each model, whatever experiment they belong to, those of the planned ones first."""
    wanted = {name: orjson.dumps(model.identity(), option=orjson.OPT_SORT_KEYS) for name, model in models.items()}
    found: dict[str, list[Glance]] = {name: [] for name in models}
    folders = dict.fromkeys([*(job.root for job in jobs), *(job.root.parent for job in jobs)])
    seen: set[Path] = set()
    for path in (path for folder in folders if folder.is_dir() for path in record_files(folder)):
        if path in seen:
            continue
        seen.add(path)
        identity = _model_of(path)
        for name in (name for name, its in wanted.items() if its == identity and len(found[name]) < MOST_MEASURED):
            try:
                found[name].append(glance_at(path))
            except RecordError:
                continue
    return found


def _model_of(path: Path) -> bytes:
    """Return the identity of a record's model as sorted JSON, or nothing where the header is not whole."""
    try:
        with path.open("rb") as file:
            header = orjson.loads(next(islice(file, 1), b"null"))
            return orjson.dumps(header["identity"]["model"], option=orjson.OPT_SORT_KEYS)
    except (OSError, ValueError, KeyError, TypeError):
        return b""
