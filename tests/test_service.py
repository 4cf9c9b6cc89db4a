"""How a model's provider is reached: the service fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.errors import InputError
from experiments.models.service import Service, read_service
from experiments.run_spec import ModelConfig


def read(**service: Any) -> Service:
    return read_service(ModelConfig("label", "openai", "m", {}, service), api_key_env="USUAL_KEY")


def test_defaults_name_the_usual_key_and_bound_tries_and_time() -> None:
    service = read()
    assert (service.base_url, service.api_key_env, service.timeout_s, service.log_dir) == (None, "USUAL_KEY", 600, None)
    assert (service.policy.max_tries, service.policy.retry_for_s) == (8, 900)
    assert (service.concurrency, service.requests_per_minute, service.tokens_per_minute) == (None, None, None)


def test_null_counts_as_not_given() -> None:
    assert read(max_tries=None, timeout_s=None, concurrency=None, base_url=None) == read()


def test_given_fields_are_taken() -> None:
    service = read(
        base_url="http://localhost:8000/v1/", api_key_env="MY_KEY", concurrency=4, max_tries=2, retry_for_s=7.5,
        requests_per_minute=50, log_api="errors", log_dir="somewhere",
    )  # fmt: skip
    assert (service.base_url, service.api_key_env) == ("http://localhost:8000/v1", "MY_KEY")
    assert (service.concurrency, service.policy.max_tries, service.policy.retry_for_s) == (4, 2, 7.5)
    assert service.requests_per_minute == 50
    assert service.log_dir == Path("somewhere")


def test_key_is_read_when_it_is_needed_and_its_absence_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USUAL_KEY", " sk-1234 \n")
    service = read()
    assert service.key() == "sk-1234"
    monkeypatch.delenv("USUAL_KEY")
    with pytest.raises(InputError, match="environment variable USUAL_KEY is not set"):
        service.key()
    assert "USUAL_KEY" in service.key_source


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("base_url", "localhost:8000", "base_url 'localhost:8000' is not allowed"),
        ("base_url", "ftp://host/v1", "is not allowed: http"),
        ("base_url", 5, "base_url 5 is not allowed: a text"),
        ("concurrency", 0, "concurrency 0 is not allowed: a number above 0"),
        ("concurrency", 1.5, "concurrency 1.5 is not allowed: a whole number"),
        ("max_tries", True, "max_tries True is not allowed"),
        ("timeout_s", "long", "timeout_s 'long' is not allowed"),
        ("requests_per_minute", -1, "requests_per_minute -1 is not allowed"),
        ("log_api", "all", "log_api 'all' is not known"),
        ("api_key_env", "", "api_key_env '' is not allowed"),
    ],
)
def test_values_that_are_not_allowed_are_told_with_field_and_value(field: str, value: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(**{field: value})


@pytest.mark.parametrize(
    "url", ["https://user:pw-canary@host/v1", "https://host/v1?key=canary", "https://host/sk-abcdefghijklmnop"]
)
def test_credential_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError, match="base_url holds a credential") as caught:
        read(base_url=url)
    assert "canary" not in str(caught.value) and "sk-abc" not in str(caught.value)
