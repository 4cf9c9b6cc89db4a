"""Owns what a checkpoint may consist of: plain values, five named classes that become inert, and bounds on both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_BYTES: Final = 16 * 2**20
"""Size of a file; the largest of those looked at has 0.7 MB."""
MAX_STEPS: Final = 1_000_000
"""Opcodes of a pickle; those looked at have up to 41,000. It bounds the memory that reading takes."""
MAX_DEPTH: Final = 64
"""Containers inside each other; those looked at go 9 deep."""
MAX_VALUES: Final = 1_000_000
"""Values of a checkpoint, those counted again that it refers to more than once."""
MAX_CHARACTERS: Final = 64 * 2**20
"""Characters of all its texts, counted in the same way."""
MAX_INTEGER_BYTES: Final = 16
CLASSES: Final = frozenset(
    {
        ("anthropic.types.text_block", "TextBlock"),
        ("anthropic.types.tool_use_block", "ToolUseBlock"),
        ("openai.types.chat.chat_completion_message", "ChatCompletionMessage"),
        ("openai.types.chat.chat_completion_message_tool_call", "ChatCompletionMessageToolCall"),
        ("openai.types.chat.chat_completion_message_tool_call", "Function"),
    }
)
"""Module and name of every class that a checkpoint may name."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read.

    Attributes:
        code: stable name of the reason: `refused` (it asks for more than plain data), `truncated`, `damaged`,
            `too_large`, or `misshapen` (plain data, but not those of a checkpoint).
    """

    def __init__(self, code: str, text: str) -> None:
        """Name the reason, and say where and what is allowed."""
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class ClassName:
    """A class as a pickle names it: two words, never the class."""

    module: str
    name: str


@dataclass(slots=True)
class Inert:
    """What stands for an object: the name of its class and its state."""

    kind: str
    state: Mapping[str, Any] | None = None

    @property
    def fields(self) -> Mapping[str, Any]:
        """The object's fields, without the bookkeeping of pydantic around them."""
        state = self.state or {}
        inner = state.get("__dict__")
        return inner if isinstance(inner, dict) else state


def resolve(module: Any, name: Any) -> ClassName:
    """Return the name of a class that may be named.

    Raises:
        CheckpointError: for every other.
    """
    if type(module) is not str or type(name) is not str:
        raise CheckpointError("damaged", "the name of a class is no text")
    if (module, name) not in CLASSES:
        allowed = ", ".join(sorted(allowed for _, allowed in CLASSES))
        raise CheckpointError("refused", f"{module[:100]}.{name[:100]} is not allowed: only {allowed} of the two SDKs")
    return ClassName(module, name)


def check_extent(value: Any) -> None:
    """Refuse values that are small as a file, but huge or endless for whoever walks through them.

    Raises:
        CheckpointError: beyond a bound.
    """
    n_values = n_characters = 0
    waiting = [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        if type(value) is Inert:
            value = value.state
        children: Collection[Any] = (value,)
        if type(value) is dict:
            n_characters += sum(map(len, value))
            children = value.values()
        elif type(value) in (list, tuple):
            children = value
        n_values += len(children)
        for child in children:
            kind = type(child)
            if kind is str:
                n_characters += len(child)
            elif kind in _CONTAINERS:
                waiting.append((child, depth + 1))
        if depth > MAX_DEPTH or n_values > MAX_VALUES or n_characters > MAX_CHARACTERS:
            told = f"more than {MAX_DEPTH} containers deep, {MAX_VALUES} values or {MAX_CHARACTERS} characters"
            raise CheckpointError("too_large", told)


_CONTAINERS: Final = (dict, list, tuple, Inert)
