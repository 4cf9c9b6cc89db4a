"""Owns the registry of what can answer in a run: one adapter a module, imported when a model asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from experiments.chat import Model
from experiments.errors import InputError
from experiments.hints import nearest
from experiments.run_spec import ModelConfig

ADAPTERS: Final[Mapping[str, str]] = {
    "scripted": "experiments.models.scripted",
    "python": "experiments.models.python_agent",
    "recorded": "experiments.models.recorded",
    "openai": "experiments.models.openai_adapter",
    "anthropic": "experiments.models.anthropic_adapter",
    "litellm": "experiments.models.litellm_adapter",
}
"""Module of each adapter; it offers ``build(config: ModelConfig) -> Model``.

One whose answers cost money offers ``price(config: ModelConfig) -> Price | None`` as well.
"""


def build_model(config: ModelConfig) -> Model:
    """Return what answers for a model, new for every call: one a run.

    An adapter that shares clients or limits between runs does so in its module.

    Raises:
        InputError: for an unknown adapter, or what the adapter says is wrong with the configuration.
    """
    model: Model = adapter_of(config).build(config)
    return model


def adapter_of(config: ModelConfig) -> Any:
    """Return the module of a model's adapter.

    Raises:
        InputError: for an unknown adapter.
    """
    if config.adapter not in ADAPTERS:
        raise InputError(not_known(f"adapter of model {config.name!r}", config.adapter, ADAPTERS))
    return import_module(ADAPTERS[config.adapter])


def not_known(what: str, value: object, allowed: Iterable[str]) -> str:
    """Return the message for a name that is not allowed, with the nearest one that is.

    >>> not_known("adapter", "scriptd", ["scripted", "python"])
    "adapter 'scriptd' is not known, did you mean 'scripted'?; allowed: scripted, python"
    """
    names = list(allowed)
    return f"{what} {value!r} is not known{nearest(str(value), names)}; allowed: {', '.join(names) or 'none'}"


def check_names(config: ModelConfig, *, params: Iterable[str] = (), service: Iterable[str] = ()) -> None:
    """Refuse parameters and service fields that an adapter does not know; null ones count as not given.

    Raises:
        InputError: naming the field, what is allowed and the nearest match.
    """
    for group, given, allowed in (("params", config.params, params), ("service", config.service, service)):
        for name, value in given.items():
            if value is not None and name not in allowed:
                raise InputError(not_known(f"model {config.name!r}: {group} field", name, allowed))


def number(config: ModelConfig, group: Mapping[str, Any], name: str, *, default: float) -> float:
    """Return a numeric field of a model's configuration, the default where it is absent or null.

    Raises:
        InputError: if it is no number.
    """
    value = group.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: a number")
    return value
