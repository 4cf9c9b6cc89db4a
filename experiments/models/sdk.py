"""Owns what the clients of OpenAI and Anthropic share: one post, its answer as JSON, and its failures as ours."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

import httpx2

from experiments.models.failures import Failure, described

CONNECT_S: Final = 15.0
"""Time to reach a server."""


def quiet(*names: str) -> None:
    """Keep the loggers of clients from telling every request, unless somebody has set their level."""
    for name in names:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


quiet("httpx2")


class StatusError(Protocol):
    """What both clients raise for a status of 400 or more."""

    @property
    def response(self) -> httpx2.Response:
        """The response."""


def timeout(timeout_s: float) -> httpx2.Timeout:
    """Return the time-outs of a client."""
    return httpx2.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))


def payload_of(response: httpx2.Response) -> Any:
    """Return the JSON of a good response.

    Raises:
        Failure: if it holds none.
    """
    try:
        return json.loads(response.content)
    except ValueError:
        start = response.content[:200].decode("utf-8", "replace") or "(nothing)"
        raise Failure(response.status_code, f"a body that is no JSON: {start}", raw=response.text) from None


def failure_of_status(error: StatusError) -> Failure:
    """Return the failure that a response with an error status stands for."""
    response = error.response
    try:
        body = json.loads(response.content)
    except ValueError:
        body = response.text
    named = body.get("error", body) if isinstance(body, Mapping) else body
    _, text, param = described(named)
    return Failure(
        response.status_code,
        text or response.reason_phrase,
        param=param,
        raw=response.text,
        headers=response.headers,
    )


def failure_of_connection(error: Exception) -> Failure:
    """Return the failure that a lost connection or a time-out stands for."""
    cause = error.__cause__
    said = f"{type(cause).__name__}: {cause}".rstrip(": ") if cause is not None else str(error)
    return Failure(None, said)
