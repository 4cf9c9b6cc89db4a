"""Secrets are removed from what is written."""

from __future__ import annotations

import pytest

from experiments.models.redaction import MASK, looks_secret, redacted, safe_headers


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-123",
        "key sk-proj-ABCDEFGHIJKL0123 was refused",
        "AIzaSyA0123456789abcdef",
        "https://user:pa55word@host/v1",
        "https://host/v1?key=abcdef123&x=1",
        "gsk_ABCDEFGHIJKL0123",
    ],
)
def test_what_is_formed_like_a_key_is_masked(text: str) -> None:
    assert MASK in redacted(text)
    assert looks_secret(text)


@pytest.mark.parametrize("text", ["risk-adjusted-return", "The task-based approach", "http://localhost:8000/v1", "429"])
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert redacted(text) == text


def test_given_secrets_are_masked_wherever_they_stand() -> None:
    assert redacted('{"a":"xcanary-1y"}', ["canary-1"]) == f'{{"a":"x{MASK}y"}}'


def test_secrets_of_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-77")
    monkeypatch.setenv("SOME_TOKEN_FILE", "/run/secrets/x1")
    monkeypatch.setenv("SOME_TOKEN_LIMIT", "4096000")
    assert redacted("canary-77 in /run/secrets/x1 of 4096000") == f"{MASK} in /run/secrets/x1 of 4096000"


def test_headers_with_credentials_are_masked() -> None:
    assert safe_headers({"X-Api-Key": "k", "Authorization": "Bearer k", "x-request-id": "req_1"}) == {
        "X-Api-Key": MASK,
        "Authorization": MASK,
        "x-request-id": "req_1",
    }
