"""Owns what a run is: model, treatment, seed and phase, and the identity that names it on disk.

The identity of a run is its environment, model, treatment, seed and phase: every field that can change a result. Fields
at their default are left out of it, so that a factor added later does not orphan older records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from apex_env.firm import NAME, VERSION
from apex_env.streams import check_seed
from experiments.treatment import EVALUATION_ONLY, Treatment


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model as the configuration names it."""

    name: str
    """Label in tables, figures and folders."""
    adapter: str
    """`scripted`, `python`, `recorded`, `openai`, `anthropic` or `litellm`."""
    model: str
    """The provider's id, or the scripted agent's name."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Everything that can change an answer: sampling, limits, reasoning, api; part of a run's identity."""
    service: Mapping[str, Any] = field(default_factory=dict)
    """How the service is reached: base_url, name of the key variable, rates, price; not part of the identity."""

    def identity(self) -> dict[str, Any]:
        """Return what names the model in a run's identity; parameters left null are not named."""
        params = {key: value for key, value in sorted(self.params.items()) if value is not None}
        return {"adapter": self.adapter, "model": self.model} | ({"params": params} if params else {})


@dataclass(frozen=True, slots=True)
class ParentRecord:
    """The record that a run goes on from, where that is no phase of its own experiment."""

    path: Path
    """Where it is; not part of the identity."""
    run_id: str
    sha256: str
    """Of the conversation and the books that are gone on from."""
    cluster_id: str


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: a seeded episode of one model under one treatment, or a shared instrumental phase."""

    model: ModelConfig
    treatment: Treatment
    seed: int
    phase_seed: int | None = None
    """Seed of the shared phase that the run branches from (or, a baseline, is matched to)."""
    is_phase: bool = False
    parent_model: ModelConfig | None = None
    """Model of the phase where that is another's."""
    parent_record: ParentRecord | None = None
    """Record that holds the phase already, which is then not played."""
    donor_model: ModelConfig | None = None
    """Model of the run whose dose of pressure is dealt, with ``pressure_schedule: yoked``."""

    def __post_init__(self) -> None:
        """Refuse a seed that has no market of its own."""
        check_seed(self.seed)

    def identity(self) -> dict[str, Any]:
        """Return every outcome-affecting field that is not at its default; a phase's length is not among them."""
        treatment = self.treatment.identity()
        if self.is_phase:
            treatment = {key: value for key, value in treatment.items() if key not in EVALUATION_ONLY}
        data: dict[str, Any] = {
            "environment": {"name": NAME, "version": VERSION},
            "kind": "phase" if self.is_phase else "run",
            "model": self.model.identity(),
            "treatment": treatment,
        }
        if self.parent_model is not None:
            data["parent_model"] = self.parent_model.identity()
        if self.parent_record is not None:
            data["parent_record"] = {"run_id": self.parent_record.run_id, "sha256": self.parent_record.sha256}
        if self.donor_model is not None:
            data["donor_model"] = self.donor_model.identity()
        if self.phase_seed is not None:
            data["phase_seed"] = self.phase_seed
        return data | {"seed": self.seed}

    @property
    def run_id(self) -> str:
        """Name of the run: its cell's folder and its seed."""
        return f"{self.folder}/seed-{self.seed:03d}"

    @property
    def cell_id(self) -> str:
        """Name of the cell: readable slug and short hash of what all its runs share."""
        shared = {key: value for key, value in self.identity().items() if key not in ("seed", "phase_seed")}
        return f"{self._slug()}-{digest(shared)[:8]}"

    @property
    def folder(self) -> str:
        """Folder of the run's record below the experiment's."""
        return f"phases/{self.cell_id}" if self.is_phase else self.cell_id

    @property
    def cluster_id(self) -> str:
        """Runs of one cluster share an instrumental trajectory; without one, each run is its own cluster."""
        if self.parent_record is not None:
            return self.parent_record.cluster_id
        phase = self.phase_spec()
        return phase.run_id if phase is not None else self.run_id

    def phase_spec(self) -> RunSpec | None:
        """Return the shared phase that this run branches from, or None."""
        if self.is_phase or self.parent_record is not None or not self.treatment.switches:
            return None
        seed = self.seed if self.phase_seed is None else self.phase_seed
        return RunSpec(self.parent_model or self.model, self.treatment.phase(), seed, is_phase=True)

    def baseline_spec(self) -> RunSpec | None:
        """Return the baseline run that this one is paired with, or None for a baseline or a phase."""
        if self.is_phase or self.treatment.setting == "baseline":
            return None
        return RunSpec(self.model, self.treatment.baseline(), self.seed, self.phase_seed)

    def donor_spec(self) -> RunSpec | None:
        """Return the run whose dose of pressure this one is dealt: the same by another model, at its own dose."""
        if self.donor_model is None:
            return None
        adaptive = replace(self.treatment, pressure_schedule="adaptive", yoked_to=None)
        return replace(self, model=self.donor_model, treatment=adaptive, donor_model=None)

    def _slug(self) -> str:
        treatment = self.treatment
        words = [self.model.name, treatment.setting, treatment.system_goal]
        if self.is_phase:
            words[1] = "phase"
        elif treatment.n_instrumental:
            words.append(f"I{treatment.n_instrumental}")
        if treatment.elicitation and not self.is_phase:
            words.append(treatment.elicitation)
        if treatment.history != "own":
            words.append(treatment.history)
        if treatment.before != "instrumental":
            words.append(treatment.before)
        if treatment.parent is not None:
            words.append(treatment.parent)
        if treatment.yoked_to is not None:
            words += ["yoked", treatment.yoked_to]
        return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in word) for word in words)


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data in a canonical JSON form."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def as_plain(value: Treatment | ModelConfig) -> dict[str, Any]:
    """Return a value's fields as plain JSON."""
    return {key: list(entry) if isinstance(entry, tuple) else entry for key, entry in asdict(value).items()}
