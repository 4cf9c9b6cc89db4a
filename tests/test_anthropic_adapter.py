"""The adapter of Anthropic: what it takes, and what it sends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from experiments.errors import InputError
from experiments.models import build_model
from experiments.models.anthropic_adapter import STREAMED_FROM_TOKENS
from experiments.models.provider import RemoteModel
from experiments.run_spec import ModelConfig
from tests.peers import Peer
from tests.peers.brain import says
from tests.wire import KEY_ENV, ask, converse, prompt_of


def make(**params: Any) -> RemoteModel:
    built = build_model(ModelConfig("label", "anthropic", "claude-sonnet-5-5", params, {"api_key_env": KEY_ENV}))
    assert isinstance(built, RemoteModel)
    return built


def body(**params: Any) -> dict[str, Any]:
    return make(**params).wire.request(prompt_of())


def test_parameters_stand_where_the_api_wants_them() -> None:
    sent = body(
        max_tokens=5000, thinking="enabled", thinking_budget_tokens=2000, reasoning_effort="low", stop=["END"],
        extra_body={"inference_geo": "eu"},
    )  # fmt: skip
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert sent["output_config"] == {"effort": "low"}
    assert (sent["max_tokens"], sent["stop_sequences"], sent["inference_geo"]) == (5000, ["END"], "eu")


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, "max_tokens None is not allowed"),
        ({"max_tokens": 0}, "max_tokens 0 is not allowed"),
        ({"max_tokens": 9, "seed": 1}, "params field 'seed' is not known"),
        ({"max_tokens": 9, "thinking": "on"}, "thinking 'on' is not allowed: enabled, adaptive"),
        ({"max_tokens": 9, "thinking": "enabled"}, "thinking_budget_tokens goes with thinking=enabled"),
        ({"max_tokens": 9, "thinking_budget_tokens": 1024}, "thinking_budget_tokens goes with thinking=enabled"),
        ({"max_tokens": 9, "betas": "x"}, "betas 'x' is not allowed: a list"),
    ],
)
def test_fields_that_are_not_allowed_are_refused_before_the_first_call(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        make(**params)


def test_answers_are_streamed_from_where_the_client_insists() -> None:
    def insists(max_tokens: int) -> bool:
        async def create() -> None:
            async with AsyncAnthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0) as client:
                await client.messages.create(max_tokens=max_tokens, model="m", messages=[])

        with pytest.raises(Exception) as caught:  # noqa: PT011
            asyncio.run(create())
        return "Streaming is required" in str(caught.value)

    assert insists(STREAMED_FROM_TOKENS) and not insists(STREAMED_FROM_TOKENS - 1)
    assert body(max_tokens=STREAMED_FROM_TOKENS)["stream"] is True
    assert "stream" not in body(max_tokens=STREAMED_FROM_TOKENS - 1)


@pytest.mark.parametrize("route", ["anthropic", "anthropic streamed"])
def test_betas_go_into_their_header(route: str) -> None:
    with Peer(says("ok")) as peer:
        ask(route, peer, betas=["one-2026", "two-2026"])
    assert peer.log[0].headers["anthropic-beta"] == "one-2026,two-2026"
    assert peer.log[0].headers["anthropic-version"]


def test_later_turns_read_the_conversation_from_the_cache() -> None:
    with Peer(says("ok")) as peer:
        peer.change(cache_min_tokens=1)
        usages = [completion.usage for completion in converse("anthropic", peer, 4)]
    assert all(usage is not None for usage in usages)
    assert [usage.cached_tokens > 0 for usage in usages if usage] == [False, True, True, True]
    # All that was written in a turn is read in the next: nothing is paid for twice.
    for before, after in zip(usages, usages[1:], strict=False):
        assert before and after
        assert after.cached_tokens == before.cached_tokens + before.cache_write_tokens
        assert after.input_tokens == 0


def test_prices_of_current_models_are_known() -> None:
    price = make(max_tokens=9).price
    assert price is not None
    assert (price.input_usd, price.cache_write_usd, price.output_usd) == (2.0, 2.5, 10.0)
