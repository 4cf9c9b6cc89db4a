"""Owns what runs have spent: turns, tokens and cost, as values that add up."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.chat import Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """What turns have taken."""

    n_turns: int = 0
    tokens: int = 0
    """All input, read from a cache or not, and all output."""
    cost_usd: float | None = 0.0
    """None where the cost of one turn is unknown."""

    def __add__(self, other: Spent) -> Spent:
        """Add two; a sum with an unknown cost is unknown."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return Spent(
            self.n_turns + other.n_turns,
            self.tokens + other.tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


def spent_in(usage: Usage | None) -> Spent:
    """Return what one turn has taken; an embedded agent reports no usage and costs nothing.

    >>> spent_in(Usage(input_tokens=10, cached_tokens=80, output_tokens=5, cost_usd=0.25)) + spent_in(None)
    Spent(n_turns=2, tokens=95, cost_usd=0.25)
    """
    if usage is None:
        return Spent(1)
    return Spent(1, usage.context_tokens + usage.output_tokens, usage.cost_usd)


def usd(amount: float | None) -> str:
    """Return an amount for people.

    >>> usd(1234.5), usd(0.0042), usd(0.0), usd(None)
    ('$1,234.50', '$0.0042', '$0.00', 'unknown')
    """
    if amount is None:
        return "unknown"
    return f"${amount:,.4f}" if 0 < amount < 0.1 else f"${amount:,.2f}"
