"""Checks that the two OpenAI protocols share, and the walk over unknown fields that all three use."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from tests.peers.errors import invalid
from tests.peers.neutral import Json

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names of tools, matched whole. Some services allow longer ones; the peer holds to what all of them take."""


def unknown_parameters(given: Collection[str], known: Collection[str], place: str = "") -> None:
    """Refuse parameters that the service does not have, in OpenAI's words."""
    for name in given:
        if name not in known:
            param = f"{place}.{name}" if place else name
            raise invalid(f"Unknown parameter: '{param}'.", param, "unknown_parameter")


def require(body: Mapping[str, Any], name: str, place: str = "") -> Any:
    """The value of a required parameter."""
    param = f"{place}.{name}" if place else name
    if name not in body:
        raise invalid(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
    return body[name]


def typed(value: Any, kind: type | tuple[type, ...], expected: str, place: str) -> Any:
    """The value, if it has the type; a bool is no number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        got = "null" if value is None else type(value).__name__
        raise invalid(f"Invalid type for '{place}': expected {expected}, but got {got} instead.", place, "invalid_type")
    return value


def one_of(value: Any, allowed: Collection[str], place: str) -> None:
    """Refuse a value outside an enumeration."""
    if value not in allowed:
        listed = ", ".join(f"'{each}'" for each in allowed)
        raise invalid(f"Invalid value: '{value}'. Supported values are: {listed}.", place, "invalid_value")


def non_empty_list(value: Any, place: str) -> list[Any]:
    """The value, if it is a list with elements."""
    items: list[Any] = typed(value, list, "an array", place)
    if not items:
        message = f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array"
        raise invalid(f"{message} instead.", place, "empty_array")
    return items


def tool_name(name: Any, place: str) -> None:
    """Refuse a name that does not match the pattern."""
    typed(name, str, "a string", place)
    if not NAME.fullmatch(name):
        message = f"Invalid '{place}': string does not match pattern. Expected a string that matches the pattern"
        raise invalid(f"{message} '^{NAME.pattern}$'.", place, "invalid_value")


def call_id(value: Any, place: str, longest: int) -> None:
    """Refuse an id that is no string, empty or too long."""
    typed(value, str, "a string", place)
    if not value:
        message = f"Invalid '{place}': empty string. Expected a string with minimum length 1, but got an empty string"
        raise invalid(f"{message} instead.", place, "empty_string")
    if len(value) > longest:
        message = f"Invalid '{place}': string too long. Expected a string with maximum length {longest}, but got a"
        raise invalid(f"{message} string with length {len(value)} instead.", place, "string_above_max_length")


def function_schema(name: str, parameters: Any, strict: bool | None, place: str) -> None:
    """Refuse a tool whose schema is no object schema, or not closed where it is declared strict."""
    if parameters is None:
        return
    typed(parameters, dict, "an object", place)
    kind = parameters.get("type", "object")
    context = f"Invalid schema for function '{name}'"
    if kind != "object":
        message = f"{context}: schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
        raise invalid(message, place, "invalid_function_parameters")
    if strict and parameters.get("additionalProperties") is not False:
        message = f"{context}: In context=(), 'additionalProperties' is required to be supplied and to be false."
        raise invalid(message, place, "invalid_function_parameters")
    missing = sorted(set(parameters.get("properties") or {}) - set(parameters.get("required") or []))
    if strict and missing:
        message = f"{context}: In context=(), 'required' is required to be supplied and to be an array including every"
        raise invalid(f"{message} key in properties. Missing '{missing[0]}'.", place, "invalid_function_parameters")


def needs_tools(body: Json) -> None:
    """Refuse settings about tools where there are none."""
    for name in ("parallel_tool_calls", "tool_choice"):
        if body.get(name) is not None and not body.get("tools"):
            raise invalid(f"'{name}' is only allowed when 'tools' are specified.", name)


def numbers(body: Json, limits: Mapping[str, tuple[float, float]]) -> None:
    """Refuse numeric settings outside their range."""
    for name, (low, high) in limits.items():
        value = body.get(name)
        if value is None:
            continue
        typed(value, (int, float), "a number", name)
        if not low <= value <= high:
            word = "below minimum" if value < low else "above maximum"
            bound = f">= {low:g}" if value < low else f"<= {high:g}"
            code = f"decimal_{word.replace(' ', '_')}_value"
            message = f"Invalid '{name}': decimal {word} value. Expected a value {bound}, but got {value} instead."
            raise invalid(message, name, code)
