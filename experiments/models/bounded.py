"""Owns calls into code that is not ours: each is given a time limit that it cannot outlive, whatever it does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

LOOP_ANSWERS_WITHIN_S: Final = 1.0
"""A loop that takes longer is held up by a coroutine that never yields."""


class TookTooLong(Exception):
    """The call did not return in time; where it still runs, nothing waits for it any more."""


class Raised(Exception):
    """The call raised; apart from other exceptions, so that a caller's own cancellation is never taken for it."""

    def __init__(self, error: BaseException) -> None:
        """Carry what was raised."""
        super().__init__(type(error).__name__)
        self.error = error


async def call_bounded(function: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
    """Return what a function returns, or what the awaitable that it returns comes to.

    The function runs in a thread of its own, awaitables run in one loop that all calls of the process share, so that
    clients which belong to a loop can be kept from call to call. Neither can hold up the caller's loop or the end of
    the process.

    Raises:
        TookTooLong: after ``timeout_s`` seconds; an awaitable is cancelled then.
        Raised: with what the function or the awaitable raised.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_Outcome] = loop.create_future()
    work = _Work(function, arguments)

    def deliver() -> None:
        found = work.carry_out()
        # Where nobody waits any more, the loop may be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if outcome.done() else outcome.set_result(found))

    threading.Thread(target=deliver, name="agent call", daemon=True).start()
    try:
        found = await asyncio.wait_for(outcome, timeout_s)
    except TimeoutError:
        await _agents_loop.replace_if_stuck()
        raise TookTooLong(f"no answer within {timeout_s:g} s") from None
    finally:
        work.cancel()
    if found.error is not None:
        raise Raised(found.error)
    return found.value


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a call came to. Futures refuse some exceptions, so it is passed as a value."""

    value: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class _Work:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    awaited: Future[_Outcome] | None = field(default=None, init=False)
    cancelled: bool = field(default=False, init=False)

    def carry_out(self) -> _Outcome:
        try:
            value = self.function(*self.arguments)
            if not isinstance(value, Awaitable):
                return _Outcome(value)
            self.awaited = asyncio.run_coroutine_threadsafe(_settled(value), _agents_loop.running())
            if self.cancelled:
                # Given up while the function was still at work.
                self.awaited.cancel()
            return self.awaited.result()
        except BaseException as error:
            return _Outcome(error=error)

    def cancel(self) -> None:
        self.cancelled = True
        if self.awaited is not None:
            self.awaited.cancel()


async def _settled(value: Awaitable[Any]) -> _Outcome:
    try:
        return _Outcome(await value)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _Outcome(error=error)


class _AgentsLoop:
    """The loop in which awaitables run, started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="agents", daemon=True).start()
            return self._loop

    async def replace_if_stuck(self) -> None:
        """Leave the loop to itself if it answers no more; later calls get a new one."""
        loop = self._loop
        if loop is None:
            return
        answer = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)
        try:
            await asyncio.wait_for(asyncio.wrap_future(answer), LOOP_ANSWERS_WITHIN_S)
        except TimeoutError:
            with self._lock:
                if self._loop is loop:
                    self._loop = None


_agents_loop: Final = _AgentsLoop()
