"""The adapter of litellm: what it takes, and that litellm does nothing on its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any

import pytest

from experiments.errors import InputError
from experiments.models import build_model
from experiments.models.litellm_adapter import ENVIRONMENT, failure_of, library
from experiments.models.provider import RemoteModel
from experiments.run_spec import ModelConfig
from tests.payload_files import payload
from tests.peers import Peer
from tests.peers.brain import says
from tests.wire import KEY, KEY_ENV, LITELLM_WARNINGS, ask, prompt_of

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)


def make(model: str = "deepseek/deepseek-v4-pro", **params: Any) -> RemoteModel:
    built = build_model(ModelConfig("label", "litellm", model, params, {"api_key_env": KEY_ENV}))
    assert isinstance(built, RemoteModel)
    return built


def test_importing_the_adapter_does_not_import_litellm() -> None:
    code = (
        "import sys, experiments.models.litellm_adapter, experiments.models.openai_adapter,"
        " experiments.models.anthropic_adapter; assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_litellm_is_imported_offline_and_without_a_dotenv_file() -> None:
    litellm = library()
    assert {name: os.environ[name] for name in ENVIRONMENT} == dict(ENVIRONMENT)
    assert (litellm.drop_params, litellm.num_retries) == (False, 0)
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)


@pytest.mark.parametrize(
    ("model", "params", "told"),
    [
        ("no-such-model", {}, "litellm knows no provider of 'no-such-model'; its form is PROVIDER/MODEL"),
        ("deepseek/deepseek-v4-pro", {"temprature": 1}, "did you mean 'temperature'"),
        ("deepinfra/x", {"verbosity": "low"}, "params field for provider deepinfra 'verbosity' is not known"),
        ("deepseek/deepseek-v4-pro", {"extra_body": {"messages": []}}, "extra_body holds 'messages'"),
    ],
)
def test_fields_that_are_not_known_are_refused_before_the_first_call(
    model: str, params: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        make(model, **params)


def test_ids_of_google_are_kept_without_the_signature_that_litellm_hangs_on_them() -> None:
    from experiments.models.litellm_adapter import _payload

    (choice,) = _payload(payload("litellm_gemini"))["choices"]
    assert choice["message"]["tool_calls"][0]["id"] == "call_77"


def test_mistral_gets_ids_of_its_own_form() -> None:
    from apex_env.protocol import ToolCall
    from experiments.chat import Message, user

    call = ToolCall("call_1", "buy_stock", {})
    conversation = [user("x"), Message("assistant", "", (call,)), Message("tool", "r", call_id="call_1")]
    body = make("mistral/mistral-large-latest").wire.request(prompt_of(conversation))
    (sent,) = body["messages"][2]["tool_calls"]
    assert len(sent["id"]) == 9 and sent["id"] == body["messages"][3]["tool_call_id"]


def test_parameters_reach_the_provider() -> None:
    with Peer(says("ok")) as peer:
        ask("litellm", peer, temperature=0.5, max_tokens=99)
    assert (peer.log[0].body["temperature"], peer.log[0].body["max_tokens"]) == (0.5, 99)
    assert peer.log[0].key == KEY


def test_exception_that_is_no_answer_of_a_service_is_no_failure() -> None:
    assert failure_of(TypeError("a bug")) is None


def test_prices_are_those_of_the_table() -> None:
    price = make().price
    assert price is not None
    assert (price.input_usd, price.cached_usd, price.output_usd) == pytest.approx((1.32, 0.044, 3.96))
