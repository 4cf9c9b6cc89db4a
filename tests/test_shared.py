"""What the runs of an event loop share, and that it is closed with the loop."""

from __future__ import annotations

import asyncio

from experiments.models.shared import shared


def test_value_is_made_once_a_loop_and_closed_at_its_end() -> None:
    events: list[str] = []

    async def close(value: str) -> None:
        await asyncio.sleep(0)
        events.append(f"closed {value}")

    def make() -> str:
        events.append("made")
        return f"value {len(events)}"

    async def play() -> list[str]:
        return list(await asyncio.gather(*(shared("key", make, close) for _ in range(3))))

    assert asyncio.run(play()) == ["value 1"] * 3
    assert events == ["made", "closed value 1"]
    assert asyncio.run(play()) == ["value 3"] * 3
    assert events == ["made", "closed value 1", "made", "closed value 3"]


def test_keys_have_values_of_their_own_closed_last_first() -> None:
    closed: list[int] = []

    async def close(value: int) -> None:
        closed.append(value)

    async def play() -> tuple[int, int, int]:
        one = await shared(("k", 1), lambda: 1, close)
        two = await shared(("k", 2), lambda: 2, close)
        return one, two, await shared(("k", 1), lambda: 3, close)

    assert asyncio.run(play()) == (1, 2, 1)
    assert closed == [2, 1]


def test_values_are_closed_also_when_the_loop_ends_by_an_exception() -> None:
    closed: list[str] = []

    async def close(value: str) -> None:
        closed.append(value)

    async def play() -> None:
        await shared("key", lambda: "value", close)
        raise ZeroDivisionError

    try:
        asyncio.run(play())
    except ZeroDivisionError:
        pass
    assert closed == ["value"]
