"""Owns the one retry policy: exponential with jitter, what the provider asks for, bounded in tries and in time."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_before_delay

from experiments.chat import Attempt
from experiments.models.failures import Failure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how long a request is tried again."""

    max_tries: int = 8
    """Requests for one answer, the first included."""
    retry_for_s: float = 900.0
    """No try begins later than this after the first."""
    first_wait_s: float = 1.0
    """Longest pause after the first failure; it doubles with every further one."""
    longest_wait_s: float = 60.0
    """Longest pause, unless the provider asks for a longer one."""

    def wait_s(self, n_failed: int, asked_s: float | None, draw: float) -> float:
        """Return the pause after the n-th failure.

        It is drawn from the upper half of the exponential bound, so that many runs do not come back at once; where the
        provider asks for a pause, never less than that.

        Args:
            n_failed: failures so far, at least one.
            asked_s: what the provider asks for, or None.
            draw: a number from 0 to 1.
        """
        bound = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (n_failed - 1))
        if asked_s is not None:
            return asked_s + draw * min(bound, self.first_wait_s)
        return bound * (1 + draw) / 2


class GaveUp(Exception):
    """No try brought an answer."""

    def __init__(self, failure: Failure, attempts: tuple[Attempt, ...]) -> None:
        """Take the last failure and the attempts before it."""
        super().__init__(failure.text)
        self.failure = failure
        self.attempts = attempts

    @property
    def told(self) -> str:
        """How often it was tried, and why not again, in words."""
        n = len(self.attempts) + 1
        waited_s = sum(attempt.wait_s for attempt in self.attempts)
        asked_s = self.failure.retry_after_s
        asks = f", the provider asks to wait {asked_s:.0f} s more" if asked_s else ""
        return f"given up after {n} {'try' if n == 1 else 'tries'} with {waited_s:.1f} s of waiting{asks}"


async def persistently(
    ask: Callable[[], Awaitable[T]],
    policy: Policy,
    *,
    on_failure: Callable[[Failure], None] | None = None,
    draw: Callable[[], float] = random.random,
) -> tuple[T, tuple[Attempt, ...]]:
    """Ask until there is an answer, and return it with the failed attempts before it.

    Args:
        ask: sends one request.
        policy: how often and how long.
        on_failure: told of every failure, the last one included.
        draw: the jitter, a number from 0 to 1 a failure.

    Raises:
        GaveUp: if the last failure cannot pass, or tries or time are used up.
    """
    attempts: list[Attempt] = []

    async def once() -> T:
        try:
            return await ask()
        except Failure as failure:
            if on_failure is not None:
                on_failure(failure)
            raise

    def wait_s(state: RetryCallState) -> float:
        return policy.wait_s(state.attempt_number, _failure_of(state).retry_after_s, draw())

    def keep(state: RetryCallState) -> None:
        failure = _failure_of(state)
        attempts.append(Attempt(failure.status, failure.text, round(state.upcoming_sleep, 3)))

    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, Failure) and error.kind == "passing"),
        wait=wait_s,
        stop=stop_after_attempt(policy.max_tries) | stop_before_delay(policy.retry_for_s),
        before_sleep=keep,
        reraise=True,
    )
    try:
        answer: T = await retrying(once)
    except Failure as failure:
        raise GaveUp(failure, tuple(attempts)) from None
    return answer, tuple(attempts)


def _failure_of(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome is not None else None
    return error if isinstance(error, Failure) else Failure(None, repr(error))
