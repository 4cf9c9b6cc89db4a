"""Owns what the runs of an event loop share at a provider, clients and limits, and closes it when the loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


@dataclass(slots=True)
class _Shared:
    values: dict[Hashable, Any] = field(default_factory=dict)
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)
    lifeline: AsyncGenerator[None] | None = None


_OF_LOOP: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared]] = WeakKeyDictionary()


async def shared(key: Hashable, make: Callable[[], T], close: Callable[[T], Awaitable[None]] | None = None) -> T:
    """Return the value of a key in the running loop, made when it is first asked for.

    `asyncio.run` ends every asynchronous generator before it closes its loop, so a generator that waits at its only
    `yield` is where values are closed: nobody has to know of them, and none outlives its loop.

    Args:
        key: what the value is for.
        make: makes it.
        close: closes it when the loop ends, values made last first.
    """
    loop = asyncio.get_running_loop()
    here = _OF_LOOP.get(loop)
    if here is None:
        here = _OF_LOOP[loop] = _Shared()
        here.lifeline = _lifeline(here)
        await anext(here.lifeline)
    if key not in here.values:
        value = here.values[key] = make()
        if close is not None:
            here.closing.push_async_callback(close, value)
    found: T = here.values[key]
    return found


async def _lifeline(here: _Shared) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        here.values.clear()
        await here.closing.aclose()
