"""Faults in what the model says: broken arguments, halves of calls, odd ids, empty turns, refusals, lone surrogates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from tests.peers.faults import Fault
from tests.peers.neutral import Call, Reply, Stop, Thinking
from tests.peers.wire import arguments_text

BROKEN_ARGUMENTS: Mapping[str, str] = {
    "trailing junk": '{}""',
    "empty string": "",
    "null": "null",
    "string of a list": '"[]"',
    "string of a number": '"5"',
    "list": "[]",
    "number": "5",
    "missing brace": '{"stock": "XOM", "amount": 5000000',
    "two objects": '{"stock": "XOM"}{"amount": 1}',
    "single quotes": "{'stock': 'XOM', 'amount': 1}",
    "python literals": '{"stock": None, "amount": True}',
    "prose": "buy XOM for 5 million",
    "code fence": '```json\n{"stock": "XOM", "amount": 1}\n```',
    "control character": '{"stock": "XO\x01M", "amount": 1}',
}
"""Arguments that are no JSON object, by kind; the first five and the missing brace are the reported ones."""

ODD_AMOUNTS: Mapping[str, str] = {
    "grouped digits": '"5,000,000"',
    "dollar sign": '"$5000000"',
    "digits in a string": '"5000000"',
    "word": '"all"',
    "true": "true",
    "not a number": "NaN",
    "infinite": "1e999",
    "minus zero": "-0",
    "null": "null",
    "negative": "-5",
}
"""JSON texts for an amount, by kind. Some are no JSON by the standard, yet models send them."""

LONE_SURROGATE = "low \udcff, high \ud800, bell \x07, nul \x00"
"""Text that is valid as JSON escapes and has no UTF-8 form."""


def changed(name: str, change: Callable[[Reply], Reply]) -> Fault:
    """A fault that rewrites the brain's reply."""
    return Fault(name, "reply", change=change)


def instead(name: str, reply: Reply) -> Fault:
    """A fault that puts another reply in place of the brain's."""
    return Fault(name, "reply", change=lambda _: reply)


def raw_arguments(text: str, *, call: int = 0, name: str = "arguments") -> Fault:
    """Send this text as the arguments of one call, which is added if the reply has none there.

    Args:
        text: Anything; `BROKEN_ARGUMENTS` has the kinds that have been seen.
        call: Which call of the reply, from 0.
        name: Counted under this name.
    """

    def change(reply: Reply) -> Reply:
        calls = list(reply.calls) or [Call("buy_stock")]
        at = min(call, len(calls) - 1)
        calls[at] = replace(calls[at], arguments=text)
        return replace(reply, calls=tuple(calls))

    return changed(name, change)


def odd_amount(json_text: str, stock: str = "XOM") -> Fault:
    """One `buy_stock` call whose amount is this JSON text."""
    call = Call("buy_stock", f'{{"stock": "{stock}", "amount": {json_text}}}')
    return changed("amount", lambda reply: replace(reply, calls=(call,)))


def extra_arguments(**more: Any) -> Fault:
    """Add keys to the arguments of every call."""

    def change(reply: Reply) -> Reply:
        calls = (
            c if isinstance(c.arguments, str) else replace(c, arguments={**c.arguments, **more}) for c in reply.calls
        )
        return replace(reply, calls=tuple(calls))

    return changed("extra-arguments", change)


def stocks_as_string() -> Fault:
    """One `check_emissions_by_stock` call whose list is a JSON string."""
    call = Call("check_emissions_by_stock", {"stocks": '["XOM", "BP"]'})
    return changed("list-as-string", lambda reply: replace(reply, calls=(call,)))


def unknown_tool(name: str = "short_stock") -> Fault:
    """Add a call of a tool that was not offered, before the others."""
    return changed("unknown-tool", lambda reply: replace(reply, calls=(Call(name, {"stock": "XOM"}), *reply.calls)))


def parallel(*calls: Call) -> Fault:
    """These calls in one turn."""
    return changed("parallel", lambda reply: replace(reply, calls=calls))


def cut_call(label: Stop = "length", keep_frac: float = 0.5) -> Fault:
    """End in the middle of the last call's arguments; `label="calls"` says all is well.

    Over Anthropic's protocol, where arguments are an object, an unstreamed half call has an empty one.
    """

    def change(reply: Reply) -> Reply:
        calls = list(reply.calls) or [Call("buy_stock", {"stock": "XOM", "amount": 5_000_000})]
        text = arguments_text(calls[-1].arguments)
        calls[-1] = replace(calls[-1], arguments=text[: max(1, int(len(text) * keep_frac))])
        return replace(reply, calls=tuple(calls), stop=label)

    return changed("cut-call", change)


def cut_text(keep_frac: float = 0.5) -> Fault:
    """End in the middle of the text, without a call, for want of output tokens."""

    def change(reply: Reply) -> Reply:
        text = reply.text or "I will"
        return replace(reply, text=text[: max(1, int(len(text) * keep_frac))], calls=(), stop="length")

    return changed("cut-text", change)


def call_ids(kind: Literal["duplicate", "empty", "same"], *, id: str = "call_same") -> Fault:
    """Odd call ids: all of a turn equal, all empty, or the same one each turn.

    Args:
        kind: `duplicate` gives all calls of the reply one id (and doubles a single call), `empty` gives them none,
            `same` gives the first call the id `id` in every turn that is struck.
        id: For `duplicate` and `same`.
    """

    def change(reply: Reply) -> Reply:
        calls = list(reply.calls) or [Call("view_portfolio")]
        if kind == "duplicate":
            calls = calls * 2 if len(calls) == 1 else calls
            return replace(reply, calls=tuple(replace(c, id=id) for c in calls))
        if kind == "empty":
            return replace(reply, calls=tuple(replace(c, id="") for c in calls))
        return replace(reply, calls=(replace(calls[0], id=id), *calls[1:]))

    return changed(f"ids-{kind}", change)


def content(text: str | None, *, keep_calls: bool = False) -> Fault:
    """This text (None, empty or blank for an empty turn), with the reply's calls or without."""
    name = "content" if (text or "").strip() else "empty-content"
    return changed(name, lambda reply: Reply(text=text, calls=reply.calls if keep_calls else ()))


def refusal(text: str = "I can't help with that.") -> Fault:
    """The model declines."""
    return instead("refusal", Reply(refusal=text))


def budget_eaten(n_tokens: int = 4096) -> Fault:
    """All output tokens go into reasoning: nothing else comes, and the answer is incomplete."""
    return instead("budget", Reply(thinking=(Thinking("Still thinking."),), stop="length", reasoning_tokens=n_tokens))


def surrogates(text: str = LONE_SURROGATE) -> Fault:
    """Lone surrogates and control characters in the text and in a string argument of every call."""

    def change(reply: Reply) -> Reply:
        calls = (
            c if isinstance(c.arguments, str) else replace(c, arguments={**c.arguments, "note": text})
            for c in reply.calls
        )
        return replace(reply, text=f"{reply.text or ''} {text}", calls=tuple(calls))

    return changed("surrogates", change)
