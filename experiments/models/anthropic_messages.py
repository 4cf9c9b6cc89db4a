"""Owns the form of Anthropic's Messages: from a prompt to a request, from a payload to a completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from apex_env.protocol import Json, ToolCall, ToolSpec
from experiments.chat import Completion, Message, Native, Prompt, Stop, Usage
from experiments.models.failures import Failure, described
from experiments.models.rendering import (
    CLOSED,
    NO_ANSWER,
    arguments_object,
    calls_of,
    checked_arguments,
    exchanges,
    native_of,
    scrubbed,
    sendable,
    wire_id,
    wire_name,
    wire_text,
)

PROVIDER: Final = "anthropic"
"""Name under which native forms are kept."""

STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status of each type of error; errors within a stream come without one."""

_THINKING: Final = ("thinking", "redacted_thinking")
_MARK: Final = {"type": "ephemeral"}
_STOPS: Final[Mapping[str, Stop]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}

Block = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class MessagesForm:
    """What a request holds beside the prompt."""

    model: str
    settings: Mapping[str, Json]
    """Parameters in the API's own names."""
    parallel_calls: bool | None = None
    streamed: bool = False

    @property
    def thinks_by_budget(self) -> bool:
        """Whether thinking is on with a manual budget."""
        return (self.settings.get("thinking") or {}).get("type") == "enabled"


def messages_request(
    prompt: Prompt, form: MessagesForm, render: Callable[[Sequence[Message]], list[dict[str, Json]]] | None = None
) -> dict[str, Json]:
    """Return the body of a request; tools, system and the newest two user turns are marked for the cache.

    Args:
        prompt: what the model sees.
        form: what the request holds beside it.
        render: `messages_turns` with this form, where what it gives is kept.
    """
    messages = list((render or partial(messages_turns, form=form))(prompt.messages))
    if prompt.messages and prompt.messages[0].role == "assistant":
        messages.insert(0, _message("user", [_text_block("")]))
    _mark_newest(messages)
    body: dict[str, Json] = {"model": form.model, "messages": messages, **form.settings}
    if prompt.system.strip():
        body["system"] = [{"type": "text", "text": scrubbed(prompt.system), "cache_control": _MARK}]
    if prompt.tools:
        tools = [_tool(tool) for tool in prompt.tools]
        body["tools"] = [*tools[:-1], {**tools[-1], "cache_control": _MARK}]
        choice = _tool_choice(prompt, form)
        if choice is not None:
            body["tool_choice"] = choice
    if form.streamed:
        body["stream"] = True
    return body


def messages_completion(payload: Any, form: MessagesForm) -> Completion:
    """Return the completion that a payload holds.

    Raises:
        Failure: if it holds an error, or none of an answer.
    """
    failure = _error_in(payload)
    if failure is not None:
        raise failure
    content = [block for block in payload["content"] if isinstance(block, Mapping)]
    calls = calls_of(
        (str(block.get("id") or ""), str(block.get("name") or ""), checked_arguments(block.get("input")))
        for block in content
        if block.get("type") == "tool_use"
    )
    text = "".join(str(block.get("text") or "") for block in content if block.get("type") == "text")
    reason = str(payload.get("stop_reason") or "")
    if reason == "refusal" and not text:
        text = str((payload.get("stop_details") or {}).get("explanation") or "")
    native = Native(PROVIDER, form.model, _replayable(content)) if _needs_native(content) else None
    return Completion(
        Message("assistant", text, calls, native=native),
        _STOPS.get(reason) or ("calls" if calls else "done"),
        usage=messages_usage(payload.get("usage")),
        model_reported=str(payload.get("model") or ""),
    )


def messages_usage(usage: Any) -> Usage | None:
    """Return the usage in the accounting of all providers; this API's input leaves out what the cache is used for."""
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        input_tokens=int(usage.get("input_tokens") or 0),
        cached_tokens=int(usage.get("cache_read_input_tokens") or 0),
        cache_write_tokens=int(usage.get("cache_creation_input_tokens") or 0),
        output_tokens=int(usage.get("output_tokens") or 0),
        reasoning_tokens=int((usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0),
    )


def messages_turns(messages: Sequence[Message], form: MessagesForm) -> Iterator[dict[str, Json]]:
    """Iterate over the messages of a request that whole exchanges make."""
    for answer, said in exchanges(messages):
        foreign = False
        if answer is not None:
            blocks = list(_answer_blocks(answer, form))
            foreign = bool(answer.calls) and blocks[0].get("type") not in _THINKING
            yield _message("assistant", blocks)
        results = [_result_block(message) for message in said if message.role == "tool"]
        texts = [_text_block(message.text) for message in said if message.role == "user"]
        if results and texts and foreign and form.thinks_by_budget:
            yield _message("user", results)
            yield _message("assistant", [_text_block(CLOSED)])
            results = []
        if results or texts:
            yield _message("user", [*results, *texts])


def _answer_blocks(message: Message, form: MessagesForm) -> Iterator[Block]:
    native = native_of(message, PROVIDER, form.model)
    if native is None:
        if message.text.strip() or not message.calls:
            yield _text_block(message.text, blank=NO_ANSWER)
        yield from (_call_block(call) for call in message.calls)
        return
    calls = iter(message.calls)
    kept = [_call_block(next(calls)) if block.get("type") == "tool_use" else block for block in native]
    yield from kept
    # Thinking alone, cut off at the length limit, is no message.
    if all(block.get("type") in _THINKING for block in kept):
        yield _text_block(message.text, blank=NO_ANSWER)


def _replayable(content: Sequence[Block]) -> list[Block]:
    """Return the blocks that the service takes back.

    Thinking goes back byte for byte or, where it was cut off and has no signature, or has no form in UTF-8, not at all.
    """
    kept: list[Block] = []
    for block in content:
        kind, clean = block.get("type"), sendable(block)
        if kind == "thinking" and (not block.get("signature") or clean != block):
            continue
        if kind == "text" and not str(block.get("text") or "").strip():
            continue
        kept.append(clean)
    return kept


def _needs_native(content: Sequence[Block]) -> bool:
    """Whether blocks hold more than one text and, after it, calls."""
    kinds = [block.get("type") for block in content]
    return kinds != ["text"] * min(1, kinds.count("text")) + ["tool_use"] * kinds.count("tool_use")


def _mark_newest(messages: list[dict[str, Json]]) -> None:
    """Mark the last block of the newest two user messages: where this request is cached, and where the last one was."""
    places = (place for place in reversed(range(len(messages))) if messages[place]["role"] == "user")
    for place in islice(places, 2):
        *before, last = messages[place]["content"]
        messages[place] = _message("user", [*before, {**last, "cache_control": _MARK}])


def _tool_choice(prompt: Prompt, form: MessagesForm) -> dict[str, Json] | None:
    if prompt.tool_use == "none":
        return {"type": "none"}
    if form.parallel_calls is None:
        return None
    return {"type": "auto", "disable_parallel_tool_use": not form.parallel_calls}


def _tool(tool: ToolSpec) -> dict[str, Json]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _message(role: str, content: Sequence[Block]) -> dict[str, Json]:
    return {"role": role, "content": content}


def _text_block(text: str, **blank: str) -> Block:
    return {"type": "text", "text": wire_text(text, **blank)}


def _call_block(call: ToolCall) -> Block:
    return {
        "type": "tool_use",
        "id": wire_id(call.call_id),
        "name": wire_name(call.name),
        "input": arguments_object(call.arguments),
    }


def _result_block(message: Message) -> Block:
    return {"type": "tool_result", "tool_use_id": wire_id(message.call_id), "content": wire_text(message.text)}


def _error_in(payload: Any) -> Failure | None:
    if isinstance(payload, Mapping) and payload.get("error"):
        return error_of(payload["error"], raw=str(payload))
    if isinstance(payload, Mapping) and isinstance(payload.get("content"), list):
        return None
    return Failure(200, f"a body without an answer: {str(payload)[:200]}", raw=str(payload))


def error_of(error: Any, *, raw: str) -> Failure:
    """Return the failure that an error object stands for which came with status 200."""
    status, text, param = described(error)
    kind = error.get("type") if isinstance(error, Mapping) else None
    return Failure(status or STATUS_OF.get(str(kind), 200), text, raw=raw, param=param)
