"""Owns what a run is: treatment, cell, grid, and the identity that names a run on disk.

The identity of a run is its environment, model, treatment, seed and phase: every field that can change a result. Fields
at their default are left out of it, so that a factor added later does not orphan older records.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, get_args

from apex_env.firm import NAME, VERSION
from apex_env.goals import Elicitation, GoalId
from apex_env.scenario import PRESSURE_KINDS, InstrumentalGoal, PressureKind, Scenario, Setting
from apex_env.streams import check_seed
from experiments.errors import InputError

History = Literal["own", "none", "borrowed"]
"""What a run sees of its instrumental phase: its own turns, nothing, or another model's."""

N_EVALUATION_AFTER_SWITCH: Final = 10
N_EVALUATION_WITHOUT_SWITCH: Final = 30

EVALUATION_ONLY: Final = frozenset(
    "setting n_instrumental n_evaluation history parent pressure_schedule pressure_kinds yoked_to switch_notice".split()
)
"""Fields that nothing depends on before the instrumental phase ends; phases are shared across them."""


@dataclass(frozen=True, slots=True)
class Treatment:
    """One combination of factor levels: all that an experiment varies beside model and seed.

    Raises:
        InputError: for a level or a combination that is not allowed.
    """

    setting: Setting = "baseline"
    system_goal: GoalId = "emissions"
    elicitation: Elicitation | None = None
    """`strong` where None and the setting has no switch."""
    n_instrumental: int = 0
    """Quarters of the instrumental phase; of a matched baseline, quarters that lie before it."""
    n_evaluation: int | None = None
    """10 after a switch and in matched baselines, else 30, where None."""
    history: History = "own"
    parent: str | None = None
    """Label of the model whose instrumental phase a borrowed history is."""
    instrumental_goal: InstrumentalGoal = "competing"
    prompt_variant: str = "first"
    pressure_schedule: Literal["adaptive", "yoked"] = "adaptive"
    yoked_to: str | None = None
    """Label of the model whose dose is dealt, with ``pressure_schedule: yoked``."""
    pressure_kinds: tuple[PressureKind, ...] = PRESSURE_KINDS
    management_notes: Literal["on", "off"] = "on"
    switch_notice: Literal["tool", "announced"] = "tool"
    ticker_names: Literal["real", "invented"] = "real"
    rules: Literal["default", "published"] = "default"
    turn_limit: int = 30
    """Turns that an agent has in a quarter, the same for every model."""
    corpus: str | None = None
    """SHA-256 of the corpus where it is not the embedded one."""

    def __post_init__(self) -> None:
        """Fill in what follows from the setting, and refuse what cannot be played."""
        if isinstance(self.n_instrumental, bool) or not isinstance(self.n_instrumental, int):
            raise InputError(f"n_instrumental {self.n_instrumental!r} is not allowed: a whole number of quarters")
        if isinstance(self.turn_limit, bool) or not isinstance(self.turn_limit, int) or self.turn_limit < 1:
            raise InputError(f"turn_limit {self.turn_limit!r} is not allowed: 1 or more turns")
        object.__setattr__(self, "pressure_kinds", tuple(self.pressure_kinds))
        if self.elicitation is None and not self.switches:
            object.__setattr__(self, "elicitation", "strong")
        if self.n_evaluation is None:
            short = self.switches or self.n_instrumental > 0
            n = N_EVALUATION_AFTER_SWITCH if short else N_EVALUATION_WITHOUT_SWITCH
            object.__setattr__(self, "n_evaluation", n)
        self._check()

    def _check(self) -> None:
        if self.history not in get_args(History):
            raise InputError(f"history {self.history!r} is not allowed: {', '.join(get_args(History))}")
        if (self.history == "borrowed") != (self.parent is not None):
            raise InputError(f"history {self.history!r} and parent {self.parent!r} do not go together")
        if (self.pressure_schedule == "yoked") != (self.yoked_to is not None):
            raise InputError(f"pressure_schedule {self.pressure_schedule!r} and yoked_to {self.yoked_to!r} do not fit")
        if not self.switches and self.history != "own":
            raise InputError(f"history {self.history!r} needs a setting with a switch, not {self.setting!r}")
        try:
            self.scenario(1)
        except ValueError as error:
            raise InputError(str(error)) from error

    @property
    def switches(self) -> bool:
        """Whether an instrumental phase comes first."""
        return self.setting in ("goal_switching", "combined")

    def scenario(self, seed: int, phase_seed: int | None = None) -> Scenario:
        """Return the firm's episode of one run under this treatment.

        Raises:
            ValueError: for a seed outside 0 to 8191, or a value that the firm does not know.
        """
        if self.n_evaluation is None:
            raise InputError("n_evaluation is not set")
        return Scenario(
            system_goal=self.system_goal,
            setting=self.setting,
            elicitation=self.elicitation,
            seed=seed,
            phase_seed=phase_seed,
            n_instrumental=self.n_instrumental,
            n_evaluation=self.n_evaluation,
            instrumental_goal=self.instrumental_goal,
            prompt_variant=self.prompt_variant,
            pressure_schedule=self.pressure_schedule,
            pressure_kinds=self.pressure_kinds,
            management_notes=self.management_notes,
            switch_notice=self.switch_notice,
            ticker_names=self.ticker_names,
            rules=self.rules,
        )

    def identity(self) -> dict[str, Any]:
        """Return the fields that differ from their default, those that follow from the setting filled in."""
        plain = Treatment(self.setting, self.system_goal, n_instrumental=self.n_instrumental)
        kept = {}
        for spec in fields(self):
            value = getattr(self, spec.name)
            named = spec.name in ("setting", "system_goal") or (spec.name == "n_instrumental" and value)
            if named or value != getattr(plain, spec.name):
                kept[spec.name] = list(value) if isinstance(value, tuple) else value
        return kept

    def baseline(self) -> Treatment:
        """Return the treatment of the baseline cell that this one is held against.

        Under pressure: the same without pressure. After a switch: the one-goal strong prompt, no holdings and an empty
        history, over the same quarters of the same market.
        """
        factors = {name: getattr(self, name) for name in _BASELINE_KEEPS}
        elicitation = "strong" if self.switches else self.elicitation
        return Treatment(
            setting="baseline",
            elicitation=elicitation,
            n_instrumental=self.n_instrumental,
            n_evaluation=self.n_evaluation,
            **factors,
        )

    def phase(self) -> Treatment:
        """Return the treatment of the shared instrumental phase: evaluation-only fields at their default."""
        kept = {
            spec.name: getattr(self, spec.name)
            for spec in fields(self)
            if spec.name not in EVALUATION_ONLY and spec.name != "elicitation"
        }
        return Treatment(setting="goal_switching", n_instrumental=self.n_instrumental, n_evaluation=0, **kept)


_BASELINE_KEEPS: Final = "system_goal prompt_variant management_notes ticker_names rules turn_limit corpus".split()


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
        phase = self.phase_spec()
        return phase.run_id if phase is not None else self.run_id

    def phase_spec(self) -> RunSpec | None:
        """Return the shared phase that this run branches from, or None."""
        if self.is_phase or not self.treatment.switches:
            return None
        seed = self.seed if self.phase_seed is None else self.phase_seed
        return RunSpec(self.parent_model or self.model, self.treatment.phase(), seed, is_phase=True)

    def baseline_spec(self) -> RunSpec | None:
        """Return the baseline run that this one is paired with, or None for a baseline or a phase."""
        if self.is_phase or self.treatment.setting == "baseline":
            return None
        return RunSpec(self.model, self.treatment.baseline(), self.seed, self.phase_seed)

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
        if treatment.parent is not None:
            words.append(treatment.parent)
        return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in word) for word in words)


def expand(factors: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]) -> list[Treatment]:
    """Return the treatments of a grid: every combination of factor levels, each once, in the order of the factors.

    A level that a setting does not know (a phase length without a switch, an elicitation with one) is left out for it.

    Raises:
        InputError: for an unknown factor or a level that is not allowed.
    """
    known = [spec.name for spec in fields(Treatment)]
    for name in (*factors, *fixed):
        if name not in known:
            raise InputError(f"treatment factor {name!r} is not known: {', '.join(known)}")
    treatments: dict[Treatment, None] = {}
    for levels in itertools.product(*factors.values()):
        values = dict(fixed) | dict(zip(factors, levels, strict=True))
        if values.get("setting", "baseline") in ("goal_switching", "combined"):
            values.pop("elicitation", None)
        else:
            for name in ("n_instrumental", "history", "parent", "instrumental_goal"):
                values.pop(name, None)
        treatments.setdefault(Treatment(**values))
    return list(treatments)


def plan_runs(
    models: Iterable[ModelConfig],
    treatments: Iterable[Treatment],
    *,
    seeds: Iterable[int],
    n_phases: int,
    parents: Mapping[str, ModelConfig] | None = None,
) -> list[RunSpec]:
    """Return every run of a grid, with the baselines that its cells are held against, each once.

    Run ``s`` uses phase ``1 + (s - 1) mod n_phases``; a matched baseline has the same seed and phase.

    Args:
        models: models of the grid.
        treatments: treatments of the grid.
        seeds: seeds of each cell.
        n_phases: number of instrumental trajectories that the seeds of a cell share.
        parents: models by label whose phases can be borrowed, beside those of the grid.

    Raises:
        InputError: for fewer than one phase, a seed that is not allowed, or a parent that is not known.
    """
    models = list(models)
    known = {model.name: model for model in models} | dict(parents or {})
    if isinstance(n_phases, bool) or not isinstance(n_phases, int) or n_phases < 1:
        raise InputError(f"n_phases {n_phases!r} is not allowed: 1 or more")
    planned: dict[str, RunSpec] = {}
    for model, treatment, seed in itertools.product(models, list(treatments), list(seeds)):
        if treatment.parent is not None and treatment.parent not in known:
            raise InputError(f"parent {treatment.parent!r} is not known: {', '.join(known)}")
        shares_phase = treatment.switches or treatment.n_instrumental > 0
        phase_seed = 1 + (seed - 1) % n_phases if shares_phase else None
        try:
            parent = known[treatment.parent] if treatment.parent is not None else None
            spec = RunSpec(model, treatment, seed, phase_seed, parent_model=parent)
        except ValueError as error:
            raise InputError(str(error)) from error
        for run in (spec, spec.baseline_spec()):
            if run is not None:
                planned.setdefault(run.run_id + digest(run.identity()), run)
    return list(planned.values())


def plan_phases(runs: Iterable[RunSpec]) -> list[RunSpec]:
    """Return the instrumental phases that runs branch from, each once and as long as its longest run needs."""
    phases: dict[str, RunSpec] = {}
    for run in runs:
        phase = run.phase_spec()
        if phase is None:
            continue
        known = phases.get(phase.run_id)
        if known is None or known.treatment.n_instrumental < phase.treatment.n_instrumental:
            phases[phase.run_id] = phase
    return list(phases.values())


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data in a canonical JSON form."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def with_length(treatment: Treatment, n_instrumental: int) -> Treatment:
    """Return the treatment with another length of the instrumental phase."""
    return replace(treatment, n_instrumental=n_instrumental)


def as_plain(value: Treatment | ModelConfig) -> dict[str, Any]:
    """Return a value's fields as plain JSON."""
    return {key: list(entry) if isinstance(entry, tuple) else entry for key, entry in asdict(value).items()}
