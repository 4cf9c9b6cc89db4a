"""Owns the checks of values in decoded JSON: each returns the field with its type, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Misfit(Exception):
    """A value that is not what it should be; the text names field, value and what is allowed."""


def text_field(state: Mapping[str, Any], name: str) -> str:
    """Return a text that is not empty."""
    value = state.get(name)
    if type(value) is not str or not value:
        raise Misfit(f"{name} is {shown(value)}: a text is expected")
    return value


def whole_field(state: Mapping[str, Any], name: str, least: int) -> int:
    """Return an integer of ``least`` or more."""
    value = state.get(name)
    if type(value) is not int or value < least:
        raise Misfit(f"{name} is {shown(value)}: a whole number of {least} or more is expected")
    return value


def number_field(state: Mapping[str, Any], name: str) -> float:
    """Return a number as float."""
    value = state.get(name)
    if type(value) is not float and type(value) is not int:
        raise Misfit(f"{name} is {shown(value)}: a number is expected")
    return float(value)


def flag_field(state: Mapping[str, Any], name: str) -> bool:
    """Return true or false."""
    value = state.get(name)
    if type(value) is not bool:
        raise Misfit(f"{name} is {shown(value)}: true or false is expected")
    return value


def list_field(state: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list."""
    value = state.get(name)
    if type(value) is not list:
        raise Misfit(f"{name} is {shown(value)}: a list is expected")
    return value


def choice_field(state: Mapping[str, Any], name: str, allowed: Mapping[str, T]) -> T:
    """Return what the text of a field stands for."""
    value = state.get(name)
    if type(value) is not str or value not in allowed:
        raise Misfit(f"{name} is {shown(value)}: expected is one of {', '.join(allowed)}")
    return allowed[value]


def shown(value: object, limit: int = 80) -> str:
    """Return a value as text of bounded length."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."
