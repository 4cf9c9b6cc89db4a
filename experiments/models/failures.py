"""Owns what a failed request means: whether it can pass, and if not, what it ends.

Every adapter turns what its client raises into a `Failure`; what follows from one is decided here, for all providers
in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from experiments.errors import ContextLimit, ProviderError, Refused, RunEnded, SweepStop

Kind = Literal["passing", "context", "key", "credit", "refused", "no_model", "request"]
"""What failed: the service for now, the conversation's length, the key, the account, the provider's policy against the
content, the model's name, or the request for good."""

LONGEST_TEXT: Final = 600
"""Characters of a provider's message that are kept."""

_PASSING: Final = frozenset({408, 409, 425, 429})
_CONTEXT: Final = re.compile(
    r"context_length_exceeded|ContextWindowExceeded|exceed_context_size|model_max_prompt_tokens_exceeded|request_too_large"
    r"|context (?:length|window|size|limit)|maximum (?:prompt|model|input) length|(?:prompt|input) is too long"
    r"|input token count .*exceeds|maximum number of (?:input )?tokens|too large for model with \d+ maximum"
    r"|reduce the length of|must have less than \d+ tokens|tokens \+ `max_new_tokens` must be",
    re.IGNORECASE,
)
_CREDIT: Final = re.compile(
    r"insufficient_quota|exceeded your current quota|billing_hard_limit|credit balance is too low|billing_error"
    r"|insufficient (?:credits|balance|funds)|requires more credits|spend(?:ing)?[ _]limit",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(
    r"content_policy_violation|ContentPolicyViolation|content_filter|invalid_prompt|flagged|usage polic"
    r"|responsible ?ai|bio_policy|misalignment_policy",
    re.IGNORECASE,
)
_KEY: Final = re.compile(r"api[ _-]?key not valid|invalid[ _-]api[ _-]key|api_key_invalid", re.IGNORECASE)
_NEVER_FITS: Final = re.compile(r"request too large for|request_too_large_for", re.IGNORECASE)


class Failure(Exception):
    """A request that brought no answer."""

    def __init__(
        self, status: int | None, text: str, *, param: str = "", raw: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Say what came instead of an answer.

        Args:
            status: HTTP status; None where no response came.
            text: what the provider or the client says, codes included.
            param: the parameter that the provider names as the cause.
            raw: the response's body, for the log of failing calls.
            headers: the response's headers.
        """
        super().__init__(text)
        self.status = status
        self.text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
        self.param = param
        self.raw = raw
        self.headers = dict(headers or {})
        self.retry_after_s = retry_after_s(self.headers)
        """How long the provider asks to wait."""

    @property
    def told(self) -> str:
        """Status and text in one line."""
        return " ".join(f"{self.status or 'no response'}: {self.text}".split())

    @property
    def kind(self) -> Kind:
        """What failed."""
        return kind_of(self.status, self.text)


def kind_of(status: int | None, text: str) -> Kind:
    """Return what failed, from HTTP status and message.

    >>> kind_of(529, "Overloaded"), kind_of(400, "prompt is too long: 9 tokens > 8 maximum"), kind_of(429, "slow down")
    ('passing', 'context', 'passing')
    >>> kind_of(429, "insufficient_quota: You exceeded your current quota"), kind_of(404, "model: claude-1")
    ('credit', 'no_model')
    """
    if status is None or status >= 500 or status < 400:
        return "passing"
    if status == 402 or _CREDIT.search(text):
        return "credit"
    if status in (400, 413, 422) and _CONTEXT.search(text):
        return "context"
    if status in (400, 403, 422) and _REFUSED.search(text):
        return "refused"
    if status in (401, 403) or (status == 400 and _KEY.search(text)):
        return "key"
    if status == 404:
        return "no_model"
    if status in _PASSING and not _NEVER_FITS.search(text):
        return "passing"
    return "request"


def ending(failure: Failure, *, model: str, key: str, fields: Mapping[str, str], tried: str = "") -> Exception:
    """Return what a failure ends: a run, or the whole sweep.

    Args:
        failure: the last failure of a completion.
        model: label of the model.
        key: where its key comes from, in words.
        fields: from the provider's name of a parameter to the field of the configuration.
        tried: how often and how long it was tried, in words.
    """
    told = f"model {model!r}: {failure.told}"
    endings: Mapping[Kind, Exception] = {
        "context": ContextLimit(told),
        "refused": Refused(told),
        "key": SweepStop(f"{told}; the key in {key} is not accepted, so nothing can succeed with it"),
        "credit": SweepStop(f"{told}; the account of the key in {key} has no credit left"),
        "no_model": ProviderError(f"{told}; the provider does not serve this model, or not to this key"),
    }
    return endings.get(failure.kind) or _provider_error(failure, told, fields, tried)


def _provider_error(failure: Failure, told: str, fields: Mapping[str, str], tried: str) -> RunEnded:
    if failure.kind == "passing":
        return ProviderError(f"{told}; {tried}" if tried else told)
    blamed = blamed_field(failure, fields)
    return ProviderError(f"{told}; set {blamed} of this model to null, or change it" if blamed else told)


def blamed_field(failure: Failure, fields: Mapping[str, str]) -> str | None:
    """Return the field of the configuration that a provider's refusal names, or None.

    The longest name that fits counts: `reasoning.effort` before `reasoning`.
    """
    named = [wire for wire in fields if _names(failure.param, wire)] or [
        wire for wire in fields if re.search(rf"(?<![\w.]){re.escape(wire)}(?!\w)", failure.text)
    ]
    return fields[max(named, key=len)] if named else None


def _names(param: str, wire: str) -> bool:
    return param == wire or param.startswith(f"{wire}.") or param.endswith(f".{wire}")


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return how long a response asks to wait, in any of the three forms in use, or None.

    >>> retry_after_s({"retry-after-ms": "250", "retry-after": "1"}), retry_after_s({"Retry-After": "3"})
    (0.25, 3.0)
    """
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(lower.get(name))
        if seconds is not None:
            return max(0.0, seconds * unit_s)
    try:
        due = parsedate_to_datetime(lower.get("retry-after", ""))
    except ValueError:
        return None
    moment = now or datetime.now(UTC)
    return max(0.0, ((due if due.tzinfo else due.replace(tzinfo=UTC)) - moment).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def error_in(payload: Any) -> Failure | None:
    """Return the failure that a body with status 200 stands for, or None where it holds no error.

    Gateways put the status of the provider behind them into the error's code.
    """
    error = payload.get("error") if isinstance(payload, Mapping) else None
    if not error:
        return None
    status, text, param = described(error)
    return Failure(status or 200, text, raw=str(payload), param=param)


def described(error: Any) -> tuple[int | None, str, str]:
    """Return status (where its code is one), text and parameter of a provider's error object."""
    if not isinstance(error, Mapping):
        return None, str(error), ""
    code = error.get("code")
    number = _number(str(code))
    status = int(number) if number is not None and 400 <= number < 600 else None
    words: Iterable[Any] = (code if status is None else None, error.get("type"), error.get("message"))
    names = dict.fromkeys(str(word) for word in words if word)
    return status, ": ".join(names), str(error.get("param") or "")
