"""Owns estimates: how many turns and tokens, how much money and time quarters of play take, and on what that rests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from experiments.chat import Usage
from experiments.glance import Glance, added
from experiments.models.pricing import Price, cost_usd

BYTES_PER_TOKEN: Final = 4
"""Of English text and JSON, where no provider has counted."""

PAPER_QUARTERS: Final = (2, 4, 8, 16, 32, 64)
PAPER_TOKENS: Final[Mapping[str, tuple[int, ...]]] = {
    "gpt-4o": (2626, 4660, 8867, 17898, 39432, 92197),
    "gpt-4o-mini": (2521, 4219, 7532, 14785, 30485, 69583),
    "claude-3-5-sonnet": (3241, 5440, 10034, 19032, 39171, 86189),
    "claude-3-5-haiku": (3344, 5874, 11417, 21931, 47217, 115340),
}
"""Tokens of an instrumental phase of so many quarters by model (arXiv 2505.02709, its table of phase lengths)."""
PAPER_MEAN: Final = (2933, 5048, 9457, 18412, 39076, 90827)

PAPER_TURNS: Final = 4.8
"""Turns a quarter, mean of the paper's four models in its published runs (3.6 to 5.9)."""
PAPER_OUTPUT_TOKENS: Final = 165
"""Output of a turn in the same runs, at four bytes a token (125 to 200)."""
SECONDS_PER_TURN: Final = 5.0
"""Assumed where nothing is measured."""
EMBEDDED_TURNS: Final = 2.0
EMBEDDED_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class Basis:
    """What an estimate of one model rests on."""

    told: str
    """Where it is from, in words."""
    n_turns_per_quarter: float
    s_per_turn: float
    first_tokens: float = 0.0
    """Of the first request of a run: system prompt, tools, first briefing; 0 where no tokens are counted."""
    growth: tuple[tuple[float, float], ...] = ((0.0, 0.0), (1.0, 0.0))
    """Quarters of conversation, and the tokens that it has then; linear between and beyond."""
    output_tokens: float = 0.0
    """Of one turn."""
    cached_frac: float | None = None
    """Share of all input that was read from a cache, where measured."""
    written_frac: float | None = None
    """Share of all input that was billed as written to one, where measured."""


@dataclass(frozen=True, slots=True)
class Takes:
    """What quarters of play take."""

    n_quarters: int = 0
    n_turns: int = 0
    """Questions of interviews included."""
    usage: Usage = Usage()
    """Tokens with prompt caching; its cost is not used."""
    cost_usd: float | None = 0.0
    """None where the price is unknown."""
    uncached_usd: float | None = 0.0
    """Without any prompt caching."""
    model_s: float = 0.0
    """Time in which the model is waited for, one turn after the other."""

    def __add__(self, other: Takes) -> Takes:
        """Add two; a sum with an unknown cost is unknown."""
        return Takes(
            self.n_quarters + other.n_quarters,
            self.n_turns + other.n_turns,
            added(self.usage, other.usage),
            _sum(self.cost_usd, other.cost_usd),
            _sum(self.uncached_usd, other.uncached_usd),
            self.model_s + other.model_s,
        )


@lru_cache(maxsize=10_000)
def takes(basis: Basis, price: Price | None, *, start: int, n_quarters: int, n_questions: int = 0) -> Takes:
    """Return what so many quarters take.

    Every request sends the whole conversation so far. With prompt caching, what the request before it sent is read from
    the cache, and the rest is written to it; the first request of a run finds nothing there.

    Args:
        basis: what the estimate rests on.
        price: of the model, None where it is unknown.
        start: quarters that the conversation has before.
        n_quarters: quarters to play.
        n_questions: questions of interviews, asked in a copy of the conversation; all count as if asked at the end.
    """
    n_turns = round(n_quarters * basis.n_turns_per_quarter)
    total, cost, uncached = Usage(), 0.0, 0.0
    before = 0
    for turn in range(n_turns + n_questions):
        quarters = min(n_quarters, turn / basis.n_turns_per_quarter)
        context = round(basis.first_tokens + _growth(basis.growth, start + quarters))
        usage = _usage(basis, price, context=context, before=before)
        total = added(total, usage)
        before = context
        if price is not None:
            cost += cost_usd(usage, price)
            uncached += cost_usd(Usage(input_tokens=context, output_tokens=usage.output_tokens), price)
    known = price is not None
    return Takes(
        n_quarters,
        n_turns + n_questions,
        total,
        cost if known else None,
        uncached if known else None,
        (n_turns + n_questions) * basis.s_per_turn,
    )


def measured(glances: Iterable[Glance]) -> Basis | None:
    """Return a basis measured on records of one model, or None where they hold no closed quarter and counted tokens."""
    counted = [glance for glance in glances if glance.n_closed and glance.usage.context_tokens]
    if not counted:
        return None
    n_quarters = sum(glance.n_closed for glance in counted)
    n_turns = sum(glance.n_model_turns for glance in counted)
    per_quarter = n_turns / n_quarters
    grown = sum(glance.contexts.last_tokens - (glance.contexts.first_tokens or 0) for glance in counted)
    length = sum(_position(glance, per_quarter) for glance in counted)
    slope = max(0.0, grown / length) if length else 0.0
    firsts = [glance.contexts.first_tokens or 0 for glance in counted if not glance.is_branched]
    first = sum(firsts) / len(firsts) if firsts else prompt_tokens(counted[0].header)
    n_asked = sum(glance.spent.n_turns for glance in counted)
    context = sum(glance.usage.context_tokens for glance in counted)
    cached = sum(glance.usage.cached_tokens for glance in counted) / context
    written = sum(glance.usage.cache_write_tokens for glance in counted) / context
    return Basis(
        told=f"measured on {len(counted)} records of this model with {n_quarters} quarters; {cached:.0%} of their "
        "input was read from a cache",
        n_turns_per_quarter=per_quarter,
        s_per_turn=sum(glance.latency_s for glance in counted) / n_turns,
        first_tokens=first,
        growth=((0.0, 0.0), (1.0, slope)),
        output_tokens=sum(glance.usage.output_tokens for glance in counted) / n_asked,
        cached_frac=cached,
        written_frac=written,
    )


def from_paper(model: str, first_tokens: float) -> Basis:
    """Return a basis from the paper's table of phase lengths, for a model that nothing was measured on.

    Args:
        model: the provider's id; the table's own models have rows of their own.
        first_tokens: system prompt and tools, which the table's intercept is exchanged for.
    """
    names = [name for name in PAPER_TOKENS if model.rpartition("/")[2].startswith(name)]
    name = max(names, key=len, default="")
    tokens = PAPER_TOKENS.get(name, PAPER_MEAN)
    intercept = 2 * tokens[0] - tokens[1]
    return Basis(
        told=f"the paper's table of tokens by phase length ({name or 'mean of its four models'}), {PAPER_TURNS} turns "
        f"a quarter and {PAPER_OUTPUT_TOKENS} output tokens a turn as in its published runs (models that reason write "
        f"more), {SECONDS_PER_TURN:g} s a turn assumed",
        n_turns_per_quarter=PAPER_TURNS,
        s_per_turn=SECONDS_PER_TURN,
        first_tokens=first_tokens,
        growth=((0.0, 0.0), *((float(n), float(t - intercept)) for n, t in zip(PAPER_QUARTERS, tokens, strict=True))),
        output_tokens=PAPER_OUTPUT_TOKENS,
    )


def embedded(glances: Iterable[Glance]) -> Basis:
    """Return the basis of an agent in this process, which takes no tokens and costs nothing."""
    played = [glance for glance in glances if glance.n_closed]
    n_turns = sum(glance.n_model_turns for glance in played)
    if not n_turns:
        return Basis("an agent in this process: no tokens, no cost", EMBEDDED_TURNS, EMBEDDED_SECONDS)
    n_quarters = sum(glance.n_closed for glance in played)
    return Basis(
        f"an agent in this process: no tokens, no cost; turns measured on {len(played)} records",
        n_turns / n_quarters,
        max(EMBEDDED_SECONDS, sum(glance.latency_s for glance in played) / n_turns),
    )


def prompt_tokens(header: Mapping[str, Any]) -> float:
    """Return about how many tokens system prompt and tools of a record take."""
    return (len(header["system_prompt"]) + len(str(header["tools"]))) / BYTES_PER_TOKEN


def _position(glance: Glance, n_turns_per_quarter: float) -> float:
    """Return the quarters between a record's first and newest request."""

    def quarters(at: float) -> float:
        return int(at) + (at - int(at)) * 1000 / n_turns_per_quarter

    return quarters(glance.contexts.last_at) - quarters(glance.contexts.first_at)


def _growth(points: Sequence[tuple[float, float]], at: float) -> float:
    """Interpolate between points in rising order, and go on beyond the last two."""
    place = next((i for i, (x, _) in enumerate(points[1:-1], 1) if at <= x), len(points) - 1)
    (x0, y0), (x1, y1) = points[place - 1], points[place]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def _usage(basis: Basis, price: Price | None, *, context: int, before: int) -> Usage:
    """Return the tokens of a request after one of ``before`` tokens.

    Where nothing is measured, that one is read from the cache, and the rest is written to it where writing has a price.
    """
    cached = min(context, before if basis.cached_frac is None else round(context * basis.cached_frac))
    fresh = context - cached
    if basis.written_frac is not None:
        written = min(fresh, round(context * basis.written_frac))
    else:
        written = fresh if price is not None and price.cache_write_usd is not None else 0
    return Usage(fresh - written, cached, written, round(basis.output_tokens))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
