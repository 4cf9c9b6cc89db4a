"""Owns the parameters of a model's configuration: their names at the provider, and where they stand in a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from apex_env.protocol import Json
from experiments.errors import InputError
from experiments.run_spec import ModelConfig

EXTRA = "extra_body"
"""Parameter that holds whatever else goes into a request, under the provider's own names."""


def settings_of(config: ModelConfig, names: Mapping[str, str], *, reserved: Collection[str]) -> dict[str, Json]:
    """Return the part of a request that the configuration's parameters make.

    Args:
        config: the model.
        names: from a parameter to its name at the provider; a dot leads into an object.
        reserved: what a request holds anyway, which ``extra_body`` may not replace.

    Raises:
        InputError: if ``extra_body`` is no mapping, or holds what a request holds anyway.
    """
    settings: dict[str, Json] = {}
    for name, wire in names.items():
        value = config.params.get(name)
        if value is not None:
            *way, last = wire.split(".")
            place = settings
            for step in way:
                place = place.setdefault(step, {})
            place[last] = value
    return settings | _extra(config, {*reserved, *settings})


def fields_of(names: Mapping[str, str]) -> dict[str, str]:
    """Return the way back: from the provider's name of a parameter to the field of the configuration."""
    return {wire: f"params.{name}" for name, wire in names.items()}


def given(config: ModelConfig, name: str, allowed: Collection[Any]) -> Any:
    """Return a parameter that has to be one of a few values, None where it is not given.

    Raises:
        InputError: naming the value and what is allowed.
    """
    value = config.params.get(name)
    if value is not None and not any(value is one or (value == one and type(value) is type(one)) for one in allowed):
        shown = ", ".join(str(one) for one in allowed)
        raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: {shown}")
    return value


def _extra(config: ModelConfig, taken: Collection[str]) -> dict[str, Json]:
    extra = config.params.get(EXTRA)
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        raise InputError(f"model {config.name!r}: {EXTRA} {extra!r} is not allowed: a mapping")
    for name in extra:
        if name in taken:
            raise InputError(f"model {config.name!r}: {EXTRA} holds {name!r}, which the request holds already")
    return dict(extra)
