"""Owns the limits that all runs of a process share at one provider: requests at once, requests and tokens a minute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiolimiter import AsyncLimiter

BURST_S: float = 5.0
"""Requests and tokens of so many seconds may come at once; providers look at shorter times than a minute."""


@dataclass(slots=True)
class TokenBucket:
    """Tokens a minute, where the size of a request is only known afterwards.

    A request passes while there is credit, and takes its estimated size, so the credit may go below zero; what it
    really took is settled afterwards. So the mean rate is held, and a request larger than the bucket passes too.
    """

    per_minute: float
    _credit: float = field(init=False)
    _counted_s: float = field(init=False)
    _turn: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Start full."""
        self._credit = self.per_minute * BURST_S / 60
        self._counted_s = asyncio.get_running_loop().time()

    async def take(self, n_tokens: float) -> None:
        """Wait for credit, first come first served, then take an estimated number of tokens."""
        async with self._turn:
            self._refill()
            while self._credit <= 0:
                await asyncio.sleep(max(0.001, -self._credit * 60 / self.per_minute))
                self._refill()
            self._credit -= n_tokens

    def settle(self, n_tokens: float) -> None:
        """Take so many tokens more than estimated; fewer where negative."""
        self._credit -= n_tokens

    def _refill(self) -> None:
        now_s = asyncio.get_running_loop().time()
        gained = (now_s - self._counted_s) * self.per_minute / 60
        self._credit = min(self.per_minute * BURST_S / 60, self._credit + gained)
        self._counted_s = now_s


@dataclass(frozen=True, slots=True)
class Gate:
    """What a request passes before it is sent."""

    slots: asyncio.Semaphore | None = None
    requests: AsyncLimiter | None = None
    tokens: TokenBucket | None = None

    @asynccontextmanager
    async def passed(self, n_tokens: float) -> AsyncIterator[None]:
        """Wait until a request of an estimated size may be sent, and hold its place until it is answered."""
        if self.slots is not None:
            await self.slots.acquire()
        try:
            if self.tokens is not None:
                await self.tokens.take(n_tokens)
            if self.requests is not None:
                await self.requests.acquire()
            yield
        finally:
            if self.slots is not None:
                self.slots.release()

    def settle(self, n_tokens: float) -> None:
        """Correct the estimate of a request that has been answered by so many tokens."""
        if self.tokens is not None:
            self.tokens.settle(n_tokens)


def make_gate(*, concurrency: int | None, requests_per_minute: float | None, tokens_per_minute: float | None) -> Gate:
    """Return a gate with the limits that are not None; it belongs to the running event loop."""
    limiter = None
    if requests_per_minute is not None:
        burst = max(1.0, requests_per_minute * BURST_S / 60)
        limiter = AsyncLimiter(burst, 60 * burst / requests_per_minute)
    return Gate(
        slots=asyncio.Semaphore(concurrency) if concurrency is not None else None,
        requests=limiter,
        tokens=TokenBucket(tokens_per_minute) if tokens_per_minute is not None else None,
    )
