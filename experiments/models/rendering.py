"""Owns what the forms of a conversation share across providers: texts, ids and arguments that every service takes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import is_
from typing import Any, Final, Generic, NoReturn, TypeVar

import orjson

from apex_env.protocol import Json, ToolCall
from experiments.chat import Message

T = TypeVar("T")

EMPTY: Final = "(empty)"
"""Stands for a blank user message or result: some services refuse one."""

NO_ANSWER: Final = "(no answer)"
"""Stands for an answer with neither text nor calls."""

MALFORMED: Final = "malformed_arguments"
"""Key under which arguments that are no JSON object go back, because some services take nothing but an object."""

CLOSED: Final = "(That is done.)"
"""Said for the model between the results of foreign calls and the next user message, where thinking has a manual
budget: Anthropic then takes the calls of a turn only if it began with thinking, and a turn of another model did not."""

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class IdForm:
    """What a service takes as the id of a call."""

    pattern: re.Pattern[str]
    """Matched whole."""
    made: str
    """Start of an id that is made up, as the pattern wants it."""
    n_hex: int
    """Hexadecimal digits after it."""


ANY_SERVICE: Final = IdForm(re.compile(r"[a-zA-Z0-9_-]{1,40}"), "call_", 24)
"""The strictest of OpenAI (40 characters), Anthropic (this alphabet) and their compatible servers."""

MISTRAL: Final = IdForm(re.compile(r"[a-zA-Z0-9]{9}"), "", 9)


def wire_id(call_id: str, form: IdForm = ANY_SERVICE) -> str:
    """Return the id of a call as a service takes it: itself where it fits, else one made from its hash.

    >>> wire_id("call_1"), wire_id("q1 t2/c3"), wire_id("call_1", MISTRAL)
    ('call_1', 'call_cf120981559a15605420a3a6', '74196fe72')
    """
    if form.pattern.fullmatch(call_id):
        return call_id
    return form.made + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[: form.n_hex]


def wire_name(name: str) -> str:
    """Return the name of a called tool as every service takes it; a model can call a tool that there is not.

    >>> wire_name("buy_stock"), wire_name("buy stock!"), wire_name("")
    ('buy_stock', 'buy_stock_', 'unnamed')
    """
    return _NOT_IN_NAMES.sub("_", name)[:64] or "unnamed"


def scrubbed(text: str) -> str:
    """Return a text with lone surrogates, which have no form in UTF-8, as replacement characters."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def wire_text(text: str, *, blank: str = EMPTY) -> str:
    """Return a text as it can be sent, with ``blank`` in place of nothing but white space."""
    return scrubbed(text) if text.strip() else blank


def read_arguments(text: str) -> Mapping[str, Json] | str:
    """Return the arguments in a text, or the text itself where it is no JSON object of finite numbers.

    >>> read_arguments('{"amount": 5}'), read_arguments('{"amount": NaN}'), read_arguments("[]")
    ({'amount': 5}, '{"amount": NaN}', '[]')
    """
    try:
        value = json.loads(text, parse_constant=_not_json, parse_float=_finite)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def checked_arguments(value: Json) -> Mapping[str, Json] | str:
    """Return arguments that came as an object, or their text where they are none of finite numbers."""
    return read_arguments(value if isinstance(value, str) else json.dumps(value))


def arguments_object(arguments: Mapping[str, Json] | str) -> dict[str, Json]:
    """Return arguments as an object that can be sent."""
    if isinstance(arguments, str):
        return {MALFORMED: scrubbed(arguments)}
    return dict(sendable(dict(arguments)))


def arguments_text(arguments: Mapping[str, Json] | str) -> str:
    """Return arguments as the text of an object that can be sent.

    >>> arguments_text({"stock": "XOM", "amount": 5.0}), arguments_text("buy XOM")
    ('{"stock": "XOM", "amount": 5.0}', '{"malformed_arguments": "buy XOM"}')
    """
    given = {MALFORMED: arguments} if isinstance(arguments, str) else arguments
    return scrubbed(json.dumps(given, ensure_ascii=False))


def sendable(value: Json) -> Json:
    """Return a JSON value with its texts scrubbed."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(scrubbed(text))


def serialised(body: Json) -> bytes:
    """Return a request as JSON in UTF-8: equal values give equal bytes."""
    try:
        return orjson.dumps(body)
    except TypeError:
        # Integers beyond 64 bits, which a model can send and the standard library can write.
        return json.dumps(body, separators=(",", ":")).encode("ascii")


class Growing(Generic[T]):
    """The rendering of a conversation that grows: what was rendered of its complete exchanges is kept.

    Every turn sends the whole conversation, of which only the last exchange is new. Values are shared between requests,
    so nobody may change them. A conversation that does not begin with the same objects is rendered anew: equal ones can
    differ on the wire, as 1, 1.0 and True do.
    """

    def __init__(self, render: Callable[[Sequence[Message]], Iterable[T]]) -> None:
        """Take a pure function that renders exchange by exchange, whatever comes before or after."""
        self._render = render
        self._seen: list[Message] = []
        self._rendered: list[T] = []

    def __call__(self, messages: Sequence[Message]) -> list[T]:
        """Return what all messages give."""
        if not self._begins(messages):
            self._seen, self._rendered = [], []
        known = len(self._seen)
        places = range(len(messages) - 1, known, -1)
        last = next((place for place in places if messages[place].role == "assistant"), known)
        self._rendered.extend(self._render(messages[known:last]))
        self._seen.extend(messages[known:last])
        return [*self._rendered, *self._render(messages[last:])]

    def _begins(self, messages: Sequence[Message]) -> bool:
        """Whether a conversation begins with the exchanges seen, the last of them whole."""
        known = len(self._seen)
        whole = all(message.role == "assistant" for message in messages[known : known + 1])
        return len(messages) >= known and whole and all(map(is_, self._seen, messages))


def exchanges(messages: Sequence[Message]) -> Iterator[tuple[Message | None, list[Message]]]:
    """Cut a conversation into answers, each with everything that was said to the model after it.

    The first answer is None where the conversation begins with the user.
    """
    answer: Message | None = None
    said: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            said.append(message)
            continue
        if answer is not None or said:
            yield answer, said
        answer, said = message, []
    if answer is not None or said:
        yield answer, said


def native_of(message: Message, provider: str, model: str) -> Any:
    """Return a message's form at a provider if it is of the same provider and model, else None."""
    native = message.native
    return native.data if native is not None and (native.provider, native.model) == (provider, model) else None


def joined(messages: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return user messages that stand one after the other as one: some services take no two of one role."""
    return {**messages[0], "content": "\n\n".join(message["content"] for message in messages)}


def calls_of(pairs: Iterable[tuple[str, str, Mapping[str, Json] | str]]) -> tuple[ToolCall, ...]:
    """Return the calls of an answer from id, name and arguments."""
    return tuple(ToolCall(call_id, name, arguments) for call_id, name, arguments in pairs)


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is beyond the range of numbers")
    return value


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
