"""The one retry policy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.chat import Attempt
from experiments.models.failures import Failure
from experiments.models.retry import GaveUp, Policy, persistently

QUICK = Policy(max_tries=4, first_wait_s=0.001, longest_wait_s=0.001)
BUSY = Failure(503, "busy")


def asked(*answers: Any) -> tuple[Callable[[], Awaitable[Any]], list[Any]]:
    """Something to ask that gives these answers in turn, and the list of those given."""
    given_so_far: list[Any] = []

    async def ask() -> Any:
        answer = answers[len(given_so_far)]
        given_so_far.append(answer)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return ask, given_so_far


def test_pauses_double_up_to_the_longest_and_are_drawn_from_the_upper_half() -> None:
    policy = Policy(first_wait_s=1.0, longest_wait_s=10.0)
    assert [policy.wait_s(n, None, 1.0) for n in (1, 2, 3, 4, 5, 6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert [policy.wait_s(n, None, 0.0) for n in (1, 2, 3, 4, 5, 6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_pause_is_never_shorter_than_the_provider_asks_for() -> None:
    policy = Policy(first_wait_s=1.0, longest_wait_s=10.0)
    assert policy.wait_s(1, 30.0, 0.0) == 30.0
    assert policy.wait_s(9, 30.0, 1.0) == 31.0


@given(n=st.integers(1, 60), asked_s=st.none() | st.floats(0, 1e4), draw=st.floats(0, 1))
def test_pause_stays_between_its_bounds(n: int, asked_s: float | None, draw: float) -> None:
    policy = Policy()
    wait_s = policy.wait_s(n, asked_s, draw)
    assert wait_s >= (asked_s or 0.0)
    assert wait_s <= (asked_s or 0.0) + policy.longest_wait_s


def test_answer_comes_with_the_failed_attempts_before_it() -> None:
    ask, given_so_far = asked(Failure(429, "slow down", headers={"retry-after-ms": "2"}), BUSY, "answer")
    answer, attempts = asyncio.run(persistently(ask, QUICK, draw=lambda: 0.0))
    assert answer == "answer"
    assert attempts == (Attempt(429, "slow down", 0.002), Attempt(503, "busy", 0.001))
    assert len(given_so_far) == 3


def test_tries_are_bounded_and_the_last_failure_is_told() -> None:
    ask, given_so_far = asked(BUSY, BUSY, BUSY, Failure(500, "broken"))
    with pytest.raises(GaveUp) as caught:
        asyncio.run(persistently(ask, QUICK))
    assert (caught.value.failure.text, len(caught.value.attempts), len(given_so_far)) == ("broken", 3, 4)
    assert caught.value.told.startswith("given up after 4 tries with 0.0 s of waiting")


def test_time_is_bounded_before_a_pause_that_would_be_too_long() -> None:
    ask, given_so_far = asked(Failure(429, "tomorrow", headers={"retry-after": "3600"}))
    with pytest.raises(GaveUp, match="tomorrow"):
        asyncio.run(persistently(ask, Policy(retry_for_s=5.0)))
    assert len(given_so_far) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_cannot_pass_is_asked_once(status: int) -> None:
    ask, given_so_far = asked(Failure(status, "no"))
    with pytest.raises(GaveUp):
        asyncio.run(persistently(ask, QUICK))
    assert len(given_so_far) == 1


def test_every_failure_is_told_the_last_one_too() -> None:
    told: list[Failure] = []
    ask, _ = asked(BUSY, Failure(400, "no"))
    with pytest.raises(GaveUp):
        asyncio.run(persistently(ask, QUICK, on_failure=told.append))
    assert [failure.text for failure in told] == ["busy", "no"]


@pytest.mark.parametrize("error", [ValueError("a bug"), asyncio.CancelledError()])
def test_other_exceptions_travel_on(error: BaseException) -> None:
    ask, given_so_far = asked(error)
    with pytest.raises(type(error)):
        asyncio.run(persistently(ask, QUICK))
    assert len(given_so_far) == 1
