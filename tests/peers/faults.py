"""Service faults and the rules that say which requests they strike."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Literal

from tests.peers import errors
from tests.peers.errors import ApiError
from tests.peers.neutral import Arrival, Protocol, Reply

Act = Literal["error", "drop_before", "stall", "reply", "error_body", "not_json", "drop_after", "late"]
"""What a fault does.

The first three keep the request from the brain. `reply` changes what the brain said; the others spoil a good answer.
"""


@dataclass(frozen=True)
class Fault:
    """One way in which a request goes wrong."""

    name: str
    """Counted under this name in the log."""
    act: Act
    error: Callable[[Protocol], ApiError] | None = None
    """For `error` and `error_body`: what the service says."""
    change: Callable[[Reply], Reply] | None = None
    """For `reply`: makes the bad reply from the brain's."""
    seconds: float = 0.0
    """For `stall` and `late`: how long."""
    sent_frac: float = 0.0
    """For `drop_after`: the share of the answer's bytes that still goes out."""


@dataclass(frozen=True)
class Rule:
    """A fault and the requests that it strikes."""

    fault: Fault
    strikes: Callable[[Arrival], bool]
    times: float = math.inf
    """Spent after so many strikes."""


def at(fault: Fault, *indexes: int) -> Rule:
    """Strike the requests with these places in the order of arrival, from 0."""
    wanted = frozenset(indexes)
    return Rule(fault, lambda arrival: arrival.index in wanted)


def when(fault: Fault, strikes: Callable[[Arrival], bool], *, times: float = math.inf) -> Rule:
    """Strike the requests for which a predicate holds, at most so many times."""
    return Rule(fault, strikes, times)


def first_attempts(fault: Fault, n: int = 1) -> Rule:
    """Strike the first n attempts of every distinct request."""
    return Rule(fault, lambda arrival: arrival.attempt < n)


def chance(fault: Fault, probability: float, *, seed: int = 0) -> Rule:
    """Strike at random, as a function of (seed, request, attempt): the order of arrival does not matter."""

    def strikes(arrival: Arrival) -> bool:
        key = f"{seed}/{fault.name}/{arrival.digest}/{arrival.attempt}".encode()
        draw = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64
        return draw < probability

    return Rule(fault, strikes)


def _error(name: str, status: int, message: str, headers: Mapping[str, str] | None = None) -> Fault:
    return Fault(name, "error", lambda protocol: ApiError(status, message, headers=headers or {}))


def rate_limited(retry_after_s: float = 1.0, form: Literal["seconds", "date", "ms", "none"] = "seconds") -> Fault:
    """A 429; the wait is named in seconds, as an HTTP date (whole seconds, rounded up), in milliseconds or not."""

    def error(protocol: Protocol) -> ApiError:
        headers = {
            "seconds": {"retry-after": f"{retry_after_s:g}"},
            "date": {"retry-after": formatdate(math.ceil(time.time() + retry_after_s), usegmt=True)},
            "ms": {"retry-after-ms": f"{retry_after_s * 1000:.0f}", "retry-after": f"{math.ceil(retry_after_s)}"},
            "none": {},
        }[form]
        message = "Rate limit reached: this request would exceed the limit of requests per minute."
        return ApiError(429, message, None, "rate_limit_exceeded", headers)

    return Fault("429", "error", error)


def server_error() -> Fault:
    """A 500."""
    return _error("500", 500, "The server had an error while processing your request.")


def unavailable() -> Fault:
    """A 503."""
    return _error("503", 503, "The server is overloaded or not ready yet.")


def overloaded() -> Fault:
    """A 529."""
    return _error("529", 529, "Overloaded")


def unauthorized() -> Fault:
    """A 401."""
    return Fault("401", "error", lambda protocol: errors.bad_key(protocol, "sk-peer-wrong-key").error)


def forbidden() -> Fault:
    """A 403."""
    return _error("403", 403, "Your key does not have permission to use the specified resource.")


def model_gone(model: str = "retired-model") -> Fault:
    """A 404 that names a retired model."""
    return Fault("404", "error", lambda protocol: errors.no_model(protocol, model).error)


def bad_parameter(param: str) -> Fault:
    """A 400 that names an unsupported parameter."""
    return Fault("400", "error", lambda protocol: errors.unsupported(protocol, param).error)


def context_too_long(n_tokens: int = 200_123, limit: int = 200_000) -> Fault:
    """A 400 for a prompt over the context window."""
    return Fault("context", "error", lambda protocol: errors.too_long(protocol, n_tokens, limit).error)


def error_body_with_200() -> Fault:
    """Status 200, and an error where the answer should be; in a stream, an error event after the first half."""
    return Fault("200-error", "error_body", lambda protocol: ApiError(503, "Provider returned error", None, "503"))


def failed_with_200() -> Fault:
    """Like `error_body_with_200`, but over Responses in that protocol's own form: an answer with status `failed`."""
    return Fault("200-failed", "error_body", lambda protocol: ApiError(503, "The model failed to answer", None, "503"))


def not_json() -> Fault:
    """Status 200 with a page of HTML."""
    return Fault("200-html", "not_json")


def drop_before() -> Fault:
    """The connection closes before the request is accepted: no answer exists."""
    return Fault("drop-before", "drop_before")


def drop_after(sent_frac: float = 0.0) -> Fault:
    """The request is answered (and billed), and the connection closes before the answer is through."""
    return Fault("drop-after", "drop_after", sent_frac=sent_frac)


def stall(seconds: float = 3600.0) -> Fault:
    """Nothing comes for so long, then the connection closes."""
    return Fault("stall", "stall", seconds=seconds)


def late(seconds: float) -> Fault:
    """A good answer that takes so long."""
    return Fault("late", "late", seconds=seconds)


@dataclass
class Schedule:
    """Rules in force; the first that strikes decides. A rule that is spent is passed over."""

    rules: tuple[Rule, ...]
    n_struck: dict[int, int] = field(default_factory=dict)

    def pick(self, arrival: Arrival) -> Fault | None:
        """The fault for this request, or None."""
        for i, rule in enumerate(self.rules):
            if self.n_struck.get(i, 0) < rule.times and rule.strikes(arrival):
                self.n_struck[i] = self.n_struck.get(i, 0) + 1
                return rule.fault
        return None
