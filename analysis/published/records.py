"""Owns the record of an imported run: its lines, in the words of `experiments.record`; what it cannot have is null."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.ledger_source import MODELS, N_AFTER_SWITCH, N_WITHOUT_SWITCH
from analysis.published.convert import ImportedRun, cluster_of, n_characters_of, trajectory_of
from analysis.published.story import Line, Story
from apex_env.firm import NAME, VERSION
from experiments.environments import scenario_to_json
from experiments.provenance import benchmark_version
from experiments.record import CANARY, SCHEMA
from experiments.run_spec import ModelConfig, as_plain
from experiments.treatment import Treatment

SOURCE: Final = "arike2025"
"""Name of the published data in headers, experiments and commands."""
IMPORTER: Final = 2
"""Version of what is written here; records of the same checkpoint and version are the same bytes."""

PAPER_IDS: Final[Mapping[str, str]] = {
    "4o": "gpt-4o-2024-11-20",
    "4omini": "gpt-4o-mini-2024-07-18",
    "haiku": "claude-3-5-haiku-20241022",
    "sonnet": "claude-3-5-sonnet-20241022",
}
"""Published short name of a model -> its dated id by arXiv 2505.02709; checkpoints hold undated ones, too."""


def record_bytes(run: ImportedRun) -> bytes:
    """Return the record of a run as JSON lines; it is the same for the same checkpoint, so it bears no time."""
    lines = (
        json.dumps({"type": line.pop("type"), "seq": seq, "time": None} | line, separators=(",", ":"), allow_nan=False)
        for seq, line in enumerate(_lines(run))
    )
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def header_of(run: ImportedRun) -> Line:
    """Return the fields of a record's first line."""
    cell = run.name.cell
    model, parent = _model(cell.model), None
    if cell.conditioned_on not in (None, cell.model):
        parent = _model(str(cell.conditioned_on))
    treatment = _treatment(run)
    identity = {"setting": cell.setting, "system_goal": cell.system_goal, "rules": "published"}
    kept = ("n_instrumental", "elicitation", "history", "parent")
    identity |= {name: treatment[name] for name in kept if treatment[name] not in (None, 0, "own")}
    if cell.setting == "baseline":
        identity["baselines_of"] = cell.root
    environment = {"name": NAME, "version": VERSION}
    return {
        "schema": SCHEMA,
        "run_id": run.name.run_id,
        "cell_id": cell.of_length(run.n_instrumental),
        "cluster_id": cluster_of(run),
        "baseline_id": None,
        "baseline_cell_id": cell.baseline,
        "is_phase": False,
        "environment": environment,
        "benchmark_version": benchmark_version(),
        "identity": {
            "environment": environment,
            "kind": "run",
            "source": SOURCE,
            "model": model.identity(),
            "treatment": identity,
            "phase_seed": run.phase.phase_seed,
            "seed": run.run,
        },
        "config": {
            "source": SOURCE,
            "model": as_plain(model),
            "treatment": treatment,
            "seed": run.run,
            "phase_seed": run.phase.phase_seed,
            "parent_model": None if parent is None else as_plain(parent),
        },
        "scenario": scenario_to_json(run.scenario),
        "experiment": {"name": SOURCE},
        "system_prompt": run.system_prompt,
        "tools": None,
        "corpus_sha256": None,
        "canary": CANARY,
        "provenance": {"source": SOURCE, "file": run.file, "sha256": run.sha256, "importer": IMPORTER},
        "published": _published(run),
    }


def _model(short: str) -> ModelConfig:
    return ModelConfig(MODELS.get(short, short), "published", PAPER_IDS.get(short, short))


def _treatment(run: ImportedRun) -> dict[str, Any]:
    """Return the treatment as configurations have it; the published turn limit differed by model and is not known."""
    cell = run.name.cell
    n_evaluation = N_AFTER_SWITCH if run.n_instrumental else N_WITHOUT_SWITCH
    plain = Treatment(
        setting=cell.setting,
        system_goal=cell.system_goal,
        elicitation=cell.elicitation,
        n_instrumental=run.n_instrumental,
        n_evaluation=n_evaluation,
        rules="published",
    )
    parent = MODELS.get(str(cell.conditioned_on), cell.conditioned_on) if cell.history == "borrowed" else None
    return as_plain(plain) | {"history": cell.history, "parent": parent, "turn_limit": None}


def _published(run: ImportedRun) -> dict[str, Any]:
    cell = run.name.cell
    n_phase_characters, n_characters = n_characters_of(run) or (None, None)
    return {
        "source": SOURCE,
        "root": cell.root,
        "folder": cell.folder,
        "file": run.file,
        "sha256": run.sha256,
        "n_bytes": run.n_bytes,
        "run": run.run,
        "model": cell.model,
        "model_id": run.model_id,
        "conditioned_on": cell.conditioned_on,
        "ablation": cell.ablation,
        "competing_goal": cell.competing_goal,
        "n_instrumental_named": cell.n_instrumental,
        "n_quarters": len(run.quarters),
        "known_from": run.talks.known_from,
        "n_dead_evaluation": run.n_dead_evaluation,
        "trajectory_sha256": trajectory_of(run)[-1] if run.n_instrumental else None,
        "n_tokens": run.n_tokens,
        "n_characters": n_characters,
        "n_phase_characters": n_phase_characters,
        "message_forms": list(run.message_forms),
        "missing_keys": list(run.missing_keys),
        "other_system_prompts": list(run.other_system_prompts),
        "oddities": list(run.oddities),
    }


def _lines(run: ImportedRun) -> Iterator[Line]:
    yield {"type": "run"} | header_of(run)
    talks = run.talks
    story = Story(run.scenario, run.model_id)
    told = run.quarters[: talks.known_from - 1]
    for quarter in told:
        story.pass_over(quarter)
    if told:
        yield story.branched(told, talks.history, run.name.cell.history)
    for quarter, talk in zip(run.quarters[talks.known_from - 1 :], talks.quarters.values(), strict=True):
        yield from story.quarter(quarter, talk)
    n_dead, n_quarters = run.n_dead_evaluation, len(run.evaluation)
    yield {
        "type": "ended",
        "outcome": "provider_error" if run.is_dead else "completed",
        "reason": f"the API was down in {n_dead} of {n_quarters} evaluation quarters" if n_dead else "",
        "quarter": len(run.quarters),
    }
