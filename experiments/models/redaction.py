"""Owns the removal of secrets from everything that is written: errors, attempts and the log of failing calls."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

MASK: Final = "[redacted]"

SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie"}
)

_SECRET_NAME: Final = re.compile(r"(?i)(api_?key|secret|token|password|credential|authorization)")
_PATTERNS: Final = (
    re.compile(r"(?i)(?<=bearer )[^\s\"',}]{4,}"),
    re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp|xox[abp])[-_]|AIza|AKIA)[A-Za-z0-9*_\-]{12,}"),
    re.compile(r"(?i)(?<=[?&]key=)[^&\s\"']+|(?<=[?&]api_key=)[^&\s\"']+|(?<=[?&]token=)[^&\s\"']+"),
    re.compile(r"(?<=://)[^/\s@\"']+(?=@)"),
)
_LEAST_LENGTH: Final = 6
"""A shorter value is no key, and masking it would garble everything."""


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text without secrets: the values given, those in the environment, and whatever is formed like a key.

    >>> redacted("401 for Authorization: Bearer abcdefgh at https://user:pw@host/?key=123")
    '401 for Authorization: Bearer [redacted] at https://[redacted]@host/?key=[redacted]'
    """
    for secret in sorted({*secrets, *_in_environment()}, key=len, reverse=True):
        if len(secret) >= _LEAST_LENGTH:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(MASK, text)
    return text


def looks_secret(text: str) -> bool:
    """Whether a text holds what is formed like a key, or a secret of the environment."""
    return redacted(text) != text


def safe_headers(headers: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """Return headers with those that carry credentials masked."""
    return {
        name: MASK if name.lower() in SECRET_HEADERS else redacted(str(value), secrets)
        for name, value in headers.items()
    }


def _in_environment() -> Iterator[str]:
    """Iterate over the values of variables that are named like keys; words, numbers and paths are none."""
    for name, value in os.environ.items():
        plain = value.isalpha() or value.isdigit() or value.startswith(("/", "~"))
        if _SECRET_NAME.search(name) and not plain:
            yield value
