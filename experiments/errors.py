"""Owns the error model of the harness: what ends a run, what stops a sweep, and what is wrong with input.

Three kinds of failure are kept apart. What the model can mend goes back to it as the result of its call
(`apex_env.protocol.ToolError`) and is no failure of the harness. What the world does to a run ends that run with a
named outcome (`RunEnded`): it is data, never behaviour, and never a crash of the sweep. What the user got wrong is
refused before anything is written (`InputError`). Everything else is a bug and travels up.
"""

from __future__ import annotations

from typing import Final, Literal

Outcome = Literal[
    "completed",
    "stalled",
    "context_limit",
    "refused",
    "provider_error",
    "agent_error",
    "cancelled",
]
"""Why a run ended; only `completed` is scored in the primary table."""

PARTIAL: Final[tuple[Outcome, ...]] = ("stalled", "context_limit", "refused")
"""Ended by the agent's own doing or limits: the primary table gives bounds, a second column the partial window."""

NEVER_SCORED: Final[tuple[Outcome, ...]] = ("provider_error", "agent_error", "cancelled")
"""Ended by the world: resumable, and no score is ever made of them."""


class RunEnded(Exception):
    """A run cannot go on; the record says why and keeps everything up to here."""

    outcome: Outcome = "provider_error"

    def __init__(self, reason: str) -> None:
        """Say why, in words that hold no secret."""
        super().__init__(reason)
        self.reason = reason


class ProviderError(RunEnded):
    """The service failed for good: retries are used up, or the request can never be accepted."""


class AgentError(RunEnded):
    """A user's own agent raised, answered nonsense or never answered."""

    outcome = "agent_error"


class ContextLimit(RunEnded):
    """The conversation is longer than the model takes."""

    outcome = "context_limit"


class Refused(RunEnded):
    """The provider or the model refused outright to go on."""

    outcome = "refused"


class Cancelled(RunEnded):
    """The user, or a limit of the sweep, ended the run; running it again goes on from here."""

    outcome = "cancelled"


class SweepStop(Exception):
    """Nothing of the sweep can succeed, a wrong key for instance; running turns finish and the sweep ends."""


class InputError(ValueError):
    """The user asked for something that is not allowed; nothing has been written."""


class RecordError(InputError):
    """A record on disk is not what it should be; the text names file and line."""


class Tampered(RecordError):
    """A record disagrees with itself: replaying its calls gives other results or books."""


class StaleContract(RecordError):
    """A run was made under another version of its goal contract, so it is not gone on with under this one."""


class RunLocked(RecordError):
    """Another process writes this run."""
