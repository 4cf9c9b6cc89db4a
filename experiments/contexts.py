"""Owns what a model's context holds, and whether a history fits."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.chat import Message
from experiments.models import number
from experiments.models.pricing import price_table
from experiments.run_spec import ModelConfig
from experiments.tokens import COUNTER, count_messages, count_text


def context_tokens(config: ModelConfig) -> int | None:
    """Return how many tokens of input a model takes: as configured, else from the table of prices, else None.

    Raises:
        InputError: if the configured value is no number.

    >>> context_tokens(ModelConfig("mine", "openai", "gpt-4o-2024-11-20"))
    128000
    >>> context_tokens(ModelConfig("mine", "openai", "gpt-4o-2024-11-20", service={"context_tokens": 8000}))
    8000
    """
    if config.service.get("context_tokens") is not None:
        return int(number(config, config.service, "context_tokens", default=0))
    if config.adapter in ("scripted", "python", "recorded"):
        return None
    for name in (config.model, config.model.rpartition("/")[2]):
        entry = price_table().get(name)
        if isinstance(entry, dict) and isinstance(entry.get("max_input_tokens"), int):
            return int(entry["max_input_tokens"])
    return None


def misfit(config: ModelConfig, system_prompt: str, history: Sequence[Message]) -> str:
    """Return why a model cannot take a history, with both numbers; empty where it can, or its context is unknown."""
    limit = context_tokens(config)
    if limit is None:
        return ""
    n = count_text(system_prompt) + count_messages(history)
    if n <= limit:
        return ""
    return (
        f"the history shown has about {n:,} tokens ({COUNTER}), and {config.name} takes {limit:,}; "
        "service.context_tokens names another size"
    )
