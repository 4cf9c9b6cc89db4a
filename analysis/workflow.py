"""Owns workflows: what a chain of handoffs may look like, with alternatives, optional steps and partial orders.

A pattern is plain data, as YAML gives it: the name of an agent; a list of patterns, in that order; or a mapping with
one of ``one_of`` (patterns), ``optional`` (a pattern), ``repeat`` (a pattern, once or more), or ``any_order``
(patterns, each once) with, where some must precede others, ``before`` (pairs of their places, counted from 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from analysis.conformance import BEHAVIOR_CHAIN_DIVERGENCE, Finding, reconstruct_chain

FORMS: Final = ("one_of", "optional", "repeat", "any_order")
MAX_UNORDERED: Final = 10
"""Members of one ``any_order``; every subset of them is a state of the search."""

Pattern = Any
"""A pattern as plain data; see the module's own text."""


class BadPattern(ValueError):
    """A workflow is no pattern; the text names the part and what is allowed."""


def check_workflow(trajectory: Mapping[str, Any], pattern: Pattern) -> list[Finding]:
    """Return a finding if the chain of a trajectory is none that a workflow allows.

    Raises:
        BadPattern: if the workflow is not of the form that the module describes.
        MalformedTrajectory: if the trajectory is none.
    """
    chain = reconstruct_chain(trajectory)
    reached = furthest(pattern, chain)
    if reached is None:
        return []
    told = f"after {chain[reached - 1]!r}" if reached else "from its start"
    next_one = repr(chain[reached]) if reached < len(chain) else "the end of the chain"
    message = f"{' -> '.join(chain) or 'no handoff'}: {told}, {next_one} is not what the workflow allows"
    return [Finding(BEHAVIOR_CHAIN_DIVERGENCE, "HARD", message)]


def furthest(pattern: Pattern, chain: Sequence[str]) -> int | None:
    """Return None if a chain fits a pattern, else how many of its agents some allowed chain begins with.

    >>> workflow = ["desk", {"any_order": ["market", "coworker"]}, {"optional": "auditor"}, "desk"]
    >>> furthest(workflow, ["desk", "coworker", "market", "desk"]) is None
    True
    >>> furthest(workflow, ["desk", "coworker", "desk"])
    2
    """
    search = _Search(tuple(chain))
    ends = search.ends(check_pattern(pattern), 0)
    return None if len(chain) in ends else search.reached


def check_pattern(pattern: Pattern, here: str = "workflow") -> Pattern:
    """Return a pattern in immutable form.

    Raises:
        BadPattern: naming the part that is none.
    """
    if isinstance(pattern, str) and pattern:
        return pattern
    if isinstance(pattern, list | tuple):
        return ("sequence", tuple(check_pattern(part, f"{here}[{place}]") for place, part in enumerate(pattern)))
    if not isinstance(pattern, Mapping):
        raise BadPattern(f"{here} is {pattern!r}: an agent, a list, or a mapping with one of {', '.join(FORMS)}")
    form = next((name for name in FORMS if name in pattern), None)
    extra = set(pattern) - {form} - ({"before"} if form == "any_order" else set())
    if form is None or extra:
        raise BadPattern(f"{here} has the keys {', '.join(map(str, pattern))}: allowed is one of {', '.join(FORMS)}")
    inner = pattern[form]
    if form in ("optional", "repeat"):
        return (form, check_pattern(inner, f"{here}.{form}"))
    if not isinstance(inner, list | tuple) or not inner:
        raise BadPattern(f"{here}.{form} is {inner!r}: a list of patterns is expected")
    parts = tuple(check_pattern(part, f"{here}.{form}[{place}]") for place, part in enumerate(inner))
    return (form, parts) if form == "one_of" else (form, parts, _order(pattern.get("before", ()), len(parts), here))


def _order(before: Any, n_parts: int, here: str) -> tuple[tuple[int, int], ...]:
    if n_parts > MAX_UNORDERED:
        raise BadPattern(f"{here}.any_order has {n_parts} members: {MAX_UNORDERED} at most")
    places = range(n_parts)
    pairs = before if isinstance(before, list | tuple) else [before]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or any(place not in places for place in pair):
            raise BadPattern(f"{here}.before has {pair!r}: pairs of places from 0 to {n_parts - 1} are expected")
    return tuple((pair[0], pair[1]) for pair in pairs)


class _Search:
    """Finds where in one chain a pattern can end; remembers how far any attempt came."""

    def __init__(self, chain: tuple[str, ...]) -> None:
        self.chain = chain
        self.reached = 0
        self.ends = cache(self._ends)

    def _ends(self, pattern: Pattern, start: int) -> frozenset[int]:
        """Return every place at which a pattern that begins at ``start`` can end."""
        if isinstance(pattern, str):
            if start >= len(self.chain) or self.chain[start] != pattern:
                return frozenset()
            self.reached = max(self.reached, start + 1)
            return frozenset({start + 1})
        form, inner = pattern[0], pattern[1]
        if form == "sequence":
            return self._in_order(inner, start)
        if form == "one_of":
            return frozenset().union(*(self.ends(part, start) for part in inner))
        if form == "optional":
            return frozenset({start}) | self.ends(inner, start)
        return self._repeated(inner, start) if form == "repeat" else self._unordered(inner, pattern[2], start)

    def _in_order(self, parts: tuple[Pattern, ...], start: int) -> frozenset[int]:
        places = frozenset({start})
        for part in parts:
            places = frozenset().union(*(self.ends(part, place) for place in places))
        return places

    def _repeated(self, part: Pattern, start: int) -> frozenset[int]:
        found, new = frozenset[int](), self.ends(part, start)
        while new - found:
            found |= new
            new = frozenset().union(*(self.ends(part, place) for place in new))
        return found

    def _unordered(self, parts: tuple[Pattern, ...], before: tuple[tuple[int, int], ...], start: int) -> frozenset[int]:
        states = {(frozenset[int](), start)}
        for _ in parts:
            states = {
                (done | {part}, end)
                for done, place in states
                for part in range(len(parts))
                if part not in done and all(first in done for first, second in before if second == part)
                for end in self.ends(parts[part], place)
            }
        return frozenset(end for _, end in states)
