"""Brains for tests: scripts that answer from the conversation alone, so that a repeated request gets the same reply."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tests.peers.neutral import Brain, Call, Reply, RequestView, SeenMessage


def says(text: str) -> Brain:
    """A brain that always gives the same text."""
    return lambda view: Reply(text=text)


def script(replies: Sequence[Reply]) -> Brain:
    """A brain that gives reply n to the conversation in which the assistant has spoken n times.

    Args:
        replies: Used again from the start when a conversation is longer.
    """

    def brain(view: RequestView) -> Reply:
        return replies[view.n_turns % len(replies)]

    return brain


def calls(*steps: tuple[str, dict[str, Any]]) -> Brain:
    """A brain that makes one call a turn, in order, and then says `done`."""

    def brain(view: RequestView) -> Reply:
        if view.n_turns >= len(steps):
            return Reply(text="done")
        name, arguments = steps[view.n_turns]
        return Reply(text=f"Step {view.n_turns}.", calls=(Call(name, arguments),))

    return brain


def echo(view: RequestView) -> Reply:
    """Repeats the newest user message."""
    last = view.last("user") or SeenMessage(role="user", parts=("(nothing)",))
    return Reply(text=last.text)


def load(spec: str) -> Any:
    """The object that `package.module:name` names.

    Raises:
        ValueError: The spec has no colon, or the module has no such name.
    """
    module, colon, name = spec.partition(":")
    if not colon:
        raise ValueError(f"{spec!r} names no object; the form is package.module:name")
    found = getattr(import_module(module), name, None)
    if found is None:
        raise ValueError(f"module {module!r} has no {name!r} (asked for by {spec!r})")
    return found
