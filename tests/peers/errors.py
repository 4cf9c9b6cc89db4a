"""Refusals of a service, with status, headers and body in each protocol's own form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.peers.neutral import Json, Protocol

_OPENAI_TYPE = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    403: "insufficient_permissions",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
    500: "server_error",
    503: "server_error",
    529: "server_error",
}
_ANTHROPIC_TYPE = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class ApiError:
    """What a service says when it refuses."""

    status: int
    message: str
    param: str | None = None
    """The parameter at fault; only the OpenAI protocols have a field for it."""
    code: str | None = None
    """Machine-readable reason; only the OpenAI protocols have one."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, protocol: Protocol, request_id: str) -> Json:
        """The JSON body of the refusal."""
        if protocol == "messages":
            kind = _ANTHROPIC_TYPE.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": self.message}, "request_id": request_id}
        kind = _OPENAI_TYPE.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Rejected(Exception):
    """The service does not take the request."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


def invalid(message: str, param: str | None = None, code: str | None = None) -> Rejected:
    """A 400."""
    return Rejected(ApiError(400, message, param, code))


def bad_key(protocol: Protocol, key: str) -> Rejected:
    """A 401 for a missing or a wrong key."""
    if protocol == "messages":
        return Rejected(ApiError(401, "invalid x-api-key" if key else "x-api-key header is required"))
    if not key:
        return Rejected(ApiError(401, "You didn't provide an API key."))
    shown = f"{key[:3]}***{key[-4:]}" if len(key) > 8 else "***"
    return Rejected(ApiError(401, f"Incorrect API key provided: {shown}.", None, "invalid_api_key"))


def no_model(protocol: Protocol, model: str) -> Rejected:
    """A 404 for a model that is unknown or retired."""
    if protocol == "messages":
        return Rejected(ApiError(404, f"model: {model}"))
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Rejected(ApiError(404, message, None, "model_not_found"))


def too_long(protocol: Protocol, n_tokens: int, limit: int) -> Rejected:
    """A 400 for a prompt that exceeds the context window."""
    if protocol == "messages":
        return invalid(f"prompt is too long: {n_tokens} tokens > {limit} maximum")
    if protocol == "responses":
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return invalid(message, "input", "context_length_exceeded")
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {n_tokens} tokens."
        " Please reduce the length of the messages."
    )
    return invalid(message, "messages", "context_length_exceeded")


def unsupported(protocol: Protocol, param: str) -> Rejected:
    """A 400 for a parameter that exists but that this model does not take."""
    if protocol == "messages":
        return invalid(f"`{param}` is deprecated for this model.")
    message = f"Unsupported parameter: '{param}' is not supported with this model."
    return invalid(message, param, "unsupported_parameter")
