"""Owns the models behind Anthropic's client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, AsyncStream

from experiments.errors import InputError
from experiments.models import check_names
from experiments.models.anthropic_messages import MessagesForm, messages_completion, messages_request, messages_turns
from experiments.models.anthropic_stream import payload_of_events
from experiments.models.failures import Failure
from experiments.models.params import EXTRA, fields_of, given, settings_of
from experiments.models.pricing import Price, price_of
from experiments.models.provider import RemoteModel, Wire
from experiments.models.rendering import Growing
from experiments.models.sdk import failure_of_connection, failure_of_status, payload_of, timeout
from experiments.models.service import FIELDS, Service, read_service
from experiments.models.shared import shared
from experiments.run_spec import ModelConfig

URL: Final = "https://api.anthropic.com"
KEY_ENV: Final = "ANTHROPIC_API_KEY"

STREAMED_FROM_TOKENS: Final = 21_334
"""Output limit from which the client wants answers streamed: it expects more than ten minutes (128,000 an hour)."""

PARAMS: Final[Mapping[str, str]] = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
    "reasoning_effort": "output_config.effort",
    "thinking": "thinking.type",
    "thinking_budget_tokens": "thinking.budget_tokens",
    "thinking_display": "thinking.display",
    "service_tier": "service_tier",
    "speed": "speed",
}
THINKING: Final = ("enabled", "adaptive", "between_tools", "disabled")

_OTHER: Final = ("parallel_tool_calls", "betas", EXTRA)
_RESERVED: Final = "model messages system tools tool_choice stream".split()


def build(config: ModelConfig) -> RemoteModel:
    """Return a model behind Anthropic's client.

    Raises:
        InputError: for a field or a value that is not allowed, or a key that is not set.
    """
    check_names(config, params=(*PARAMS, *_OTHER), service=FIELDS)
    service = read_service(config, api_key_env=None if config.service.get("base_url") else KEY_ENV)
    service.key()
    max_tokens = config.params.get("max_tokens")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise InputError(f"model {config.name!r}: max_tokens {max_tokens!r} is not allowed: 1 or more output tokens")
    thinking = given(config, "thinking", THINKING)
    if (config.params.get("thinking_budget_tokens") is not None) != (thinking == "enabled"):
        raise InputError(f"model {config.name!r}: thinking_budget_tokens goes with thinking=enabled, and only with it")
    form = MessagesForm(
        config.model,
        settings_of(config, PARAMS, reserved=_RESERVED),
        given(config, "parallel_tool_calls", (True, False)),
        streamed=max_tokens >= STREAMED_FROM_TOKENS,
    )
    wire = Wire(
        provider="anthropic",
        request=partial(messages_request, form=form, render=Growing(partial(messages_turns, form=form))),
        send=partial(_post, service, headers=_headers(config), streamed=form.streamed),
        read=partial(messages_completion, form=form),
        fields=fields_of(PARAMS) | {"disable_parallel_tool_use": "params.parallel_tool_calls"},
    )
    return RemoteModel(config, service, wire, price(config))


def price(config: ModelConfig) -> Price | None:
    """Return the model's price, or None where it is unknown; no key is needed."""
    return price_of(config, [config.model])


def _headers(config: ModelConfig) -> dict[str, str]:
    betas = config.params.get("betas")
    headers = {"Content-Type": "application/json"}
    if betas is None:
        return headers
    if not isinstance(betas, list) or not all(isinstance(beta, str) for beta in betas):
        raise InputError(f"model {config.name!r}: betas {betas!r} is not allowed: a list of names")
    return headers | {"anthropic-beta": ",".join(betas)}


async def _post(service: Service, data: bytes, headers: Mapping[str, str], *, streamed: bool) -> Any:
    client = await shared(
        ("anthropic", service.base_url, service.api_key_env, service.timeout_s),
        lambda: AsyncAnthropic(
            base_url=service.base_url or URL,
            api_key=service.key() or "none",
            max_retries=0,
            timeout=timeout(service.timeout_s),
        ),
        AsyncAnthropic.close,
    )
    try:
        response: httpx2.Response = await client.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            content=data,
            options={"headers": headers},
            stream=streamed,
        )
    except APIStatusError as error:
        raise failure_of_status(error) from None
    except APIConnectionError as error:
        raise failure_of_connection(error) from None
    return await _streamed_payload(response) if streamed else payload_of(response)


async def _streamed_payload(response: httpx2.Response) -> Any:
    try:
        events = [json.loads(event.data) async for event in AsyncStream.raw_events(response) if event.data]
    except httpx2.HTTPError as error:
        raise Failure(None, f"{type(error).__name__}: {error}".rstrip(": ")) from None
    except ValueError as error:
        raise Failure(200, f"an event of the stream is no JSON: {error}") from None
    finally:
        await response.aclose()
    return payload_of_events(events)
