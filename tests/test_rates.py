"""Limits of requests at once, and of requests and tokens a minute."""

from __future__ import annotations

import asyncio
import time

import pytest

from experiments.models.rates import Gate, TokenBucket, make_gate


async def passed_at_s(gate: Gate, n: int, *, n_tokens: float = 0.0, held_s: float = 0.0) -> list[float]:
    """When each of n requests passed, in seconds from the start."""
    start_s = time.perf_counter()
    times = []

    async def one() -> None:
        async with gate.passed(n_tokens):
            times.append(time.perf_counter() - start_s)
            await asyncio.sleep(held_s)

    await asyncio.gather(*(one() for _ in range(n)))
    return sorted(times)


def test_requests_a_minute_are_held_beyond_a_short_burst() -> None:
    async def play() -> list[float]:
        # Twenty a second: 100 may come at once (five seconds' worth), ten more take half a second.
        return await passed_at_s(make_gate(concurrency=None, requests_per_minute=1200, tokens_per_minute=None), 110)

    times = asyncio.run(play())
    assert times[-1] >= 0.4


def test_slow_limit_lets_one_request_through_at_a_time() -> None:
    async def play() -> list[float]:
        gate = make_gate(concurrency=None, requests_per_minute=240, tokens_per_minute=None)
        await passed_at_s(gate, 20)
        return await passed_at_s(gate, 2)

    first_s, second_s = asyncio.run(play())
    assert second_s - first_s >= 0.2


def test_requests_at_once_are_held() -> None:
    async def play() -> list[float]:
        gate = make_gate(concurrency=2, requests_per_minute=None, tokens_per_minute=None)
        return await passed_at_s(gate, 6, held_s=0.05)

    times = asyncio.run(play())
    assert times[2] >= 0.05 and times[4] >= 0.1


def test_tokens_a_minute_are_held_also_for_requests_larger_than_the_bucket() -> None:
    async def play() -> list[float]:
        # A thousand tokens a second; the bucket holds 5,000, and each request takes 5,300.
        gate = make_gate(concurrency=None, requests_per_minute=None, tokens_per_minute=60_000)
        return await passed_at_s(gate, 2, n_tokens=5_300)

    _, second_s = asyncio.run(play())
    assert second_s >= 0.25


def test_what_a_request_really_took_is_settled() -> None:
    async def play() -> float:
        bucket = TokenBucket(60_000)
        await bucket.take(4_000)
        bucket.settle(1_200)
        start_s = time.perf_counter()
        await bucket.take(1)
        return time.perf_counter() - start_s

    assert asyncio.run(play()) >= 0.15


def test_place_is_given_back_when_a_request_fails() -> None:
    async def play() -> None:
        gate = make_gate(concurrency=1, requests_per_minute=None, tokens_per_minute=None)
        with pytest.raises(ValueError, match="failed"):
            async with gate.passed(0):
                raise ValueError("failed")
        async with asyncio.timeout(1), gate.passed(0):
            pass

    asyncio.run(play())


def test_no_limit_holds_nothing() -> None:
    gate = Gate()
    assert len(asyncio.run(passed_at_s(gate, 5, n_tokens=1e9))) == 5
    gate.settle(1e9)
