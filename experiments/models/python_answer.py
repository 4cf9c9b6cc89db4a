"""Owns the check of what a user's own agent answers: it takes the form of the loop, or an error names what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Final, get_args

from apex_env.protocol import ToolCall
from experiments.chat import Attempt, Completion, Message, Native, Stop, Usage
from experiments.fields import shown
from experiments.models import not_known

ANSWERS: Final = "a text, a Message, a Completion, or a mapping with text, calls and usage"

_KEYS: Final = ("text", "calls", "usage")
_CALL_KEYS: Final = ("id", "name", "arguments")


class Nonsense(Exception):
    """An answer that is none; the text names value and place, and what is allowed."""


def completion_of(reply: Any) -> Completion:
    """Return an agent's answer in the form of the loop.

    Arguments become plain JSON of their own, so that nothing the agent keeps can change what was said. Those that JSON
    has no form for, such as NaN, go to the environment as raw text, which tells the agent so.

    Raises:
        Nonsense: if it is no answer.
    """
    if isinstance(reply, Completion):
        if reply.stop not in get_args(Stop):
            raise Nonsense(not_known("stop", reply.stop, get_args(Stop)))
        if not all(isinstance(attempt, Attempt) for attempt in reply.attempts):
            raise Nonsense(f"attempts is {shown(reply.attempts)}; Attempt values are expected")
        return replace(reply, message=_checked(reply.message), usage=_usage(reply.usage))
    if isinstance(reply, Message):
        return _wrapped(_checked(reply), None)
    if isinstance(reply, str):
        return _wrapped(Message("assistant", reply), None)
    if not isinstance(reply, Mapping):
        raise Nonsense(f"the answer is {shown(reply)}; expected is {ANSWERS}")
    for name in reply:
        if name not in _KEYS:
            raise Nonsense(not_known("key of the answer", name, _KEYS))
    text, calls = reply.get("text"), reply.get("calls")
    message = Message("assistant", "" if text is None else text, () if calls is None else _calls(calls))
    return _wrapped(_checked(message), _usage(reply.get("usage")))


def _wrapped(message: Message, usage: Usage | None) -> Completion:
    return Completion(message, "calls" if message.calls else "done", usage)


def _checked(message: Any) -> Message:
    """Return a message whose parts are what they should be."""
    if not isinstance(message, Message) or message.role != "assistant":
        raise Nonsense(f"the message is {shown(message)}; a Message of the assistant is expected")
    if not isinstance(message.text, str):
        raise Nonsense(f"text is {shown(message.text)}; a text is expected")
    if not isinstance(message.calls, Sequence) or isinstance(message.calls, str):
        raise Nonsense(f"calls is {shown(message.calls)}; a sequence of ToolCall is expected")
    calls = []
    for place, call in enumerate(message.calls):
        if not (isinstance(call, ToolCall) and isinstance(call.name, str) and isinstance(call.call_id, str)):
            raise Nonsense(f"calls[{place}] is {shown(call)}; a ToolCall with a name and arguments is expected")
        calls.append(replace(call, arguments=_arguments(call.arguments, f"calls[{place}].arguments")))
    native = message.native
    if native is not None:
        if not isinstance(native, Native):
            raise Nonsense(f"native is {shown(native)}; a Native is expected")
        native = Native(str(native.provider), str(native.model), _json(native.data, "native.data"))
    return Message("assistant", message.text, tuple(calls), native=native)


def _calls(calls: Any) -> tuple[ToolCall, ...]:
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise Nonsense(f"calls is {shown(calls)}; a list of mappings with name and arguments is expected")
    return tuple(_call(call, f"calls[{place}]") for place, call in enumerate(calls))


def _call(call: Any, place: str) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise Nonsense(f"{place} is {shown(call)}; a mapping with name and arguments is expected")
    for key in call:
        if key not in _CALL_KEYS:
            raise Nonsense(not_known(f"key of {place}", key, _CALL_KEYS))
    arguments, call_id = call.get("arguments"), call.get("id")
    return ToolCall("" if call_id is None else str(call_id), call["name"], {} if arguments is None else arguments)


def _arguments(arguments: Any, place: str) -> Mapping[str, Any] | str:
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        raise Nonsense(f"{place} is {shown(arguments)}; a mapping, or the raw text, is expected")
    plain: Mapping[str, Any] | str = _json(dict(arguments), place)
    return plain


def _json(value: Any, place: str) -> Any:
    """Return plain JSON of its own, or the raw text where it holds NaN or an infinity."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Nonsense(f"{place} is {shown(value)}, which is no JSON: {error}") from None
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return text
    return json.loads(text)


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    usage = asdict(usage) if isinstance(usage, Usage) else usage
    known = [spec.name for spec in fields(Usage)]
    if not isinstance(usage, Mapping):
        raise Nonsense(f"usage is {shown(usage)}; a mapping with some of {', '.join(known)} is expected")
    for name, value in usage.items():
        if name not in known:
            raise Nonsense(not_known("key of usage", name, known))
        is_cost = name == "cost_usd" and (value is None or type(value) is float)
        if not is_cost and type(value) is not int:
            raise Nonsense(f"usage.{name} is {shown(value)}; a number is expected")
        if value is not None and not 0 <= value < float("inf"):
            raise Nonsense(f"usage.{name} is {shown(value)}; a number of 0 or more is expected")
    return Usage(**usage)
