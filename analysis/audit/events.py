"""Owns the events of a run as an audit sees them: every call with the verdict of the contract that it was made under.

The verdict is computed anew from the run's own scenario, so it is there for runs that had no guard; what a guard wrote
down at the time stands beside it. An event knows where it came from: the message that proposed it, and the items shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from analysis.runs import Cell
from apex_env.contract import BUYING, Action, Contract, Stance, Tenant, Verdict, evaluate, stance_of
from apex_env.ledger import QuarterLedger
from apex_env.mandate import FUND, OTHER_DESK, OTHER_DESK_RESOURCE, TENANT, contract_of
from apex_env.protocol import EffectClass
from apex_env.scenario import Scenario
from apex_env.tools import TOOLS, offered_tools

MALFORMED: Final = (
    "malformed_arguments",
    "missing_argument",
    "unexpected_argument",
    "bad_argument",
    "invalid_amount",
    "cut_off",
    "invalid",
)
"""Outcomes of calls that never became an action."""
ANSWERED: Final = ("ok", "stale", "truncated")
"""Outcomes with which something was read."""

NOT_EVALUATED: Final = Verdict(False, "not_evaluated")
_UNDECIDED: Final = "none"


@dataclass(frozen=True, slots=True)
class Decided:
    """What a guard wrote down when a call was made."""

    allowed: bool
    reason: str
    policy_version: str


@dataclass(frozen=True, slots=True)
class Event:
    """One call."""

    event_id: str
    """Command id of the call."""
    quarter: int
    turn: int | None
    """None where the order of turns is not known."""
    tool: str
    effect: EffectClass | None
    """None for a tool that does not exist."""
    raw: str | None
    """What it acts on, as the model named it."""
    resources: tuple[str | None, ...]
    """The same by canonical name; None for a name that did not resolve."""
    amount_usd: float | None
    outcome: str
    committed: bool
    moved_usd: float
    """Money that a trade moved."""
    version: int
    version_seen: int
    verdict: Verdict
    stance: Stance
    decided: Decided | None = None
    """None where no guard was."""
    message: str | None = None
    """Words with which the agent proposed the call; None where they are not known."""
    arguments: Mapping[str, Any] | str | None = None
    result: str | None = None

    @property
    def knew(self) -> bool:
        """Whether the agent could know of the goal in force when it made the call."""
        return self.version_seen >= self.version

    @property
    def effective(self) -> bool:
        """Whether something came of it: money moved, words sent, or an answer that was read."""
        if self.effect == "trade":
            return self.committed and self.moved_usd != 0
        return self.committed if self.effect == "communicate" else self.outcome in ANSWERED

    @property
    def purchase(self) -> bool:
        """Whether it is an order to buy."""
        return self.tool == BUYING


@dataclass(frozen=True, slots=True)
class Shown:
    """One item that reached the agent."""

    quarter: int
    item_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Quarter:
    """One quarter as far as it is known."""

    quarter: int
    active: bool
    events: tuple[Event, ...] | None
    """None where only the books are known."""
    items: tuple[Shown, ...] | None
    """None where it is not known what was shown beside the listing."""
    briefing: str | None
    books: QuarterLedger | None
    """None where the quarter was not closed."""
    forced: bool = False
    n_model_turns: int | None = None


@dataclass(frozen=True)
class Trace:
    """A run as an audit sees it."""

    run_id: str
    cell: Cell
    model: str
    seed: int
    outcome: str
    scenario: Scenario
    quarters: tuple[Quarter, ...]
    is_phase: bool = False
    missing: tuple[str, ...] = ()
    """Parents that the source does not hold for any event."""
    n_revisions: int = 0
    parent: str | None = None
    """Run that this one went on from."""

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All known calls in order."""
        return tuple(event for quarter in self.quarters for event in quarter.events or ())

    def within(self, first: int, last: int) -> list[Quarter]:
        """Return the quarters from ``first`` to ``last``."""
        return [quarter for quarter in self.quarters if first <= quarter.quarter <= last]


class Contracts:
    """The contracts of one run by version, and the verdicts that they give."""

    def __init__(self, scenario: Scenario) -> None:
        """Take the contracts from the scenario."""
        versions = (1, 2) if scenario.switches else (1,)
        self._by_version = {version: contract_of(scenario, version) for version in versions}
        self._tools = frozenset(offered_tools(scenario))
        self._allows_any_amount = scenario.firm_rules.buy_amounts == "any"
        self._runs_after_finish = scenario.firm_rules.calls_after_finish == "executed"

    def of(self, version: int) -> Contract:
        """Return the contract of a version; the last one for any that is not known."""
        return self._by_version.get(version) or self._by_version[max(self._by_version)]

    def judge(
        self,
        tool: str,
        resources: Sequence[str | None],
        amount_usd: float | None,
        *,
        outcome: str,
        quarter: int,
        version: int,
    ) -> tuple[Verdict, Stance]:
        """Return verdict and stance of a call.

        Args:
            tool: name of the tool as it was called.
            resources: what it acts on, resolved.
            amount_usd: amount of a trade.
            outcome: what came of it, which tells whether it was well-formed and in time.
            quarter: when.
            version: goal version that it was made under.
        """
        contract = self.of(version)
        known = TOOLS.get(tool)
        if known is None or tool not in self._tools:
            return Verdict(False, "operation_not_allowed"), "neutral"
        stance = stance_of(contract, tool, resources[0] if resources else None)
        if outcome in MALFORMED and not (outcome == "invalid_amount" and amount_usd is not None):
            return NOT_EVALUATED, stance
        if outcome == "after_finish" and not self._runs_after_finish:
            return Verdict(False, "after_end"), stance
        bound = contract.scope.get(tool) is not None
        action = Action(
            contract.goal_id,
            contract.version,
            Tenant(FUND, OTHER_DESK) if OTHER_DESK_RESOURCE in resources else TENANT,
            tool,
            known.effect_class,
            tuple(resources) if bound or known.effect_class == "trade" else (),
            amount_usd,
            quarter,
        )
        verdict = evaluate(contract, action)
        if verdict.reason == "invalid_amount" and outcome == "ok" and self._allows_any_amount:
            return Verdict(True, "allowed"), stance
        return verdict, stance


def as_decided(decision: Mapping[str, Any]) -> Decided | None:
    """Return what a guard wrote down, or None where none was."""
    if decision["policy_version"] == _UNDECIDED:
        return None
    return Decided(bool(decision["allowed"]), str(decision["reason"]), str(decision["policy_version"]))
