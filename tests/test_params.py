"""Parameters of a model, and where they stand in a request."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import InputError
from experiments.models.params import fields_of, given, settings_of
from experiments.run_spec import ModelConfig

NAMES = {"max_tokens": "max_output_tokens", "effort": "reasoning.effort", "summary": "reasoning.summary"}


def config(**params: Any) -> ModelConfig:
    return ModelConfig("label", "openai", "m", params)


def settings(**params: Any) -> dict[str, Any]:
    return settings_of(config(**params), NAMES, reserved=("model", "tools"))


def test_parameters_stand_under_the_provider_s_names_and_null_ones_nowhere() -> None:
    assert settings(max_tokens=5, effort="low", summary=None) == {
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
    }
    assert settings(effort="low", summary="auto") == {"reasoning": {"effort": "low", "summary": "auto"}}
    assert settings() == {}


def test_whatever_else_goes_into_the_request_as_it_is() -> None:
    assert settings(extra_body={"top_a": 0.1}) == {"top_a": 0.1}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"extra_body": {"tools": []}}, "extra_body holds 'tools'"),
        ({"extra_body": {"max_output_tokens": 1}, "max_tokens": 2}, "extra_body holds 'max_output_tokens'"),
        ({"extra_body": "x"}, "extra_body 'x' is not allowed: a mapping"),
    ],
)
def test_extra_body_may_not_replace_what_is_there(params: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        settings(**params)


def test_value_out_of_a_few_is_checked_with_its_type() -> None:
    assert given(config(a="x"), "a", ("x", "y")) == "x"
    assert given(config(), "a", ("x",)) is None
    assert given(config(a=False), "a", (True, False)) is False
    for value in ("z", 1):
        with pytest.raises(InputError, match=f"a {value!r} is not allowed: True, False"):
            given(config(a=value), "a", (True, False))


def test_fields_lead_back_from_the_provider_s_names() -> None:
    assert fields_of(NAMES)["reasoning.effort"] == "params.effort"
