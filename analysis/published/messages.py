"""Owns the one form of a published conversation: whatever SDK, version or conversion its messages come from.

Objects and dictionaries of both providers, single blocks and lists of them, results as texts or as blocks become
messages of `experiments.chat`, in the order in which the model saw them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.published.inert import CheckpointError, Inert
from apex_env.protocol import Json, ToolCall
from experiments.chat import Message
from experiments.fields import shown

MAX_ARGUMENT_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Conversation:
    """A published conversation in one form."""

    messages: tuple[Message, ...]
    """Ids of calls are those of the file, which need not be unique."""
    system_prompts: tuple[str, ...]
    """Every system message, each text once; Anthropic's are none of the messages."""
    forms: tuple[str, ...]
    """Names of the forms met with, in order of their names."""


def normalise(raw: Sequence[Any]) -> Conversation:
    """Return the messages of a checkpoint in one form.

    Raises:
        CheckpointError: naming the message that has none of the known forms.
    """
    messages: list[Message] = []
    prompts: dict[str, None] = {}
    forms: set[str] = set()
    for place, entry in enumerate(raw):
        try:
            form, fields = ("dict", entry) if type(entry) is dict else _object(entry)
            forms.add(form)
            if fields.get("role") == "system":
                prompts[_text_of(fields.get("content"))] = None
            else:
                messages.extend(_messages(fields, forms))
        except _UnknownForm as unknown:
            raise CheckpointError("misshapen", f"message {place}: {unknown}") from None
    return Conversation(tuple(messages), tuple(prompts), tuple(sorted(forms)))


class _UnknownForm(Exception):
    """A message, block or call of a form that is not known."""


def _object(value: Any) -> tuple[str, Mapping[str, Any]]:
    if type(value) is Inert:
        return value.kind, value.fields
    raise _UnknownForm(f"{shown(value)}: a message or a block is expected")


def _messages(fields: Mapping[str, Any], forms: set[str]) -> Iterator[Message]:
    role, content = fields.get("role"), fields.get("content")
    if role == "assistant":
        text, calls = _said(content, forms)
        calls += tuple(_openai_call(call, forms) for call in _listed(fields.get("tool_calls")))
        yield Message("assistant", text, calls)
    elif role == "tool":
        yield Message("tool", _text_of(content), call_id=_id(fields.get("tool_call_id")))
    elif role == "user":
        yield from _heard(content, forms)
    else:
        raise _UnknownForm(f"role {shown(role)}: system, user, assistant or tool is expected")


def _said(content: Any, forms: set[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """Return text and calls of an assistant's content."""
    if content is None or type(content) is str:
        return content or "", ()
    texts, calls = list[str](), list[ToolCall]()
    for kind, block in _blocks(content, forms):
        if kind == "text":
            texts.append(_text_of(block.get("text")))
        elif kind == "tool_use":
            calls.append(ToolCall(_id(block.get("id")), _name(block.get("name")), _given(block.get("input"))))
        else:
            raise _UnknownForm(f"a block of type {shown(kind)} of an assistant: text or tool_use is expected")
    return "\n\n".join(texts), tuple(calls)


def _heard(content: Any, forms: set[str]) -> Iterator[Message]:
    """Yield results and texts of a user's content, in order."""
    if type(content) is str:
        yield Message("user", content)
        return
    for kind, block in _blocks(content, forms):
        if kind == "tool_result":
            yield Message("tool", _text_of(block.get("content")), call_id=_id(block.get("tool_use_id")))
        elif kind == "text":
            yield Message("user", _text_of(block.get("text")))
        else:
            raise _UnknownForm(f"a block of type {shown(kind)} of a user: text or tool_result is expected")


def _blocks(content: Any, forms: set[str]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for block in content if type(content) is list else [content]:
        form, fields = ("block_dict", block) if type(block) is dict else _object(block)
        forms.add(form if form == "block_dict" else f"block_{form}")
        yield fields.get("type"), fields


def _openai_call(call: Any, forms: set[str]) -> ToolCall:
    form, fields = ("tc_dict", call) if type(call) is dict else _object(call)
    forms.add(form if form == "tc_dict" else "tc_obj")
    function = fields.get("function")
    named = function if type(function) is dict else _object(function)[1]
    return ToolCall(_id(fields.get("id")), _name(named.get("name")), _given(named.get("arguments")))


def _given(arguments: Any) -> Mapping[str, Json] | str:
    """Return arguments as an object where they are one, else the text that was sent."""
    if type(arguments) is str:
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
        return parsed if type(parsed) is dict and _is_json(parsed) else arguments
    if type(arguments) is dict and _is_json(arguments):
        return arguments
    return "" if arguments is None else shown(arguments, 2000)


def _is_json(value: Any, depth: int = 0) -> bool:
    """Whether a value can stand in a record as it is: no NaN, no infinity, not without end."""
    if depth > MAX_ARGUMENT_DEPTH:
        return False
    if type(value) is dict:
        return all(type(key) is str and _is_json(entry, depth + 1) for key, entry in value.items())
    if type(value) is list:
        return all(_is_json(entry, depth + 1) for entry in value)
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (str, int, bool)


def _text_of(content: Any) -> str:
    """Return a text that stands as such, or as text blocks."""
    if content is None:
        return ""
    if type(content) is str:
        return content
    if type(content) is list:
        return "\n\n".join(_text_of((part if type(part) is dict else _object(part)[1]).get("text")) for part in content)
    raise _UnknownForm(f"{shown(content)}: a text is expected")


def _listed(value: Any) -> list[Any]:
    if value is None or type(value) is list:
        return value or []
    raise _UnknownForm(f"tool_calls is {shown(value)}: a list is expected")


def _id(value: Any) -> str:
    if value is None or type(value) is str:
        return value or ""
    raise _UnknownForm(f"the id of a call is {shown(value)}: a text is expected")


def _name(value: Any) -> str:
    if type(value) is not str:
        raise _UnknownForm(f"the name of a tool is {shown(value)}: a text is expected")
    return value
