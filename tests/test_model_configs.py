"""The configurations of providers' models: each composes, builds, and has a price where its provider is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from anthropic.types.model import Model as AnthropicModel
from openai.types.shared.chat_model import ChatModel

from experiments.models import build_model
from experiments.models.pricing import price_table
from experiments.models.provider import RemoteModel
from experiments.models.service import FIELDS
from experiments.run import settings_of
from experiments.run_spec import ModelConfig
from tests.wire import LITELLM_WARNINGS, prompt_of

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

FOLDER = Path(__file__).parent.parent / "conf" / "model"
ADAPTERS = ("openai", "anthropic", "litellm")
DATED = {
    "claude_3_5_sonnet": "claude-3-5-sonnet-20241022",
    "claude_3_5_haiku": "claude-3-5-haiku-20241022",
    "gpt_4o": "gpt-4o-2024-11-20",
    "gpt_4o_mini": "gpt-4o-mini-2024-07-18",
}
OPEN = ("local", "openrouter")
"""Their model is the user's to name."""


def entries() -> dict[str, dict[str, Any]]:
    found = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}
    return {key: entry for key, entry in found.items() if entry["adapter"] in ADAPTERS}


ENTRIES = entries()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APEX_RESULTS", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for entry in ENTRIES.values():
        if entry["service"]["api_key_env"]:
            monkeypatch.setenv(entry["service"]["api_key_env"], "sk-test-0123456789abcdef")


@pytest.mark.parametrize("key", ENTRIES)
def test_package_is_that_of_the_file_and_every_service_field_can_be_overridden(key: str) -> None:
    assert (FOLDER / f"{key}.yaml").read_text().startswith(f"# @package models.{key}\n")
    assert key.replace("_", "").isalnum()
    assert set(ENTRIES[key]["service"]) == set(FIELDS)


@pytest.mark.parametrize(("key", "model"), DATED.items())
def test_models_of_the_paper_are_the_dated_ones(key: str, model: str) -> None:
    assert ENTRIES[key]["model"] == model


@pytest.mark.parametrize("key", [key for key in ENTRIES if key not in (*OPEN, *DATED)])
def test_model_is_one_that_the_table_or_the_client_knows(key: str) -> None:
    known = {*price_table(), *get_args(ChatModel), *get_args(get_args(AnthropicModel)[0])}
    assert ENTRIES[key]["model"] in known


def test_all_compose_build_and_make_a_request() -> None:
    named = [f"models.{key}.model=some/model" for key in OPEN]
    settings = settings_of([f"model=[{','.join(ENTRIES)}]", *named])
    assert len(settings.models) == len(ENTRIES)
    for config in settings.models:
        model = build_model(config)
        assert isinstance(model, RemoteModel)
        assert model.wire.request(prompt_of())["model"] == config.model
        assert (model.price is None) == (config.name in OPEN), config.name
        assert config.service["log_dir"] == "results/scratch/_api"


def test_every_parameter_of_an_adapter_is_listed_so_that_it_can_be_overridden() -> None:
    for key in ENTRIES:
        config = ModelConfig(
            **ENTRIES[key] | {"model": ENTRIES[key]["model"] or "m", "service": {}, "params": {"?": 1}}
        )
        with pytest.raises(Exception, match="allowed: ") as caught:
            build_model(config)
        allowed = {name.strip() for name in str(caught.value).rpartition("allowed: ")[2].split(",")}
        assert allowed - {"top_k", "min_p", "repetition_penalty"} <= set(ENTRIES[key]["params"])
