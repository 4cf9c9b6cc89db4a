"""Counts tokens and plays the two kinds of prompt cache, deterministically.

A token is four bytes of the canonical JSON of the prompt, rounded up over the whole prompt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.peers.neutral import Reply, Usage

BYTES_PER_TOKEN = 4
OPENAI_MIN_TOKENS = 1024
OPENAI_BLOCK_TOKENS = 128
LOOKBACK_BLOCKS = 20
TTL_S = {"5m": 300.0, "1h": 3600.0}


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, one form for each value; lone surrogates stay escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        import json

        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def tokens(n_bytes: int) -> int:
    """Tokens of so many bytes, rounded up."""
    return -(-n_bytes // BYTES_PER_TOKEN)


def output_tokens(reply: Reply) -> tuple[int, int]:
    """Tokens of a reply: all of them, and the reasoning among them. An empty reply costs one."""
    visible = [reply.text or "", reply.refusal or ""]
    for call in reply.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else canonical(dict(call.arguments)).decode()
        visible += [call.name, arguments]
    thought = "".join(block.text for block in reply.thinking)
    n_reasoning = tokens(_n_bytes([thought])) if reply.reasoning_tokens is None else reply.reasoning_tokens
    return max(1, tokens(_n_bytes(visible)) + n_reasoning), n_reasoning


def _n_bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


@dataclass(frozen=True)
class Segment:
    """A piece of a prompt that is cached or not as a whole: a tool, a system block, a content block."""

    content: bytes
    ttl: str | None = None
    """Lifetime that a cache breakpoint at the end of this piece asks for, if there is one."""
    counted: bool = True
    """False for what changes the prompt but costs nothing, such as the thinking settings."""


class BlockCache:
    """OpenAI's: the longest prefix seen before, from 1,024 tokens on in steps of 128, without being asked."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def usage(self, scope: str, segments: Sequence[Segment], *, bills_writes: bool) -> Usage:
        """Usage of a prompt, which is remembered.

        Args:
            scope: What must be equal besides the prompt: the key and the model.
            segments: The prompt.
            bills_writes: Report what is newly cached, as the newer models do.
        """
        prompt = b"".join(segment.content for segment in segments if segment.counted)
        n_total = tokens(len(prompt))
        block = OPENAI_BLOCK_TOKENS * BYTES_PER_TOKEN
        chain = hashlib.blake2b(scope.encode() + b"".join(s.content for s in segments if not s.counted), digest_size=16)
        n_read = n_blocks = 0
        for start in range(0, len(prompt) - block + 1, block):
            chain.update(prompt[start : start + block])
            mark = chain.digest()
            n_blocks += 1
            if mark in self._seen:
                n_read = n_blocks
            self._seen.add(mark)
        read = n_read * OPENAI_BLOCK_TOKENS
        read = read if read >= OPENAI_MIN_TOKENS else 0
        written = n_blocks * OPENAI_BLOCK_TOKENS - read if bills_writes and n_total >= OPENAI_MIN_TOKENS else 0
        return Usage(fresh=n_total - read - written, cache_read=read, cache_write_5m=written)


class BreakpointCache:
    """Anthropic's: written only at breakpoints, read at most 20 blocks before one, gone when its lifetime ends."""

    def __init__(self, min_tokens: int) -> None:
        self.min_tokens = min_tokens
        self._expiry_s: dict[bytes, float] = {}

    def usage(self, scope: str, segments: Sequence[Segment], *, now_s: float) -> Usage:
        """Usage of a prompt, whose breakpoints are remembered.

        Args:
            scope: What must be equal besides the prompt: the key and the model.
            segments: The prompt.
            now_s: The time, for lifetimes of entries.
        """
        marks, sizes = self._prefixes(scope, segments)
        points = [i for i, segment in enumerate(segments) if segment.ttl and tokens(sizes[i]) >= self.min_tokens]
        hit = -1
        for point in points:
            for i in range(point, max(-1, point - LOOKBACK_BLOCKS), -1):
                if self._expiry_s.get(marks[i], now_s) > now_s:
                    hit = max(hit, i)
                    break
        read = tokens(sizes[hit]) if hit >= 0 else 0
        written = {"5m": 0, "1h": 0}
        done = read
        for point in points:
            lifetime = segments[point].ttl or "5m"
            if point > hit:
                written[lifetime] += tokens(sizes[point]) - done
                done = tokens(sizes[point])
            self._expiry_s[marks[point]] = now_s + TTL_S[lifetime]
        if hit >= 0:  # reading refreshes an entry for its shortest lifetime at no cost
            self._expiry_s[marks[hit]] = max(self._expiry_s[marks[hit]], now_s + TTL_S["5m"])
        total = tokens(sizes[-1]) if sizes else 0
        return Usage(fresh=total - done, cache_read=read, cache_write_5m=written["5m"], cache_write_1h=written["1h"])

    @staticmethod
    def _prefixes(scope: str, segments: Sequence[Segment]) -> tuple[list[bytes], list[int]]:
        chain = hashlib.blake2b(scope.encode(), digest_size=16)
        marks: list[bytes] = []
        sizes: list[int] = []
        n_bytes = 0
        for segment in segments:
            chain.update(len(segment.content).to_bytes(8, "big"))
            chain.update(segment.content)
            n_bytes += len(segment.content) if segment.counted else 0
            marks.append(chain.digest())
            sizes.append(n_bytes)
        return marks, sizes
