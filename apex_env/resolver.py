"""Owns the trusted resolver: from a name as an agent writes it to the one canonical resource, within a tenant.

Contracts, guard, ledger and audit compare canonical names only. Nothing is guessed: a name that could mean two
resources means none, and a name of a world that the run does not know (a real ticker where names are invented) does not
resolve.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from apex_env.contract import Tenant
from apex_env.protocol import ToolCall
from apex_env.tools import shown

RESOURCE_ARGUMENTS: Final = ("stock", "stocks", "recipient", "coworker_name", "desk")
"""Arguments that name what a call acts on; a call has at most one of them."""
FREE_ARGUMENTS: Final = frozenset({"recipient", "coworker_name"})
"""Those whose name is taken as it stands: people have no register."""

KIND_OF_DESKS: Final = "desk:"
"""Starts the canonical names of desks, so that none can be taken for a stock."""

_WITH_BRACKETS: Final = re.compile(r"([^()]+?)\s*\(([^()]+)\)")


@dataclass(frozen=True, slots=True)
class Resolver:
    """The names of one tenant's world, at one version.

    >>> stocks = Resolver(Tenant("fund", "desk"), {"XOM": "XOM", "NEE": "NEE"})
    >>> [stocks.resolve(name) for name in ("XOM", " xom ", "Exxon Mobil (XOM)", "NEE (XOM)", "Exxon")]
    ['XOM', 'XOM', 'XOM', None, None]
    """

    tenant: Tenant
    names: Mapping[str, str]
    """Canonical resource by name; names in capital letters with single blanks."""
    foreign: Mapping[str, Tenant] = field(default_factory=dict)
    """Resources among them that belong to another tenant."""
    version: str = "1"
    fresh: bool = True
    """False once the names may have changed since: then reads go on, and writes find nothing that they may act on."""

    def resolve(self, name: str) -> str | None:
        """Return the resource that a name means, or None.

        Case, blanks around and between words, and a name beside the ticker in brackets do not matter.
        """
        found = self.names.get(name)
        if found is not None:
            return found
        folded = _folded(name)
        found = self.names.get(folded)
        if found is not None or "(" not in folded:
            return found
        parts = _WITH_BRACKETS.fullmatch(folded)
        if parts is None:
            return None
        meant = {self.names[part] for part in map(_folded, parts.groups()) if part in self.names}
        return meant.pop() if len(meant) == 1 else None

    def owner(self, resources: tuple[str | None, ...]) -> Tenant:
        """Return whose resources these are: another tenant's if any of them is."""
        if self.foreign:
            for resource in resources:
                if resource is not None and resource in self.foreign:
                    return self.foreign[resource]
        return self.tenant

    def resources(self, call: ToolCall) -> tuple[str | None, tuple[str | None, ...]]:
        """Return what a call acts on: as the model named it, and by canonical name, None for what did not resolve."""
        arguments = call.arguments
        if not arguments or isinstance(arguments, str):
            return None, ()
        for key in RESOURCE_ARGUMENTS:
            if key in arguments:
                break
        else:
            return None, ()
        sent = arguments[key]
        if key == "stock" and isinstance(sent, str):
            return sent, (self.names.get(sent) or self.resolve(sent),)
        listed = sent if isinstance(sent, list) else [sent]
        parts = [part if isinstance(part, str) else shown(part) for part in listed]
        if key in FREE_ARGUMENTS:
            resolved: tuple[str | None, ...] = tuple(parts)
        elif key == "desk":
            resolved = tuple(self.resolve(KIND_OF_DESKS + part.strip()) for part in parts)
        else:
            resolved = tuple([self.names.get(part) or self.resolve(part) for part in parts])
        return ", ".join(parts), resolved


def _folded(name: str) -> str:
    return " ".join(name.split()).upper()
