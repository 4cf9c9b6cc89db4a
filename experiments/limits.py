"""Owns limits on spending: what a sweep and a run may take, and which limit is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from experiments.errors import InputError
from experiments.spending import Spent, usd

Scope = Literal["sweep", "run"]
SCOPES: Final = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be spent; None for no limit."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    """All input, read from a cache or not, and all output."""
    max_hours: float | None = None

    def reached(self, scope: Scope, spent: Spent, hours: float) -> str:
        """Return which limit is reached and what it was held against, or nothing.

        >>> Limits(max_tokens=1000).reached("run", Spent(3, 1200, None), hours=1.0)
        'limits.run.max_tokens 1,000 is reached: 1,200 tokens'
        >>> Limits(max_cost_usd=5).reached("sweep", Spent(3, 1200, 4.99), hours=1.0)
        ''
        """
        name = f"limits.{scope}"
        if self.max_cost_usd is not None:
            if spent.cost_usd is None:
                return f"{name}.max_cost_usd {usd(self.max_cost_usd)} cannot be kept: the cost of a turn is unknown"
            if spent.cost_usd >= self.max_cost_usd:
                return f"{name}.max_cost_usd {usd(self.max_cost_usd)} is reached: {usd(spent.cost_usd)}"
        if self.max_tokens is not None and spent.tokens >= self.max_tokens:
            return f"{name}.max_tokens {self.max_tokens:,} is reached: {spent.tokens:,} tokens"
        if self.max_hours is not None and hours >= self.max_hours:
            return f"{name}.max_hours {self.max_hours:g} is reached: {hours:.3g} hours"
        return ""

    @property
    def counts_spending(self) -> bool:
        """Whether tokens or cost are limited."""
        return self.max_cost_usd is not None or self.max_tokens is not None


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """The limits of a sweep and of each of its runs.

    The cost and tokens of a sweep are those of its experiment: every record below its folder counts, whoever wrote it
    and when. Its hours are those of one command. A run's cost, tokens and hours are those of its whole record, earlier
    segments included; an instrumental phase is a run of its own.
    """

    sweep: Limits = Limits()
    run: Limits = Limits()


LIMIT_NAMES: Final = tuple(spec.name for spec in fields(Limits))


def read_limits(data: Mapping[str, Any]) -> SweepLimits:
    """Return the limits of a configuration, checked.

    Raises:
        InputError: for a value that is not allowed.
    """
    return SweepLimits(**{scope: _limits(data[scope], f"limits.{scope}") for scope in SCOPES})


def _limits(data: Mapping[str, Any], place: str) -> Limits:
    for name, value in data.items():
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
        if not number or (name == "max_tokens" and value != int(value)):
            what = "a whole number of 1 or more" if name == "max_tokens" else "a number above 0"
            raise InputError(f"{place}.{name} {value!r} is not allowed: {what}, or null for no limit")
    return Limits(**data)
