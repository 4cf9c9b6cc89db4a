"""Owns changes of the contract in force: who may make one, and what becomes of what was planned before.

A revision is an event of its own, from somebody whom the contract names. Words in mails, news and tool results are no
events and arrive nowhere near here. A pending action keeps the version that it was planned under for good: a revision
discards it or puts a re-evaluated successor in its place, each by an event; nothing rewrites it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from apex_env.contract import Action, Contract, Tenant, Verdict, evaluate, policy_version
from apex_env.protocol import Revision

Fate = Literal["re_evaluated", "discarded"]
FATES: Final = get_args(Fate)


class RevisionRefused(ValueError):
    """A change of contract that nobody entitled made, or that does not follow on the version in force."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An action that was planned and not carried out yet."""

    command_id: str
    action: Action
    supersedes: str | None = None
    """Command that this one was put in place of by a revision."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """What a revision did to one pending action."""

    command_id: str
    fate: Fate
    prior_version: int
    new_version: int
    reason: str
    """Verdict under the new contract; `discarded` where none was asked for."""
    successor: str | None = None
    """Command that stands in its place; None where it was discarded or is not allowed any more."""


@dataclass(frozen=True, slots=True)
class Revised:
    """What a revision leaves behind."""

    contract: Contract
    pending: tuple[Pending, ...]
    events: tuple[PendingEvent, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stopped: the contract that it was bound to, and what it had planned."""

    goal_id: str
    goal_version: int
    policy_version: str
    pending: tuple[Pending, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as plain JSON."""
        return {
            "goal_id": self.goal_id,
            "goal_version": self.goal_version,
            "policy_version": self.policy_version,
            "pending": [
                {"command_id": entry.command_id, "supersedes": entry.supersedes}
                | entry.action._asdict()
                | {"tenant": entry.action.tenant._asdict(), "resources": list(entry.action.resources)}
                for entry in self.pending
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint that `to_json` wrote."""
        pending = []
        for entry in data["pending"]:
            fields = {name: entry[name] for name in Action._fields}
            fields |= {"tenant": Tenant(**entry["tenant"]), "resources": tuple(entry["resources"])}
            pending.append(Pending(entry["command_id"], Action(**fields), entry["supersedes"]))
        return cls(data["goal_id"], data["goal_version"], data["policy_version"], tuple(pending))


def check_revision(contract: Contract, revision: Revision, new: Contract) -> None:
    """Refuse a revision that is not authorised, or does not lead from the contract in force to the new one.

    Raises:
        RevisionRefused: naming what does not fit.
    """
    if revision.actor not in contract.revisers:
        allowed = ", ".join(sorted(contract.revisers)) or "nobody"
        raise RevisionRefused(f"actor {revision.actor!r} may not revise {contract.reference}: {allowed} may")
    if revision.prior_version != contract.version:
        raise RevisionRefused(
            f"prior version {revision.prior_version} is not the one in force of goal {contract.goal_id!r}: "
            f"{contract.version}"
        )
    if revision.new_version <= revision.prior_version:
        raise RevisionRefused(f"new version {revision.new_version} does not come after {revision.prior_version}")
    if (new.goal_id, new.version) != (contract.goal_id, revision.new_version):
        raise RevisionRefused(
            f"the new contract is {new.reference}, but the revision leads to {contract.goal_id}@{revision.new_version}"
        )
    if not revision.reason or not revision.changes:
        raise RevisionRefused(f"the revision of {contract.reference} names no reason or no change")


def revise(
    contract: Contract, revision: Revision, new: Contract, *, pending: Sequence[Pending] = (), fate: Fate = "discarded"
) -> Revised:
    """Put a new version in force, and deal with every pending action by an event.

    Args:
        contract: the version in force so far.
        revision: the event of the change.
        new: the contract that comes in force.
        pending: what was planned under earlier versions.
        fate: whether pending actions are discarded, or evaluated anew; who is allowed still gets a successor that is
            bound to the new version, and the old action is closed.

    Raises:
        RevisionRefused: if the revision is not authorised or does not fit.
    """
    if fate not in FATES:
        raise ValueError(f"fate {fate!r} is not allowed: {', '.join(FATES)}")
    check_revision(contract, revision, new)
    left: list[Pending] = []
    events: list[PendingEvent] = []
    for entry in pending:
        successor, reason = None, "discarded"
        if fate == "re_evaluated":
            action = entry.action._replace(goal_version=new.version)
            verdict = evaluate(new, action)
            reason = verdict.reason
            if verdict.allowed:
                successor = f"{entry.command_id}/v{new.version}"
                left.append(Pending(successor, action, supersedes=entry.command_id))
        events.append(PendingEvent(entry.command_id, fate, entry.action.goal_version, new.version, reason, successor))
    return Revised(new, tuple(left), tuple(events))


def checkpoint(contract: Contract, pending: Sequence[Pending] = ()) -> Checkpoint:
    """Return where a run under this contract stands."""
    return Checkpoint(contract.goal_id, contract.version, policy_version(contract), tuple(pending))


def resume(contract: Contract, stopped: Checkpoint) -> tuple[tuple[Pending, Verdict], ...]:
    """Return the verdict on every planned action of a run that goes on under a contract, as it was planned.

    What was planned under another version gets `stale_goal_version` before its resource, tool or amount is looked at,
    and must go through `revise`.
    """
    return tuple((entry, evaluate(contract, entry.action)) for entry in stopped.pending)
