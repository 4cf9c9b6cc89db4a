"""The adapter of OpenAI and compatible servers: what it takes, and what it sends."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import InputError
from experiments.models import build_model
from experiments.models.provider import RemoteModel
from experiments.run_spec import ModelConfig
from tests.peers import Peer
from tests.peers.brain import says
from tests.wire import KEY, KEY_ENV, ask, prompt_of

LOCAL = "http://127.0.0.1:9/v1"


def make(model: str = "gpt-4o-2024-11-20", *, service: dict[str, Any] | None = None, **params: Any) -> RemoteModel:
    config = ModelConfig("label", "openai", model, params, {"api_key_env": KEY_ENV} | (service or {}))
    built = build_model(config)
    assert isinstance(built, RemoteModel)
    return built


def body(model: RemoteModel) -> dict[str, Any]:
    return model.wire.request(prompt_of())


def test_openai_is_asked_by_responses_and_other_servers_by_chat() -> None:
    assert "input" in body(make())
    assert "messages" in body(make(api="chat"))
    assert "messages" in body(make(service={"base_url": LOCAL}))
    assert "input" in body(make(api="responses", service={"base_url": LOCAL}))


def test_parameters_stand_where_each_api_wants_them() -> None:
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 99, "reasoning_effort": "low", "verbosity": "low"}
    responses = body(make(**sampling, reasoning_summary="auto", parallel_tool_calls=False))
    assert responses["max_output_tokens"] == 99
    assert responses["reasoning"] == {"effort": "low", "summary": "auto"}
    assert responses["text"] == {"verbosity": "low"}
    assert responses["parallel_tool_calls"] is False
    chat = body(make(**sampling, api="chat", seed=7, stop=["END"]))
    assert (chat["max_completion_tokens"], chat["reasoning_effort"], chat["seed"], chat["stop"]) == (
        99,
        "low",
        7,
        ["END"],
    )
    local = body(make(max_tokens=99, top_k=5, extra_body={"min_tokens": 1}, service={"base_url": LOCAL}))
    assert (local["max_tokens"], local["top_k"], local["min_tokens"]) == (99, 5, 1)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"seed": 1}, "params field 'seed' is not known"),
        ({"temprature": 1}, "did you mean 'temperature'"),
        ({"api": "chat", "top_k": 1}, "params field 'top_k' is not known"),
        ({"api": "chat", "reasoning_summary": "auto"}, "params field 'reasoning_summary' is not known"),
        ({"api": "completions"}, "api 'completions' is not allowed: responses, chat"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls 'no' is not allowed"),
    ],
)
def test_field_that_the_api_does_not_know_is_refused_before_the_first_call(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        make(**params)


def test_null_parameters_are_not_sent() -> None:
    assert "temperature" not in body(make(temperature=None, seed=None))


def test_missing_key_is_refused_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        build_model(ModelConfig("label", "openai", "gpt-4o"))
    build_model(ModelConfig("label", "openai", "gpt-4o", service={"base_url": LOCAL}))


@pytest.mark.parametrize(("route", "key"), [("chat", KEY), ("responses", KEY), ("chat", "none")])
def test_key_goes_to_the_server_and_no_other_variable_s_key_does(
    route: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-account-000")
    with Peer(says("ok")) as peer:
        ask(route, peer, **({} if key == KEY else {"api_key_env": None}))
    assert peer.log[0].key == key
    assert "sk-of-another-account-000" not in str(peer.log[0].headers)


def test_price_is_that_of_the_table_or_unknown() -> None:
    known = make().price
    assert known is not None and (known.input_usd, known.output_usd) == (2.5, 10.0)
    assert make("my-own-model").price is None


def test_client_s_own_retries_are_off() -> None:
    from tests.peers import faults
    from tests.peers.faults import when
    from tests.wire import config_of

    with Peer(says("ok"), faults=[when(faults.server_error(), lambda arrival: True)]) as peer:
        with pytest.raises(Exception, match="given up after 1 try"):
            ask("chat", peer, max_tries=1)
        assert config_of("chat", peer).service["base_url"] == peer.openai_url
    assert len(peer.log) == 1
