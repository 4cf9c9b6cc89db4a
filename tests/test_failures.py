"""What a failed request means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from experiments.errors import ContextLimit, ProviderError, Refused, SweepStop
from experiments.models.failures import (
    LONGEST_TEXT,
    Failure,
    blamed_field,
    described,
    ending,
    error_in,
    kind_of,
    retry_after_s,
)

CONTEXT = [
    "context_length_exceeded: This model's maximum context length is 128000 tokens.",
    "prompt is too long: 200123 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
    "Your input exceeds the context window of this model.",
    "the request exceeds the available context size. try increasing the context size",
    "exceed_context_size_error",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Input is too long for requested model.",
    "`inputs` must have less than 4096 tokens. Given: 5000",
    "Please reduce the length of the messages or completion.",
]


@pytest.mark.parametrize("text", CONTEXT)
def test_every_provider_s_words_for_too_long_a_context_are_known(text: str) -> None:
    assert kind_of(400, text) == "context"


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (None, "connection lost", "passing"),
        (200, "no JSON", "passing"),
        (408, "", "passing"),
        (409, "", "passing"),
        (429, "Rate limit reached", "passing"),
        (500, "", "passing"),
        (502, "", "passing"),
        (529, "Overloaded", "passing"),
        (429, "insufficient_quota: You exceeded your current quota, please check your plan", "credit"),
        (400, "Your credit balance is too low to access the API", "credit"),
        (402, "Insufficient credits", "credit"),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000", "request"),
        (400, "invalid_prompt: Your prompt was flagged as potentially violating our usage policy", "refused"),
        (403, "Your chosen model requires moderation and your input was flagged", "refused"),
        (400, "API key not valid. Please pass a valid API key.", "key"),
        (401, "invalid x-api-key", "key"),
        (403, "permission_error", "key"),
        (404, "The model does not exist", "no_model"),
        (413, "request_too_large", "context"),
        (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens", "request"),
        (400, "temperature: Input should be less than or equal to 1", "request"),
        (422, "unprocessable", "request"),
    ],
)
def test_kind_follows_from_status_and_text(status: int | None, text: str, kind: str) -> None:
    assert kind_of(status, text) == kind


@pytest.mark.parametrize(
    ("failure", "kind", "told"),
    [
        (Failure(400, "prompt is too long"), ContextLimit, "prompt is too long"),
        (Failure(400, "flagged by the usage policy"), Refused, "usage policy"),
        (Failure(401, "no"), SweepStop, "the key in variable K is not accepted"),
        (Failure(402, "no"), SweepStop, "no credit left"),
        (Failure(404, "gone"), ProviderError, "does not serve this model"),
        (Failure(500, "broken"), ProviderError, "model 'm': 500: broken; tried in vain"),
        (Failure(None, "lost"), ProviderError, "model 'm': no response: lost"),
        (Failure(400, "`temperature` is deprecated"), ProviderError, "set params.temperature of this model to null"),
        (Failure(400, "odd"), ProviderError, "model 'm': 400: odd"),
    ],
)
def test_failure_ends_what_it_has_to(failure: Failure, kind: type[Exception], told: str) -> None:
    fields = {"temperature": "params.temperature"}
    error = ending(failure, model="m", key="variable K", fields=fields, tried="tried in vain")
    assert type(error) is kind
    assert told in str(error)


FIELDS = {
    "temperature": "params.temperature",
    "reasoning.effort": "params.reasoning_effort",
    "max_tokens": "params.max_tokens",
    "thinking.budget_tokens": "params.thinking_budget_tokens",
}


@pytest.mark.parametrize(
    ("text", "param", "field"),
    [
        ("Unsupported parameter", "temperature", "params.temperature"),
        ("Unsupported value", "reasoning.effort", "params.reasoning_effort"),
        ("Unsupported parameter: 'max_tokens' is not supported", "", "params.max_tokens"),
        ("thinking.enabled.budget_tokens: Input should be greater", "", None),
        ("max_tokens must be greater than thinking.budget_tokens", "", "params.thinking_budget_tokens"),
        ("my_temperature_sensor", "", None),
        ("no field at all", "messages[2]", None),
    ],
)
def test_field_is_blamed_that_the_provider_names(text: str, param: str, field: str | None) -> None:
    assert blamed_field(Failure(400, text, param=param), FIELDS) == field


def test_pause_is_read_in_all_forms() -> None:
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s({"Retry-After": "12"}) == 12.0
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert retry_after_s({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, now) == 30.0
    assert retry_after_s({"retry-after": "Mon, 30 Nov 2026 11:59:30 GMT"}, now) == 0.0
    assert retry_after_s({"retry-after": "-3"}) == 0.0
    assert retry_after_s({"retry-after": "soon"}) is None
    assert retry_after_s({}) is None


def test_error_object_is_read_with_code_type_and_message() -> None:
    assert described({"code": "model_not_found", "type": "t", "message": "gone", "param": "model"}) == (
        None,
        "model_not_found: t: gone",
        "model",
    )
    assert described({"code": 429, "message": "slow"}) == (429, "slow", "")
    assert described("plain words") == (None, "plain words", "")


def test_body_without_an_error_is_no_failure() -> None:
    assert error_in({"choices": [], "error": None}) is None
    assert error_in([]) is None


def test_long_text_is_cut() -> None:
    failure = Failure(500, "x" * 5000)
    assert len(failure.text) == LONGEST_TEXT + 3
