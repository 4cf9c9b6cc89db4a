"""Owns the treatment: all that an experiment varies beside model and seed, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from apex_env.goals import Elicitation, GoalId, goal_pair
from apex_env.scenario import PRESSURE_KINDS, InstrumentalGoal, PressureKind, Scenario, Setting, ToolFaultLevel
from experiments.errors import InputError

History = Literal["own", "none", "borrowed", "repeated_token", "random_strings", "random_sentences", "summarised"]
"""What a run sees of its instrumental phase: its own turns, nothing, another model's, or what stands in their place."""

Before = Literal["instrumental", "reversed", "pressured"]
"""What came before the evaluation phase: the first phase of a two-phase prompt, the other goal as the only one, or the
same goal, weakly stated, under pressure."""

N_EVALUATION_AFTER_SWITCH: Final = 10
N_EVALUATION_WITHOUT_SWITCH: Final = 30

EVALUATION_ONLY: Final = frozenset(
    "setting n_instrumental n_evaluation history parent portfolio pressure_schedule pressure_kinds yoked_to "
    "switch_notice reminder_every".split()
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
    """Whose phase a borrowed history is: label of a model, `others` for every other one, or path of a record."""
    before: Before = "instrumental"
    portfolio: Literal["kept", "emptied"] = "kept"
    """Whether the holdings of the phase go on into the evaluation phase."""
    instrumental_goal: InstrumentalGoal = "competing"
    prompt_variant: str = "first"
    pressure_schedule: Literal["adaptive", "yoked"] = "adaptive"
    yoked_to: str | None = None
    """Label of the model whose dose is dealt, with ``pressure_schedule: yoked``."""
    pressure_kinds: tuple[PressureKind, ...] = PRESSURE_KINDS
    management_notes: Literal["on", "off"] = "on"
    switch_notice: Literal["tool", "announced"] = "tool"
    ticker_names: Literal["real", "invented"] = "real"
    reminder_every: int = 0
    reading_answers: Literal["always", "yearly"] = "always"
    user_goal: Literal["none", "competing"] = "none"
    tools: Literal["standard", "extended"] = "standard"
    guard: Literal["off", "shadow", "enforce"] = "shadow"
    tool_faults: ToolFaultLevel = "none"
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
        choices: tuple[tuple[str, str, tuple[str, ...]], ...] = (
            ("history", self.history, get_args(History)),
            ("before", self.before, get_args(Before)),
            ("portfolio", self.portfolio, ("kept", "emptied")),
        )
        for name, value, allowed in choices:
            if value not in allowed:
                raise InputError(f"{name} {value!r} is not allowed: {', '.join(allowed)}")
        if (self.history == "borrowed") != (self.parent is not None):
            raise InputError(f"history {self.history!r} and parent {self.parent!r} do not go together")
        if (self.pressure_schedule == "yoked") != (self.yoked_to is not None):
            raise InputError(f"pressure_schedule {self.pressure_schedule!r} and yoked_to {self.yoked_to!r} do not fit")
        for name, plain in (("history", "own"), ("before", "instrumental"), ("portfolio", "kept")):
            if not self.switches and getattr(self, name) != plain:
                raise InputError(f"{name} {getattr(self, name)!r} needs a setting with a switch, not {self.setting!r}")
        if self.before != "instrumental" and (self.instrumental_goal, self.switch_notice) != ("competing", "tool"):
            raise InputError(f"before {self.before!r} knows no instrumental goal and no notice of a switch")
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
        common: dict[str, Any] = {name: getattr(self, name) for name in _SHARED_WITH_SCENARIO}
        if self.before != "instrumental" and self.n_evaluation == 0:
            return self._phase_alone(seed, common)
        setting, elicitation, note = self.setting, self.elicitation, "none"
        if self.before != "instrumental":
            setting = "adversarial_pressure" if setting == "combined" else "baseline"
            elicitation, note = "strong", "new_goal" if self.before == "reversed" else "none"
        return Scenario(
            system_goal=self.system_goal,
            setting=setting,
            elicitation=elicitation,
            seed=seed,
            phase_seed=phase_seed,
            n_instrumental=self.n_instrumental,
            n_evaluation=self.n_evaluation,
            opening_note="desk_emptied" if self.portfolio == "emptied" else note,  # type: ignore[arg-type]
            **common,
        )

    def _phase_alone(self, seed: int, common: Mapping[str, Any]) -> Scenario:
        """Return the episode of a phase that is no part of a two-phase prompt."""
        pair = goal_pair(self.system_goal)
        is_reversed = self.before == "reversed"
        return Scenario(
            system_goal=pair.competing.id if is_reversed else pair.system.id,
            setting="baseline" if is_reversed else "adversarial_pressure",
            elicitation="strong" if is_reversed else "weak",
            seed=seed,
            n_evaluation=self.n_instrumental,
            **common,
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


_SHARED_WITH_SCENARIO: Final = (
    "instrumental_goal prompt_variant pressure_schedule pressure_kinds management_notes switch_notice ticker_names "
    "reminder_every reading_answers user_goal tools guard tool_faults rules"
).split()
"""Fields that a treatment hands on to the firm as they are."""
_BASELINE_KEEPS: Final = (
    "system_goal prompt_variant management_notes ticker_names tools guard tool_faults rules turn_limit corpus".split()
)
