"""Owns behavioural conformance: whether the recorded handoffs of a run are those that its specification expects.

A trajectory is a list of handoffs (`handoff_edges`); a specification is a list of scenarios, of which those of category
`handoff` with a predicate of kind `handoff-chain` name an expected chain. `analysis.workflow` goes beyond one chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, Final, Literal

Severity = Literal["WARN", "HARD"]

BEHAVIOR_NO_TRAJECTORY: Final = "BEHAVIOR_NO_TRAJECTORY"
BEHAVIOR_BROKEN_CHAIN: Final = "BEHAVIOR_BROKEN_CHAIN"
BEHAVIOR_CHAIN_DIVERGENCE: Final = "BEHAVIOR_CHAIN_DIVERGENCE"
BEHAVIOR_MISSING_RETURN: Final = "BEHAVIOR_MISSING_RETURN"
PAYLOAD_UNTYPED: Final = "PAYLOAD_UNTYPED"
UNTYPED_IS_HARD_FROM: Final = date(2026, 7, 1)
"""First day on which a handoff without a schema id is a hard finding; before, it is a warning."""


class MalformedTrajectory(ValueError):
    """A trajectory or a specification is not of the form that is compared; the text names the place."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a run departs from its specification."""

    code: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class Handoff:
    """One edge of a trajectory, checked."""

    sequence: int
    from_agent: str
    to_agent: str
    payload_schema_id: str | None = None
    """None where the payload has no declared type."""
    mediated_by: str | None = None

    def __str__(self) -> str:
        return f"{self.from_agent} -> {self.to_agent} (sequence {self.sequence})"


@dataclass(frozen=True, slots=True)
class Expected:
    """What one scenario expects."""

    chain: tuple[str, ...]
    returns_to: str | None = None
    """Who must be seen to mediate, or to get the work back."""


def reconstruct_chain(trajectory: Mapping[str, Any]) -> list[str]:
    """Return the agents of a trajectory in the order in which the work reached them; empty without handoffs.

    Raises:
        MalformedTrajectory: naming the edge that is none.

    >>> reconstruct_chain(
    ...     {
    ...         "handoff_edges": [
    ...             {"sequence": 2, "from_agent": "desk", "to_agent": "auditor"},
    ...             {"sequence": 1, "from_agent": "management", "to_agent": "desk"},
    ...         ]
    ...     }
    ... )
    ['management', 'desk', 'auditor']
    """
    return _chain(handoffs(trajectory))


def detect_behavioral_drift(
    trajectory: Mapping[str, Any], eval_suite: Mapping[str, Any], *, today: date | None = None
) -> list[Finding]:
    """Return every way in which a run departs from its specification; an empty list means that it conforms.

    The chain may equal any one of the expected ones. Who mediated a handoff does not matter to that comparison: hops
    through the agent that a scenario returns to, and through mediators that the expected chain does not name, are
    passed over.

    Args:
        trajectory: a mapping whose ``handoff_edges`` hold the fields of `Handoff` each.
        eval_suite: with ``scenarios``; those of another category or predicate are no matter of this function.
        today: the day that decides how severe an untyped payload is; the current one where None.

    Raises:
        MalformedTrajectory: if either is not of this form.
    """
    edges, expected = handoffs(trajectory), expected_chains(eval_suite)
    if not edges:
        if not expected:
            return []
        return [
            _hard(BEHAVIOR_NO_TRAJECTORY, f"{len(expected)} handoff chains are expected, but no handoff is recorded")
        ]
    findings = [*_broken(edges)]
    matching = [one for one in expected if _matches(edges, one)]
    if expected and not matching:
        allowed = "; ".join(" -> ".join(one.chain) for one in expected)
        findings.append(_hard(BEHAVIOR_CHAIN_DIVERGENCE, f"{' -> '.join(_chain(edges))} is none of: {allowed}"))
    seen = {edge.to_agent for edge in edges} | {edge.mediated_by for edge in edges}
    wanted = dict.fromkeys(one.returns_to for one in matching or expected)
    if not any(one.returns_to is None or one.returns_to in seen for one in matching):
        findings.extend(
            _hard(BEHAVIOR_MISSING_RETURN, f"no handoff is mediated by {agent!r} or returns to it")
            for agent in wanted
            if agent is not None and agent not in seen
        )
    return findings + audit_payloads(edges, today=today)


def audit_payloads(edges: Sequence[Handoff], *, today: date | None = None) -> list[Finding]:
    """Return one finding for each handoff whose payload has no schema id."""
    severity: Severity = "HARD" if (today or date.today()) >= UNTYPED_IS_HARD_FROM else "WARN"
    return [
        Finding(PAYLOAD_UNTYPED, severity, f"{edge}: the payload has no schema id")
        for edge in edges
        if not edge.payload_schema_id
    ]


def handoffs(trajectory: Mapping[str, Any]) -> list[Handoff]:
    """Return the handoffs of a trajectory, checked and sorted by their sequence.

    Raises:
        MalformedTrajectory: naming the edge, its field and what is allowed.
    """
    edges = _mapping("the trajectory", trajectory).get("handoff_edges")
    found = [_handoff(place, edge) for place, edge in enumerate(_list("handoff_edges", edges))]
    return sorted(found, key=lambda edge: edge.sequence)


def expected_chains(eval_suite: Mapping[str, Any]) -> list[Expected]:
    """Return what the handoff scenarios of a suite expect, in their order.

    Raises:
        MalformedTrajectory: naming the scenario, its field and what is allowed.
    """
    scenarios = _list("scenarios", _mapping("the evaluation suite", eval_suite).get("scenarios"))
    found = []
    for place, scenario in enumerate(scenarios):
        here = f"scenario {place}"
        if _mapping(here, scenario).get("category") != "handoff":
            continue
        predicate = _mapping(f"{here}, predicate", scenario.get("predicate"))
        if predicate.get("kind") != "handoff-chain":
            continue
        chain = [_name(f"{here}, chain", agent) for agent in _list(f"{here}, chain", predicate.get("chain"))]
        if not chain:
            raise MalformedTrajectory(f"{here}, chain: at least one agent is expected")
        returns_to = predicate.get("returns_to", scenario.get("returns_to"))
        found.append(Expected(tuple(chain), _optional_name(f"{here}, returns_to", returns_to)))
    return found


def _hard(code: str, message: str) -> Finding:
    return Finding(code, "HARD", message)


def _chain(edges: Sequence[Handoff]) -> list[str]:
    return [edges[0].from_agent, *(edge.to_agent for edge in edges)] if edges else []


def _broken(edges: Sequence[Handoff]) -> Iterator[Finding]:
    """Yield a finding for each place at which the work does not go on from where it was, or goes two ways at once."""
    for before, after in pairwise(edges):
        if before.sequence == after.sequence or before.from_agent == after.from_agent != before.to_agent:
            yield _hard(BEHAVIOR_BROKEN_CHAIN, f"fork: {before} and {after}")
        elif before.to_agent != after.from_agent:
            yield _hard(BEHAVIOR_BROKEN_CHAIN, f"gap: {before} is followed by {after}")


def _matches(edges: Sequence[Handoff], expected: Expected) -> bool:
    actual, chain = _chain(edges), list(expected.chain)
    if actual == chain:
        return True
    unnamed = {edge.mediated_by for edge in edges} - {*chain, None}
    kept = [agent for agent in actual if agent not in unnamed]
    return _without_returns(kept, expected.returns_to) == _without_returns(chain, expected.returns_to)


def _without_returns(chain: Sequence[str], mediator: str | None) -> list[str]:
    """Return a chain without the hops through its mediator; where it begins is kept."""
    return [*chain[:1], *(agent for agent in chain[1:] if agent != mediator)]


def _handoff(place: int, edge: Any) -> Handoff:
    here = f"handoff_edges[{place}]"
    fields = _mapping(here, edge)
    sequence = fields.get("sequence")
    if isinstance(sequence, bool) or not isinstance(sequence, int):
        raise MalformedTrajectory(f"{here}, sequence {sequence!r}: a whole number is expected")
    return Handoff(
        sequence,
        _name(f"{here}, from_agent", fields.get("from_agent")),
        _name(f"{here}, to_agent", fields.get("to_agent")),
        _optional_name(f"{here}, payload_schema_id", fields.get("payload_schema_id")),
        _optional_name(f"{here}, mediated_by", fields.get("mediated_by")),
    )


def _mapping(here: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MalformedTrajectory(f"{here} is {type(value).__name__}: a mapping is expected")
    return value


def _list(here: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise MalformedTrajectory(f"{here} is {type(value).__name__}: a list is expected")
    return value


def _name(here: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedTrajectory(f"{here} {value!r}: the name of an agent or schema is expected")
    return value


def _optional_name(here: str, value: Any) -> str | None:
    return None if value is None or value == "" else _name(here, value)
