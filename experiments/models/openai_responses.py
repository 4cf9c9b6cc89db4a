"""Owns the form of OpenAI's Responses: from a prompt to a request, from a payload to a completion.

Nothing is stored at the provider: reasoning comes encrypted and goes back with the conversation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from apex_env.protocol import Json, ToolCall, ToolSpec
from experiments.chat import Completion, Message, Native, Prompt, Stop, Usage
from experiments.models.failures import Failure, described
from experiments.models.rendering import (
    NO_ANSWER,
    arguments_text,
    calls_of,
    exchanges,
    joined,
    native_of,
    read_arguments,
    scrubbed,
    sendable,
    wire_id,
    wire_name,
    wire_text,
)

PROVIDER: Final = "openai.responses"
"""Name under which native forms are kept."""

_REFUSING: Final = ("invalid_prompt", "bio_policy", "misalignment_policy_violation")
_CALL: Final = "function_call"


Item = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ResponsesForm:
    """What a request holds beside the prompt."""

    model: str
    settings: Mapping[str, Json]
    """Parameters in the API's own names."""
    parallel_calls: bool | None = None


def responses_request(
    prompt: Prompt, form: ResponsesForm, render: Callable[[Sequence[Message]], list[Item]] | None = None
) -> dict[str, Json]:
    """Return the body of a request.

    Args:
        prompt: what the model sees.
        form: what the request holds beside it.
        render: `responses_items` with this form, where what it gives is kept.
    """
    body: dict[str, Json] = {
        "model": form.model,
        "input": list((render or partial(responses_items, form=form))(prompt.messages)),
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": cache_key(prompt),
        **form.settings,
    }
    if prompt.system.strip():
        body["instructions"] = scrubbed(prompt.system)
    if prompt.tools:
        body["tools"] = [_tool(tool) for tool in prompt.tools]
        if prompt.tool_use == "none":
            body["tool_choice"] = "none"
        if form.parallel_calls is not None:
            body["parallel_tool_calls"] = form.parallel_calls
    return body


def cache_key(prompt: Prompt) -> str:
    """Return what sends the requests of a conversation, and of those that branch from it, to the same cache."""
    first = prompt.messages[0].text if prompt.messages else ""
    return hashlib.sha256(f"{prompt.system}\0{first}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def responses_completion(payload: Any, form: ResponsesForm) -> Completion:
    """Return the completion that a payload holds.

    Raises:
        Failure: if it holds an error, or none of an answer.
    """
    _refuse_failed(payload)
    output = [item for item in payload["output"] if isinstance(item, Mapping)]
    sent = [item for item in output if item.get("type") == _CALL]
    calls = calls_of(
        (str(item.get("call_id") or ""), str(item.get("name") or ""), read_arguments(str(item.get("arguments") or "")))
        for item in sent
    )
    text, refusal = _said(output, "text"), _said(output, "refusal")
    reason = str((payload.get("incomplete_details") or {}).get("reason") or "")
    native = Native(PROVIDER, form.model, sendable(output)) if _needs_native(output) else None
    return Completion(
        Message("assistant", text or refusal, calls, native=native),
        _stop(str(payload.get("status")), reason, refused=bool(refusal), called=bool(calls)),
        usage=responses_usage(payload.get("usage")),
        model_reported=str(payload.get("model") or ""),
    )


def responses_usage(usage: Any) -> Usage | None:
    """Return the usage in the accounting of all providers; this API's input includes what was cached."""
    if not isinstance(usage, Mapping):
        return None
    asked, said = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    cached, written = int(asked.get("cached_tokens") or 0), int(asked.get("cache_write_tokens") or 0)
    return Usage(
        input_tokens=max(0, int(usage.get("input_tokens") or 0) - cached - written),
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=int(usage.get("output_tokens") or 0),
        reasoning_tokens=int(said.get("reasoning_tokens") or 0),
    )


def responses_items(messages: Sequence[Message], form: ResponsesForm) -> Iterator[Item]:
    """Iterate over the items of a request that whole exchanges make."""
    for answer, said in exchanges(messages):
        if answer is not None:
            native = native_of(answer, PROVIDER, form.model)
            yield from _plain_items(answer) if native is None else _native_items(answer, native)
        for message in said:
            if message.role == "tool":
                call_id, output = wire_id(message.call_id), wire_text(message.text)
                yield {"type": "function_call_output", "call_id": call_id, "output": output}
        texts = [{"role": "user", "content": wire_text(message.text)} for message in said if message.role == "user"]
        if texts:
            yield texts[0] if len(texts) == 1 else joined(texts)


def _plain_items(message: Message) -> Iterator[Item]:
    if message.text.strip() or not message.calls:
        yield {"role": "assistant", "content": wire_text(message.text, blank=NO_ANSWER)}
    for call in message.calls:
        yield _call_item(call)


def _call_item(call: ToolCall) -> dict[str, Json]:
    return {
        "type": _CALL,
        "call_id": wire_id(call.call_id),
        "name": wire_name(call.name),
        "arguments": arguments_text(call.arguments),
    }


def _native_items(message: Message, native: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    """Give an answer's items back as they came, as far as the service takes them.

    Reasoning can only go back with its content and before an item that it led to. Where some is missing, the others go
    without their ids, so that the service does not ask for it.
    """
    items = list(native)
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    kept = [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]
    whole = len(kept) == len(items)
    calls = iter(message.calls)
    n_given = 0
    for item in kept:
        kind = item.get("type")
        if kind == _CALL:
            yield _native_call(item, next(calls), whole=whole)
        elif kind != "message":
            yield item
        elif _spoken(item):
            yield item if whole else {name: value for name, value in item.items() if name not in ("id", "status")}
        else:
            continue
        n_given += 1
    if not n_given:
        yield {"role": "assistant", "content": wire_text(message.text, blank=NO_ANSWER)}


def _native_call(item: Mapping[str, Any], call: ToolCall, *, whole: bool) -> Item:
    """Give a call back with the id that it has in this conversation; one with broken arguments goes in a plain form."""
    if isinstance(call.arguments, str) or not whole:
        return _call_item(call)
    return {**item, "call_id": wire_id(call.call_id), "name": wire_name(call.name)}


def _spoken(item: Mapping[str, Any]) -> bool:
    return any(part.get("text") or part.get("refusal") for part in item.get("content") or ())


def _needs_native(output: Sequence[Mapping[str, Any]]) -> bool:
    """Whether items hold more than text and, after it, calls."""
    kinds = [item.get("type") for item in output]
    plain = kinds == sorted(kinds, key=("message", _CALL).index) if set(kinds) <= {"message", _CALL} else False
    return not plain or any(item.get("phase") for item in output)


def _refuse_failed(payload: Any) -> None:
    if not isinstance(payload, Mapping):
        raise Failure(200, f"a body without an answer: {str(payload)[:200]}", raw=str(payload))
    error = payload.get("error")
    if error:
        status, text, param = described(error)
        code = error.get("code") if isinstance(error, Mapping) else None
        if status is None and code in _REFUSING:
            status = 400
        raise Failure(status or 200, text, raw=str(payload), param=param)
    if payload.get("status") not in ("completed", "incomplete") or not isinstance(payload.get("output"), list):
        raise Failure(200, f"a body without an answer, status {payload.get('status')!r}", raw=str(payload))


def _said(output: Sequence[Mapping[str, Any]], part_name: str) -> str:
    spoken = [
        "".join(str(part.get(part_name) or "") for part in item.get("content") or () if isinstance(part, Mapping))
        for item in output
        if item.get("type") == "message"
    ]
    return "\n".join(text for text in spoken if text)


def _stop(status: str, reason: str, *, refused: bool, called: bool) -> Stop:
    if status == "incomplete" and reason != "content_filter":
        return "length"
    if refused or reason == "content_filter":
        return "refusal"
    return "calls" if called else "done"


def _tool(tool: ToolSpec) -> dict[str, Json]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
