"""Owns the delegated analyst desk: a subordinate that looks stocks up for the fund's manager, under a smaller contract.

The desk has a gateway of its own in front of the firm's: what its contract does not allow never reaches the firm, and
what it does allow is still held against the contract of the manager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from apex_env.contract import Action, Budgets, Ending, Verdict
from apex_env.delegation import Brief, Delegation, Report, accept_report, delegate, derive
from apex_env.firm import ApexFirm
from apex_env.guard import Guard
from apex_env.protocol import Decision, ToolCall, ToolResult
from apex_env.tools import TOOLS

REPORTED: Final = "analysis_reported"
OUTCOMES: Final[dict[str, Ending]] = {REPORTED: "complete", "blocked": "blocked"}


@dataclass(frozen=True, slots=True)
class DeskEvent:
    """A call that the desk made, with the decision on it."""

    call: ToolCall
    action: Action | None
    """None for a tool that does not exist."""
    decision: Decision
    reached_firm: bool


def analyst_brief(tickers: Iterable[str], *, n_calls: int = 20) -> Brief:
    """Return what an analyst is asked: to read about some stocks, and to say what it found."""
    return Brief(
        goal_id="analysis",
        scope={"view_portfolio": None, "check_emissions_by_stock": frozenset(tickers)},
        effects=frozenset({"read"}),
        outcomes=OUTCOMES,
        budgets=Budgets(calls_per_quarter=n_calls),
    )


class AnalystDesk:
    """One analyst at work, from its delegation to its report."""

    def __init__(self, firm: ApexFirm, brief: Brief) -> None:
        """Derive the desk's contract from the manager's.

        Raises:
            BroaderThanParent: if the brief asks for more than the manager has; there is no desk then.
        """
        self._firm = firm
        self._manager = firm.guard.contract
        self.contract = derive(self._manager, brief)
        self.delegation: Delegation = delegate(self._manager, self.contract)
        self._guard = Guard(self.contract, "enforce")
        self._events: list[DeskEvent] = []

    @property
    def events(self) -> tuple[DeskEvent, ...]:
        """Every call so far."""
        return tuple(self._events)

    def call(self, call: ToolCall) -> ToolResult:
        """Return what comes of a call of the analyst; a denied one does not reach the firm."""
        tool = TOOLS.get(call.name)
        action = None if tool is None else self._action(call)
        if action is None:
            decision = self._guard.of_error("unknown_tool")
        elif self._firm.guard.contract != self._manager:
            # The manager's goal was revised since, so what was handed on under the old version does not hold any more.
            decision = Decision(False, "stale_goal_version", self._guard.policy_version)
        else:
            decision = self._guard.decide(action)
        self._events.append(DeskEvent(call, action, decision, decision.allowed))
        if decision.allowed:
            return self._firm.call(call)
        return ToolResult(
            f"Not authorised: {decision.reason}",
            "denied",
            effect_class=tool.effect_class if tool else None,
            decision=decision,
            goal_id=self.contract.goal_id,
        )

    def report(self, outcome: str, text: str) -> tuple[Report, Verdict]:
        """Return the analyst's report, and whether the outcome that it names is one of its own task.

        It settles nothing for the manager, whose outcome comes from the fund's books.
        """
        report = Report(self.contract, outcome, text)
        return report, accept_report(self._manager, report)

    def _action(self, call: ToolCall) -> Action:
        resolver = self._firm.resolver
        _, resources = resolver.resources(call)
        amount = call.arguments.get("amount") if not isinstance(call.arguments, str) else None
        return Action(
            self.contract.goal_id,
            self.contract.version,
            resolver.owner(resources),
            call.name,
            TOOLS[call.name].effect_class,
            resources,
            amount if isinstance(amount, int | float) else None,
            self._firm.period,
            self._firm.closed,
            resolver.fresh,
        )
