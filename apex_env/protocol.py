"""Owns the contract between an environment and the harness: what is opened, called, closed and written down.

The agent loop, the sweep and the record's envelope know an environment only by `Environment`. Its own books travel as
plain JSON under `state`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

EffectClass = Literal["read", "trade", "communicate", "control"]
"""What a tool can do to the world: nothing, move money, send words, end the quarter."""

Json = Any
"""A JSON value."""


class ToolError(Exception):
    """What the model may mend: the text goes back to it as the call's result, and nothing has changed.

    Attributes:
        code: stable name of the kind of error, by which records count it.
        text: what the model reads.
    """

    def __init__(self, code: str, text: str) -> None:
        """Name the kind and say what is wrong, where, and what is allowed."""
        super().__init__(text)
        self.code = code
        self.text = text


class EnvironmentDone(Exception):
    """The last period is closed; nothing can be opened or called any more."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool, told once for every provider."""

    name: str
    version: int
    effect_class: EffectClass
    description: str
    parameters: Mapping[str, Json]
    """JSON schema of the arguments, an object."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model sent it."""

    call_id: str
    """The provider's id, which need not be unique in a run."""
    name: str
    arguments: Mapping[str, Json] | str
    """The arguments, or the raw text where that was no JSON object."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the guard lets a call through."""

    allowed: bool = True
    reason: str = "allowed"
    policy_version: str = "none"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call: what the model reads, and what the record keeps."""

    text: str
    outcome: str
    """`ok`, or the stable name of the kind of error."""
    effect_class: EffectClass | None = None
    """None for an unknown tool."""
    tool_version: int | None = None
    resource_raw: str | None = None
    """What the call acts on, as the model named it."""
    resource: str | None = None
    """The same, resolved to the environment's own name; None where it did not resolve."""
    decision: Decision = Decision()
    committed: bool = False
    """Whether anything outside the conversation changed."""
    moved: Mapping[str, Json] = field(default_factory=dict)
    """What changed, for instance ``{"spent_usd": 1000.0}``."""
    goal_id: str = ""
    goal_version: int = 1
    """Version of the goal in force when the call was made."""
    goal_version_seen: int = 1
    """Highest version the agent could know of when it made the call."""

    @property
    def ok(self) -> bool:
        """Whether the call did what it says."""
        return self.outcome == "ok"


@dataclass(frozen=True, slots=True)
class DealtItem:
    """An item that reached the agent."""

    item_id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Revision:
    """An authorised change of the goal in force; nothing the agent reads can cause one."""

    actor: str
    reason: str
    prior_version: int
    new_version: int
    changes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Observation:
    """What an opened period shows the agent, with what the record keeps of it."""

    period: int
    text: str
    items: Sequence[DealtItem] = ()
    state: Mapping[str, Json] = field(default_factory=dict)
    """The environment's own facts of the period, as plain JSON (the firm's income and listing)."""
    revision: Revision | None = None
    """Set in the first period of a new goal version."""


class Environment(Protocol):
    """One seeded episode in periods; the harness opens a period and passes calls until it is closed."""

    @property
    def name(self) -> str:
        """Name under which scores register."""

    @property
    def version(self) -> str:
        """Version of the environment's rules; records of another one are not mixed."""

    @property
    def system_prompt(self) -> str:
        """The system prompt of the whole run."""

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools of the whole run, in a fixed order."""

    @property
    def period(self) -> int:
        """The period opened last; before the first `open`, the one before it."""

    @property
    def closed(self) -> bool:
        """Whether the current period is closed (also before the first)."""

    @property
    def done(self) -> bool:
        """Whether the last period is closed."""

    def open(self) -> Observation:
        """Open the next period.

        Raises:
            EnvironmentDone: after the last one.
            RuntimeError: while the current one is open.
        """

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call; errors that the model may mend come back as a result with their code.

        A call while the period is closed is refused in the same way.
        """

    def force_close(self) -> str:
        """Close the current period on the harness's behalf, and return the notice that the agent reads."""

    def snapshot(self) -> Mapping[str, Json]:
        """Return the books as plain JSON: enough to score the period just closed, and to go on from it."""
