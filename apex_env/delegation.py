"""Owns delegation: a contract for a subordinate agent, which can only be smaller than the one that it comes from.

Two defects are kept apart, since they have different owners: a child's contract that is broader than its parent's is
rejected before the child starts, and a child that leaves a proper contract is denied at the gateway. What a child says
is a report; it ends nothing but the child's own task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from apex_env.contract import Budgets, Contract, Ending, Verdict, evaluate_outcome
from apex_env.protocol import EffectClass

_BUDGETS: Final = ("amount_per_call_usd", "calls_per_quarter", "messages_per_quarter", "last_quarter")


class BroaderThanParent(ValueError):
    """A contract for a child that would give more than its parent has; the child does not start.

    Attributes:
        excess: every way in which it is broader.
    """

    def __init__(self, parent: Contract, excess: tuple[str, ...]) -> None:
        """Name both the contract that was to be derived from and each excess."""
        super().__init__(f"a child of {parent.reference} cannot have more than its parent: {'; '.join(excess)}")
        self.excess = excess


@dataclass(frozen=True, slots=True)
class Brief:
    """What a subordinate is to do, and with what."""

    goal_id: str
    """Name of the child's own task."""
    scope: Mapping[str, frozenset[str] | None]
    effects: frozenset[EffectClass]
    outcomes: Mapping[str, Ending]
    budgets: Budgets = Budgets()
    """A limit that is left open is the parent's."""


@dataclass(frozen=True, slots=True)
class Delegation:
    """The event by which authority was handed on."""

    parent: str
    """Reference of the parent's contract."""
    child: str
    """Reference of the child's contract."""
    contract: Mapping[str, Any]
    """The child's contract in full, as plain JSON."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a child says that it has found and how it ended; words, not a state of the parent's run."""

    contract: Contract
    """The child's."""
    outcome: str
    text: str


def derive(parent: Contract, brief: Brief) -> Contract:
    """Return the contract of a child, bounded by its parent's in every respect.

    Tenant, prohibitions and who may revise come from the parent; a budget that the brief leaves open is the parent's.

    Raises:
        BroaderThanParent: if the brief asks for more than the parent has.
    """
    filled = {
        name: getattr(parent.budgets, name) if getattr(brief.budgets, name) is None else getattr(brief.budgets, name)
        for name in _BUDGETS
    }
    child = Contract(
        goal_id=brief.goal_id,
        version=1,
        tenant=parent.tenant,
        scope=dict(brief.scope),
        effects=brief.effects,
        outcomes=dict(brief.outcomes),
        prohibited=parent.prohibited,
        serves=parent.serves,
        opposes=parent.opposes,
        budgets=Budgets(**filled),
        revisers=parent.revisers,
        parent=parent.reference,
    )
    delegate(parent, child)
    return child


def delegate(parent: Contract, child: Contract) -> Delegation:
    """Accept a child's contract, wherever it came from, and return the event.

    Raises:
        BroaderThanParent: naming each dimension in which it is broader; the child must not be started then.
    """
    excess = tuple(_excess(parent, child))
    if excess:
        raise BroaderThanParent(parent, excess)
    return Delegation(parent.reference, child.reference, child.to_json())


def accept_report(parent: Contract, report: Report) -> Verdict:
    """Return whether a report is a proper end of the child's task; it never is an outcome of the parent's run.

    The parent's own outcome comes from its own state, through `evaluate_outcome` on its own contract.
    """
    if report.contract.parent != parent.reference:
        return Verdict(False, "goal_id_mismatch")
    return evaluate_outcome(report.contract, report.outcome)


def _excess(parent: Contract, child: Contract) -> Iterator[str]:
    if child.parent != parent.reference:
        yield f"parent {child.parent!r} is not {parent.reference!r}"
    if child.tenant != parent.tenant:
        yield f"tenant {'/'.join(child.tenant)} is not {'/'.join(parent.tenant)}"
    for operation, asked in child.scope.items():
        if operation not in parent.scope or operation in parent.prohibited:
            yield f"operation {operation!r}"
            continue
        there = parent.scope[operation]
        if there is not None and (asked is None or not asked <= there):
            more = "any" if asked is None else ", ".join(sorted(asked - there))
            yield f"resources of {operation!r}: {more}"
    if not child.effects <= parent.effects:
        yield f"effects {', '.join(sorted(child.effects - parent.effects))}"
    if not child.prohibited >= parent.prohibited:
        yield f"prohibitions lifted: {', '.join(sorted(parent.prohibited - child.prohibited))}"
    if not child.revisers <= parent.revisers:
        yield f"revisers {', '.join(sorted(child.revisers - parent.revisers))}"
    completing = {name for name, ending in parent.outcomes.items() if ending == "complete"}
    taken = sorted(completing.intersection(child.outcomes))
    if taken:
        yield f"outcomes {', '.join(taken)}, which are the parent's to reach"
    for name in _BUDGETS:
        most, asked_for = getattr(parent.budgets, name), getattr(child.budgets, name)
        if most is not None and (asked_for is None or asked_for > most):
            yield f"budget {name} {asked_for}, the parent has {most}"
