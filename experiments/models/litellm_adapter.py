"""Owns the models behind litellm: every provider that has no adapter of its own, in the form of Chat Completions.

litellm is imported when the first model asks for it, which takes seconds. It fetches nothing on its own, reads no
`.env` file and retries nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Final

import orjson

from apex_env.protocol import Json
from experiments.errors import InputError
from experiments.models import check_names, not_known
from experiments.models.failures import Failure
from experiments.models.openai_chat import ChatForm, chat_completion, chat_messages, chat_request
from experiments.models.params import EXTRA, fields_of, given, settings_of
from experiments.models.pricing import Price, price_of
from experiments.models.provider import RemoteModel, Wire
from experiments.models.rendering import ANY_SERVICE, MISTRAL, Growing
from experiments.models.sdk import quiet
from experiments.models.service import FIELDS, Service, read_service
from experiments.models.shared import shared
from experiments.run_spec import ModelConfig

ENVIRONMENT: Final[Mapping[str, str]] = {
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
"""Set before litellm is imported: no prices, headers or news are fetched, and no `.env` file is read."""

PARAMS: Final[Mapping[str, str]] = {
    name: name
    for name in (
        "max_tokens temperature top_p seed stop frequency_penalty presence_penalty reasoning_effort verbosity"
        " service_tier top_k"
    ).split()
}
_OTHER: Final = ("parallel_tool_calls", "replay_reasoning", EXTRA)
_RESERVED: Final = "model messages tools tool_choice parallel_tool_calls stream n api_key api_base".split()
_NOT_OPENAI: Final = ("top_k",)
"""Parameters that litellm passes on as they are, so that it cannot be asked whether the provider knows them."""

_OF_ANTHROPIC: Final = ("anthropic", "bedrock", "vertex_ai", "azure_ai")
"""Providers of Anthropic's models, for which litellm makes a manual budget of the reasoning effort."""

_THOUGHT: Final = "__thought__"
"""After it, litellm puts Google's signature into the id of a call; the signature also stands in a field of its own."""

_LOST: Final = frozenset(
    "APITimeoutError Timeout ConnectError ConnectTimeout ReadError ReadTimeout WriteError RemoteProtocolError"
    " PoolTimeout".split()
)
"""Exceptions that say that there was no response; their names, because the HTTP clients below litellm vary."""


def build(config: ModelConfig) -> RemoteModel:
    """Return a model behind litellm.

    Raises:
        InputError: for a field or a value that is not allowed, a provider that litellm does not know, a parameter that
            the provider does not know, or a key that is not set.
    """
    check_names(config, params=(*PARAMS, *_OTHER), service=FIELDS)
    service = read_service(config, api_key_env=None)
    service.key()
    provider = _check_provider(config)
    form = ChatForm(
        f"litellm.{provider}",
        config.model,
        settings_of(config, PARAMS, reserved=_RESERVED),
        given(config, "parallel_tool_calls", (True, False)),
        replay_reasoning=given(config, "replay_reasoning", (True, False)) is not False,
        ids=MISTRAL if provider in ("mistral", "codestral") else ANY_SERVICE,
        closes_foreign=(
            provider in _OF_ANTHROPIC and "claude" in config.model and config.params.get("reasoning_effort") is not None
        ),
    )

    wire = Wire(
        provider=f"litellm.{provider}",
        request=partial(chat_request, form=form, render=Growing(partial(chat_messages, form=form))),
        send=partial(_ask, service),
        read=partial(chat_completion, form=form),
        fields=fields_of(PARAMS) | {"parallel_tool_calls": "params.parallel_tool_calls"},
    )
    return RemoteModel(config, service, wire, price(config))


def price(config: ModelConfig) -> Price | None:
    """Return the model's price, or None where it is unknown; no key is needed."""
    return price_of(config, [config.model, config.model.partition("/")[2]])


@lru_cache(maxsize=1)
def library() -> Any:
    """Return litellm, set up to do nothing on its own."""
    os.environ.update(ENVIRONMENT)
    quiet("httpx", "LiteLLM")
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.drop_params = False
    litellm.num_retries = 0
    return litellm


def _check_provider(config: ModelConfig) -> str:
    """Return the provider, after a look at what it knows."""
    litellm = library()
    try:
        _, provider, _, _ = litellm.get_llm_provider(model=config.model)
    except litellm.BadRequestError:
        raise InputError(
            f"model {config.name!r}: litellm knows no provider of {config.model!r}; its form is PROVIDER/MODEL"
        ) from None
    known = litellm.get_supported_openai_params(model=config.model, custom_llm_provider=provider)
    for name, value in config.params.items():
        if value is not None and known and name in PARAMS and name not in (*known, *_NOT_OPENAI):
            kept = [each for each in PARAMS if each in known]
            raise InputError(not_known(f"model {config.name!r}: params field for provider {provider}", name, kept))
    return str(provider)


async def _ask(service: Service, data: bytes) -> Any:
    litellm = library()
    # A copy of the request, because litellm changes the messages that it is given.
    body: dict[str, Json] = orjson.loads(data)
    await shared(("litellm",), lambda: litellm, _close)
    try:
        response = await litellm.acompletion(
            **body,
            api_key=service.key(),
            api_base=service.base_url,
            timeout=service.timeout_s,
            num_retries=0,
            max_retries=0,
        )
    except Exception as error:
        # litellm raises what its many providers raise, so anything that is no failure of a service goes on its way.
        failure = failure_of(error)
        if failure is None:
            raise
        raise failure from None
    return _payload(response.model_dump())


def failure_of(error: Exception) -> Failure | None:
    """Return the failure that an exception of litellm stands for, or None where it is no answer of a service.

    litellm replaces some statuses (a 529 by a 500) and makes up others for lost connections; the exception at the root
    of the chain knows better.
    """
    chain = list(_chain(error))
    lost = any(type(each).__name__ in _LOST for each in chain)
    statuses = [status for status in map(_status, chain) if status is not None]
    if not lost and not statuses:
        return None
    return Failure(
        None if lost else statuses[-1],
        str(getattr(error, "message", "") or error),
        param=str(getattr(error, "param", "") or ""),
        raw=str(error),
        headers=getattr(error, "litellm_response_headers", None),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def _status(error: BaseException) -> int | None:
    try:
        return int(getattr(error, "status_code", None) or "")
    except (TypeError, ValueError):
        return None


def _payload(payload: dict[str, Json]) -> dict[str, Json]:
    """Return litellm's answer with the ids of calls as the provider gave them."""
    for choice in payload.get("choices") or ():
        for call in (choice.get("message") or {}).get("tool_calls") or ():
            call["id"] = str(call.get("id") or "").partition(_THOUGHT)[0]
    return payload


async def _close(litellm: Any) -> None:
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
