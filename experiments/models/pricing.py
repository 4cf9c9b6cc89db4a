"""Owns what a completion costs: prices from the configuration or from the table that ships with litellm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import orjson

from experiments.chat import Usage
from experiments.errors import InputError
from experiments.models import not_known
from experiments.run_spec import ModelConfig

PER: Final = 1_000_000
"""Prices are US dollars for so many tokens."""

PRICE_FIELDS: Final = ("input", "cached", "cache_write", "output")

TABLE: Final = "model_prices_and_context_window_backup.json"

_KEYS: Final = {
    "input_usd": "input_cost_per_token",
    "cached_usd": "cache_read_input_token_cost",
    "cache_write_usd": "cache_creation_input_token_cost",
    "output_usd": "output_cost_per_token",
    "reasoning_usd": "output_cost_per_reasoning_token",
}
_TIER: Final = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model, in US dollars for a million tokens."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    """Input read from a cache; as other input where None."""
    cache_write_usd: float | None = None
    """Input written to a cache; as other input where None."""
    reasoning_usd: float | None = None
    """Output that was reasoning; as other output where None."""
    above: tuple[tuple[int, Price], ...] = ()
    """Prices of a whole request with more input tokens than so many, in rising order."""


def cost_usd(usage: Usage, price: Price) -> float:
    """Return what a completion costs.

    >>> sonnet = Price(input_usd=3, output_usd=15, cached_usd=0.3, cache_write_usd=3.75)
    >>> round(cost_usd(Usage(input_tokens=3, cache_write_tokens=12_304, output_tokens=550), sonnet), 4)
    0.0544
    """
    for n_tokens, dearer in price.above:
        if usage.context_tokens > n_tokens:
            price = dearer
    cached_usd = price.input_usd if price.cached_usd is None else price.cached_usd
    write_usd = price.input_usd if price.cache_write_usd is None else price.cache_write_usd
    reasoning_usd = price.output_usd if price.reasoning_usd is None else price.reasoning_usd
    n_reasoning = min(usage.reasoning_tokens, usage.output_tokens)
    return (
        usage.input_tokens * price.input_usd
        + usage.cached_tokens * cached_usd
        + usage.cache_write_tokens * write_usd
        + (usage.output_tokens - n_reasoning) * price.output_usd
        + n_reasoning * reasoning_usd
    ) / PER


def priced(usage: Usage, price: Price | None) -> Usage:
    """Return the usage with its cost; a cost that the provider itself reports stays, an unknown one is None."""
    if price is None or usage.cost_usd is not None:
        return usage
    return replace(usage, cost_usd=cost_usd(usage, price))


def price_from(config: ModelConfig) -> Price | None:
    """Return the price that a configuration gives, or None where it gives none.

    Raises:
        InputError: for an unknown field, a value that is no price, or input or output missing.
    """
    given = config.service.get("price")
    if given is None:
        return None
    place = f"model {config.name!r}: price"
    if not isinstance(given, Mapping):
        raise InputError(f"{place} {given!r} is not allowed: a mapping of {', '.join(PRICE_FIELDS)}")
    for name, value in given.items():
        if name not in PRICE_FIELDS:
            raise InputError(not_known(f"{place} field", name, PRICE_FIELDS))
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            raise InputError(f"{place}.{name} {value!r} is not allowed: US dollars for a million tokens")
    if all(value is None for value in given.values()):
        return None
    if given.get("input") is None or given.get("output") is None:
        raise InputError(f"{place} needs input and output")
    return Price(given["input"], given["output"], given.get("cached"), given.get("cache_write"))


def price_of(config: ModelConfig, names: Iterable[str]) -> Price | None:
    """Return the price of a model: as configured, else from the bundled table, else None.

    Args:
        config: the model.
        names: what the table may call it, the likeliest first.
    """
    configured = price_from(config)
    if configured is not None:
        return configured
    tier = config.params.get("service_tier")
    suffix = f"_{tier}" if tier in ("flex", "priority") else ""
    found = (price_in(price_table().get(name), suffix) for name in names)
    return next((price for price in found if price is not None), None)


def price_in(entry: Any, suffix: str = "") -> Price | None:
    """Return the price in an entry of the table, or None where it has none for a token of input and of output.

    Args:
        entry: the entry.
        suffix: end of the keys of another service tier.
    """
    base = _base(entry, "", suffix) if isinstance(entry, Mapping) else None
    if base is None:
        return None
    tiers = sorted(int(found[1]) for found in map(_TIER.fullmatch, entry) if found)
    above = ((n * 1000, _base(entry, f"_above_{n}k_tokens", suffix)) for n in tiers)
    return replace(base, above=tuple((n_tokens, price) for n_tokens, price in above if price is not None))


def _base(entry: Mapping[str, Any], tier: str, suffix: str) -> Price | None:
    found = {name: entry.get(f"{key}{tier}{suffix}") for name, key in _KEYS.items()}
    usd = {name: float(value * PER) for name, value in found.items() if isinstance(value, int | float)}
    if "input_usd" not in usd or "output_usd" not in usd:
        return None
    return Price(
        usd["input_usd"], usd["output_usd"], usd.get("cached_usd"), usd.get("cache_write_usd"), usd.get("reasoning_usd")
    )


@lru_cache(maxsize=1)
def price_table() -> Mapping[str, Any]:
    """Return the table of prices that ships with litellm, read without importing litellm; empty where there is none."""
    spec = find_spec("litellm")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = Path(folder) / TABLE
        if path.is_file():
            table: Mapping[str, Any] = orjson.loads(path.read_bytes())
            return table
    return {}
