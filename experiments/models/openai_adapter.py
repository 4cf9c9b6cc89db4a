"""Owns the models behind OpenAI's client: OpenAI itself by Responses or Chat, and every server that speaks Chat."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from experiments.models import check_names
from experiments.models.openai_chat import ChatForm, chat_completion, chat_messages, chat_request
from experiments.models.openai_responses import (
    ResponsesForm,
    responses_completion,
    responses_items,
    responses_request,
)
from experiments.models.params import EXTRA, fields_of, given, settings_of
from experiments.models.pricing import Price, price_of
from experiments.models.provider import RemoteModel, Wire
from experiments.models.rendering import Growing
from experiments.models.sdk import failure_of_connection, failure_of_status, payload_of, timeout
from experiments.models.service import FIELDS, Service, read_service
from experiments.models.shared import shared
from experiments.run_spec import ModelConfig

URL: Final = "https://api.openai.com/v1"
KEY_ENV: Final = "OPENAI_API_KEY"
APIS: Final = ("responses", "chat")
CHAT_PROVIDER: Final = "openai.chat"

_BOTH: Final = {"temperature": "temperature", "top_p": "top_p", "service_tier": "service_tier"}
RESPONSES_PARAMS: Final[Mapping[str, str]] = {
    **_BOTH,
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "reasoning_summary": "reasoning.summary",
    "verbosity": "text.verbosity",
}
CHAT_PARAMS: Final[Mapping[str, str]] = {
    **_BOTH,
    "reasoning_effort": "reasoning_effort",
    "verbosity": "verbosity",
    "seed": "seed",
    "stop": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
COMPATIBLE_PARAMS: Final[Mapping[str, str]] = {
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
}
"""What servers other than OpenAI take beside `CHAT_PARAMS`."""

_OTHER: Final = ("api", "parallel_tool_calls", EXTRA)
_OF_CHAT: Final = ("replay_reasoning",)
_RESERVED: Final = (
    "model messages input instructions tools tool_choice parallel_tool_calls store include stream n prompt_cache_key"
).split()


def build(config: ModelConfig) -> RemoteModel:
    """Return a model behind OpenAI's client.

    Raises:
        InputError: for a field or a value that is not allowed, or a key that is not set.
    """
    base_url = config.service.get("base_url")
    api = given(config, "api", APIS) or ("chat" if base_url else "responses")
    names = _names(api, base_url)
    check_names(config, params=(*names, *_OTHER, *(_OF_CHAT if api == "chat" else ())), service=FIELDS)
    service = read_service(config, api_key_env=None if base_url else KEY_ENV)
    service.key()
    settings = settings_of(config, names, reserved=_RESERVED)
    parallel = given(config, "parallel_tool_calls", (True, False))
    replay = given(config, "replay_reasoning", (True, False)) is not False
    fields = fields_of(names) | {"parallel_tool_calls": "params.parallel_tool_calls", "max_tokens": "params.max_tokens"}
    wire = (
        _responses(ResponsesForm(config.model, settings, parallel), service, fields)
        if api == "responses"
        else _chat(ChatForm(CHAT_PROVIDER, config.model, settings, parallel, replay), service, fields)
    )
    return RemoteModel(config, service, wire, price(config))


def price(config: ModelConfig) -> Price | None:
    """Return the model's price, or None where it is unknown; no key is needed."""
    return price_of(config, [config.model, f"openai/{config.model}", f"openrouter/{config.model}"])


def _names(api: str, base_url: str | None) -> Mapping[str, str]:
    if api == "responses":
        return RESPONSES_PARAMS
    host = urlsplit(base_url or URL).hostname or ""
    # OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else.
    newest = host.endswith((".openai.com", ".azure.com"))
    limit = "max_completion_tokens" if newest else "max_tokens"
    return {**CHAT_PARAMS, "max_tokens": limit, **(COMPATIBLE_PARAMS if base_url else {})}


def _responses(form: ResponsesForm, service: Service, fields: Mapping[str, str]) -> Wire:
    render = Growing(partial(responses_items, form=form))
    return Wire(
        provider="openai",
        request=partial(responses_request, form=form, render=render),
        send=partial(_post, service, "/responses"),
        read=partial(responses_completion, form=form),
        fields=fields,
    )


def _chat(form: ChatForm, service: Service, fields: Mapping[str, str]) -> Wire:
    render = Growing(partial(chat_messages, form=form))
    return Wire(
        provider="openai",
        request=partial(chat_request, form=form, render=render),
        send=partial(_post, service, "/chat/completions"),
        read=partial(chat_completion, form=form),
        fields=fields,
    )


async def _post(service: Service, path: str, data: bytes) -> Any:
    client = await shared(
        ("openai", service.base_url, service.api_key_env, service.timeout_s),
        lambda: AsyncOpenAI(
            base_url=service.base_url or URL,
            api_key=service.key() or "none",
            max_retries=0,
            timeout=timeout(service.timeout_s),
        ),
        AsyncOpenAI.close,
    )
    try:
        response = await client.post(
            path, cast_to=httpx2.Response, content=data, options={"headers": {"Content-Type": "application/json"}}
        )
    except APIStatusError as error:
        raise failure_of_status(error) from None
    except APIConnectionError as error:
        raise failure_of_connection(error) from None
    return payload_of(response)
