"""The record of what a peer was asked and what became of each request."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.peers.neutral import Arrival, Json, Protocol, Usage
from tests.peers.tokens import canonical

Outcome = Literal["open", "answered", "rejected", "error", "dropped_before", "dropped_after", "stalled", "client_gone"]
"""What became of a request.

`rejected` is the peer's own judgement (strict mode, key, model, context), `error` a fault that answered with an error,
`client_gone` a client that closed its connection before the answer was through, `open` a request still under way.
"""


@dataclass
class Entry:
    """One request."""

    index: int
    attempt: int
    protocol: Protocol
    digest: str
    model: str
    key: str
    headers: dict[str, str]
    body: Json
    """The parsed body; empty if bodies are not kept."""
    raw: str
    """The body as text where it was no JSON object, else empty."""
    prompt: tuple[str, ...]
    """A digest for each piece of the conversation in order, cache marks left out."""
    arrived_s: float
    """Unix time."""
    accepted: bool = False
    """The brain made a reply: the service has done the work and bills it."""
    answered: bool = False
    """A good answer went out whole. Set just before its last byte."""
    outcome: Outcome = "open"
    fault: str | None = None
    status: int | None = None
    message: str | None = None
    """The error message, where there was one."""
    usage: Usage | None = None
    done_s: float | None = None
    """Unix time of the end."""


@dataclass
class PeerLog:
    """All requests in the order of arrival. Safe to read from another thread than the peer's."""

    entries: list[Entry] = field(default_factory=list)
    path: Path | None = None
    """Where finished requests are appended as JSON lines; read them back with `read_log`."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self.entries))

    def __getitem__(self, index: int) -> Entry:
        return self.entries[index]

    def append(self, entry: Entry) -> None:
        """Add a request that has just come in."""
        with self._lock:
            self.entries.append(entry)

    def finish(self, entry: Entry, done_s: float) -> None:
        """Close a request and write it to the file, if there is one; a later line for it counts."""
        entry.done_s = done_s
        if self.path is not None:
            line = json.dumps(asdict(entry))
            with self._lock, self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    @property
    def outcomes(self) -> Counter[str]:
        """How many requests ended in which way."""
        return Counter(entry.outcome for entry in self)

    @property
    def faults(self) -> Counter[str]:
        """How often each fault struck."""
        return Counter(entry.fault for entry in self if entry.fault is not None)

    @property
    def rejections(self) -> list[str]:
        """Messages of the peer's own refusals, in order. Empty if every request was valid."""
        return [entry.message or "" for entry in self if entry.outcome == "rejected"]

    def answered_twice(self) -> list[str]:
        """Digests of requests that got more than one whole answer."""
        counts = Counter(entry.digest for entry in self if entry.answered)
        return [digest for digest, n in counts.items() if n > 1]

    def asked_after_answer(self) -> list[Entry]:
        """Requests that came although the same request had already been answered whole."""
        done: dict[str, float] = {}
        again = []
        for entry in self:
            if entry.arrived_s > done.get(entry.digest, float("inf")):
                again.append(entry)
            if entry.answered and entry.done_s is not None:
                done.setdefault(entry.digest, entry.done_s)
        return again

    def prefix_share(self, conversation: Callable[[Entry], Hashable] | None = None) -> float | None:
        """Share of consecutive requests of a conversation that keep the whole previous conversation as their prefix.

        The conversation includes tools and system prompt. Repeats of the same request are passed over.

        Args:
            conversation: What requests of one conversation have in common. By default the model, the key and the
                conversation up to the first user message; runs that begin alike need something better, such as a
                header.

        Returns:
            The share, or None if no conversation has two requests.
        """
        newest: dict[Hashable, tuple[str, ...]] = {}
        kept = n = 0
        for entry in self:
            group = conversation(entry) if conversation else (entry.model, entry.key, entry.prompt[:1])
            before, newest[group] = newest.get(group), entry.prompt
            if before is None or before == entry.prompt:
                continue
            n += 1
            kept += entry.prompt[: len(before)] == before
        return kept / n if n else None


def opened(arrival: Arrival, *, raw: str, pieces: Iterable[Any], arrived_s: float, keep_body: bool) -> Entry:
    """The entry of a request that has just come in.

    Args:
        arrival: The request.
        raw: Its body as text, where it was no JSON object.
        pieces: The conversation in order; the first holds what comes before the second message.
        arrived_s: Unix time.
        keep_body: Whether the parsed body stays in memory.
    """
    return Entry(
        index=arrival.index,
        attempt=arrival.attempt,
        protocol=arrival.protocol,
        digest=arrival.digest,
        model=arrival.model,
        key=arrival.key,
        headers=dict(arrival.headers),
        body=arrival.body if keep_body else {},
        raw=raw,
        prompt=tuple(hashlib.blake2b(canonical(piece), digest_size=12).hexdigest() for piece in pieces),
        arrived_s=arrived_s,
    )


def read_log(path: Path) -> PeerLog:
    """The finished requests that a peer wrote to a file, in the order of arrival. The last line of each counts."""
    entries: dict[int, Entry] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        values["prompt"] = tuple(values["prompt"])
        values["usage"] = None if values["usage"] is None else Usage(**values["usage"])
        entries[values["index"]] = Entry(**values)
    return PeerLog(entries=[entries[index] for index in sorted(entries)])
