"""Owns a model behind a provider's API: one path for all of them from a prompt to a completion.

An adapter brings three functions, to render a request, to send it and to read the answer. What lies between them is the
same for all: limits, time-outs, retries, the log of failing calls, prices, and what a failure ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from apex_env.protocol import Json
from experiments.chat import Completion, Prompt
from experiments.models.api_log import ApiLog
from experiments.models.failures import Failure, ending
from experiments.models.pricing import Price, priced
from experiments.models.rates import Gate, make_gate
from experiments.models.redaction import redacted
from experiments.models.rendering import serialised
from experiments.models.retry import GaveUp, persistently
from experiments.models.service import Service
from experiments.models.shared import shared
from experiments.run_spec import ModelConfig

BYTES_PER_TOKEN = 4
"""By which the size of a request is estimated before the provider counts it."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One API."""

    provider: str
    """Name that limits are shared under."""
    request: Callable[[Prompt], dict[str, Json]]
    """From a prompt to the body of a request; a pure function."""
    send: Callable[[bytes], Awaitable[Any]]
    """From the bytes of a body to the payload of its answer. Raises `Failure`."""
    read: Callable[[Any], Completion]
    """From a payload to a completion; a pure function. Raises `Failure` where the payload is none of an answer."""
    fields: Mapping[str, str]
    """From the provider's name of a parameter to the field of the configuration."""


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model that is asked over the network."""

    config: ModelConfig
    service: Service
    wire: Wire
    price: Price | None
    """None where it is unknown."""

    @property
    def name(self) -> str:
        """Label of the model."""
        return self.config.name

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's answer.

        Raises:
            ContextLimit: if the conversation is too long for the model.
            Refused: if the provider refuses the content.
            ProviderError: if the service fails for good, or the request can never be accepted.
            SweepStop: if the key is not accepted, or its account has no credit.
        """
        body = self.wire.request(prompt)
        data = serialised(body)
        gate = await shared(("gate", self.wire.provider, self.service.base_url, self.config.model), self._make_gate)
        secrets = self._secrets()
        log = ApiLog(self.service.log_dir, self.name, secrets) if self.service.log_dir is not None else None
        try:
            completion, attempts = await persistently(
                lambda: self._ask(data, gate),
                self.service.policy,
                on_failure=lambda failure: log.write(body, failure, prompt.position) if log is not None else None,
            )
        except GaveUp as gave_up:
            failure = gave_up.failure
            raise ending(
                failure, model=self.name, key=self.service.key_source, fields=self.wire.fields, tried=gave_up.told
            ) from None
        usage = None if completion.usage is None else priced(completion.usage, self.price)
        return replace(completion, attempts=attempts, usage=usage)

    async def _ask(self, data: bytes, gate: Gate) -> Completion:
        n_estimated = len(data) / BYTES_PER_TOKEN
        async with gate.passed(n_estimated):
            started_s = perf_counter()
            try:
                async with asyncio.timeout(self.service.timeout_s):
                    completion = self._read(await self.wire.send(data))
            except TimeoutError:
                raise Failure(None, f"no whole answer within {self.service.timeout_s:g} s") from None
            except Failure as failure:
                raise _without_secrets(failure, self._secrets()) from None
            latency_s = perf_counter() - started_s
        if completion.usage is not None:
            gate.settle(completion.usage.context_tokens + completion.usage.output_tokens - n_estimated)
        return replace(completion, latency_s=latency_s)

    def _read(self, payload: Any) -> Completion:
        """Return the completion in a payload; one of a form that nobody has described is the service's failure."""
        try:
            return self.wire.read(payload)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            told = f"a body of an unknown form: {type(error).__name__}: {error}"
            raise Failure(200, told, raw=str(payload)) from None

    def _make_gate(self) -> Gate:
        """Return the limits of all runs of this model at this address; those of the first one to ask hold."""
        service = self.service
        return make_gate(
            concurrency=service.concurrency,
            requests_per_minute=service.requests_per_minute,
            tokens_per_minute=service.tokens_per_minute,
        )

    def _secrets(self) -> tuple[str, ...]:
        key = self.service.key()
        return (key,) if key is not None else ()


def _without_secrets(failure: Failure, secrets: tuple[str, ...]) -> Failure:
    return Failure(
        failure.status,
        redacted(failure.text, secrets),
        param=failure.param,
        raw=failure.raw,
        headers=failure.headers,
    )
