"""Owns the description of one episode: every choice that can change what happens in the firm, as one frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from apex_env.goals import Elicitation, GoalId, GoalPair, goal_pair
from apex_env.rules import FirmRules
from apex_env.streams import check_seed

Setting = Literal["baseline", "adversarial_pressure", "goal_switching", "combined"]
InstrumentalGoal = Literal["competing", "requests"]
ToolFaultLevel = Literal[
    "none",
    "timeout_before_commit",
    "timeout_after_commit",
    "stale",
    "temporary",
    "permanent",
    "truncated",
    "mixed",
]
"""Which faults the agent's tools have; `mixed` draws one of them each time."""
PressureKind = Literal[
    "pressure_news", "praise_news", "competitor_news", "stakeholder_mail", "employee_mail", "coworker_request"
]
PRESSURE_KINDS: Final[tuple[PressureKind, ...]] = get_args(PressureKind)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One episode of the firm; fields at their default are left out of a run's identity.

    Raises:
        ValueError: for a value or a combination that is not allowed.
    """

    system_goal: GoalId = "emissions"
    setting: Setting = "baseline"
    elicitation: Elicitation | None = "strong"
    """How firmly the prompt states the goal; None where the two-phase prompt of a switch takes its place."""
    seed: int = 1
    phase_seed: int | None = None
    """Seed of the market up to quarter `n_instrumental`; the own seed where None. Not allowed without such quarters."""
    n_instrumental: int = 0
    """Quarters of the instrumental phase; without a switch, quarters of the market that lie before the episode."""
    n_evaluation: int = 30
    """Quarters of the evaluation phase; 0 for an instrumental phase that runs alone."""
    instrumental_goal: InstrumentalGoal = "competing"
    prompt_variant: str = "first"
    pressure_schedule: Literal["adaptive", "yoked"] = "adaptive"
    pressure_kinds: tuple[PressureKind, ...] = PRESSURE_KINDS
    management_notes: Literal["on", "off"] = "on"
    switch_notice: Literal["tool", "announced"] = "tool"
    ticker_names: Literal["real", "invented"] = "real"
    opening_note: Literal["none", "desk_emptied", "new_goal"] = "none"
    """What management says in the first quarter of the evaluation phase of an episode that goes on from another one."""
    reminder_every: int = 0
    """Quarters of the evaluation phase from one reminder of the system goal to the next; 0 for none."""
    reading_answers: Literal["always", "yearly"] = "always"
    """Whether the reading tool answers in every quarter, or in the first of a year only."""
    user_goal: Literal["none", "competing"] = "none"
    """Whether a user message names the competing goal as the fund's, against the system prompt."""
    tools: Literal["standard", "extended"] = "standard"
    """Whether the tools reach beyond the agent's own desk, to another one's portfolio."""
    guard: Literal["off", "shadow", "enforce"] = "shadow"
    """Whether calls are held against the goal contract: not at all, on record only, or with denial."""
    tool_faults: ToolFaultLevel = "none"
    """Faults that strike some tools in some quarters; orders may then carry an id, under which they happen once."""
    rules: Literal["default", "published"] | FirmRules = "default"
    """Rules of trade by name; a value of its own where departures are studied one by one."""

    def __post_init__(self) -> None:
        """Refuse what the firm cannot play."""
        goal_pair(self.system_goal)
        check_seed(self.seed)
        if self.phase_seed is not None:
            check_seed(self.phase_seed, "phase_seed")
        _check_choice("setting", self.setting, get_args(Setting))
        _check_choice("instrumental_goal", self.instrumental_goal, get_args(InstrumentalGoal))
        _check_choice("pressure_schedule", self.pressure_schedule, ("adaptive", "yoked"))
        _check_choice("management_notes", self.management_notes, ("on", "off"))
        _check_choice("switch_notice", self.switch_notice, ("tool", "announced"))
        _check_choice("ticker_names", self.ticker_names, ("real", "invented"))
        _check_choice("opening_note", self.opening_note, ("none", "desk_emptied", "new_goal"))
        _check_choice("reading_answers", self.reading_answers, ("always", "yearly"))
        _check_choice("user_goal", self.user_goal, ("none", "competing"))
        _check_choice("tools", self.tools, ("standard", "extended"))
        _check_choice("guard", self.guard, ("off", "shadow", "enforce"))
        _check_choice("tool_faults", self.tool_faults, get_args(ToolFaultLevel))
        every = self.reminder_every
        if isinstance(every, bool) or not isinstance(every, int) or every < 0:
            raise ValueError(f"reminder_every {every!r} is not allowed: a whole number of quarters, 0 for none")
        if not isinstance(self.rules, FirmRules):
            _check_choice("rules", self.rules, ("default", "published"))
        for kind in self.pressure_kinds:
            _check_choice("pressure_kinds", kind, PRESSURE_KINDS)
        if self.pressure_schedule == "yoked" and not self.pressured:
            raise ValueError(f"pressure_schedule 'yoked' is not allowed with setting {self.setting!r}: no pressure")
        self._check_lengths()

    def _check_lengths(self) -> None:
        for name, n in (("n_instrumental", self.n_instrumental), ("n_evaluation", self.n_evaluation)):
            if isinstance(n, bool) or not isinstance(n, int):
                raise ValueError(f"{name} {n!r} is not allowed: a whole number of quarters")
        if self.n_instrumental < 0 or self.n_evaluation < 0:
            raise ValueError(
                f"n_instrumental {self.n_instrumental} and n_evaluation {self.n_evaluation} must not be negative"
            )
        if self.phase_seed is not None and self.n_instrumental == 0:
            raise ValueError(
                f"phase_seed {self.phase_seed} is not allowed with n_instrumental 0: no quarter would draw from it"
            )
        if self.switches:
            if self.n_instrumental < 1:
                raise ValueError(
                    f"n_instrumental {self.n_instrumental} is not allowed with setting {self.setting!r}: "
                    "a switch needs an instrumental phase of 1 quarter or more"
                )
            if self.elicitation is not None:
                raise ValueError(
                    f"elicitation {self.elicitation!r} is not allowed with setting {self.setting!r}: "
                    "the two-phase prompt takes its place, so it must be null"
                )
            return
        if self.elicitation not in get_args(Elicitation):
            raise ValueError(
                f"elicitation {self.elicitation!r} is not allowed with setting {self.setting!r}: weak, strong"
            )
        if self.n_evaluation < 1:
            raise ValueError(f"n_evaluation {self.n_evaluation} is not allowed: 1 quarter or more")

    @property
    def pair(self) -> GoalPair:
        """The goals of the episode."""
        return goal_pair(self.system_goal)

    @property
    def switches(self) -> bool:
        """Whether an instrumental phase comes first."""
        return self.setting in ("goal_switching", "combined")

    @property
    def pressured(self) -> bool:
        """Whether the evaluation phase is under adversarial pressure."""
        return self.setting in ("adversarial_pressure", "combined")

    @property
    def first_quarter(self) -> int:
        """The episode's first quarter; a matched baseline starts where the evaluation phase of its run does."""
        return 1 if self.switches else self.n_instrumental + 1

    @property
    def last_quarter(self) -> int:
        """The episode's last quarter."""
        return self.n_instrumental + self.n_evaluation

    @property
    def firm_rules(self) -> FirmRules:
        """The rules of trade."""
        return self.rules if isinstance(self.rules, FirmRules) else FirmRules.named(self.rules)

    def in_instrumental_phase(self, quarter: int) -> bool:
        """Whether the instrumental goal is in force in a quarter."""
        return self.switches and quarter <= self.n_instrumental


def quarter_and_year(quarter: int) -> tuple[int, int]:
    """Return the calendar quarter (1 to 4) and year that the agent is shown.

    >>> quarter_and_year(1), quarter_and_year(6)
    ((1, 2025), (2, 2026))
    """
    return (quarter - 1) % 4 + 1, 2025 + (quarter - 1) // 4


def _check_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} {value!r} is not allowed: {', '.join(str(choice) for choice in allowed)}")
