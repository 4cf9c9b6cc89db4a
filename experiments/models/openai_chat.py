"""Owns the form of OpenAI's Chat Completions: from a prompt to a request, from a payload to a completion.

It is also the form of most compatible servers, and the one that litellm takes and gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from apex_env.protocol import Json, ToolSpec
from experiments.chat import Completion, Message, Native, Prompt, Stop, Usage
from experiments.models.failures import Failure, error_in
from experiments.models.rendering import (
    ANY_SERVICE,
    CLOSED,
    NO_ANSWER,
    IdForm,
    arguments_text,
    calls_of,
    checked_arguments,
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

REPLAYED: Final = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Fields of an answer beyond text and calls that the server wants back with it."""

SIGNATURES: Final = "thought_signatures"
"""Of litellm's own fields of an answer, the one that is wanted back."""

REPLAYED_OF_CALLS: Final = ("extra_content", "provider_specific_fields")
"""The same for a call; Google's servers keep signatures there."""


@dataclass(frozen=True, slots=True)
class ChatForm:
    """What a request holds beside the prompt."""

    provider: str
    """Name under which native forms are kept."""
    model: str
    settings: Mapping[str, Json]
    """Parameters in the API's own names."""
    parallel_calls: bool | None = None
    replay_reasoning: bool = True
    """Whether reasoning that the server shows goes back to it: some want it, some refuse it."""
    ids: IdForm = ANY_SERVICE
    closes_foreign: bool = False
    """Whether turns that began without thinking are closed before the next user message; see `rendering.CLOSED`."""


def chat_request(
    prompt: Prompt, form: ChatForm, render: Callable[[Sequence[Message]], list[dict[str, Json]]] | None = None
) -> dict[str, Json]:
    """Return the body of a request.

    Args:
        prompt: what the model sees.
        form: what the request holds beside it.
        render: `chat_messages` with this form, where what it gives is kept.
    """
    messages: list[Json] = []
    if prompt.system.strip():
        messages.append({"role": "system", "content": scrubbed(prompt.system)})
    if prompt.messages and prompt.messages[0].role == "assistant":
        messages.append({"role": "user", "content": wire_text("")})
    messages += (render or partial(chat_messages, form=form))(prompt.messages)
    body: dict[str, Json] = {"model": form.model, "messages": messages, **form.settings}
    if prompt.tools:
        body["tools"] = [_tool(tool) for tool in prompt.tools]
        if prompt.tool_use == "none":
            body["tool_choice"] = "none"
        if form.parallel_calls is not None:
            body["parallel_tool_calls"] = form.parallel_calls
    return body


def chat_completion(payload: Any, form: ChatForm) -> Completion:
    """Return the completion that a payload holds.

    Raises:
        Failure: if it holds an error, or none of an answer.
    """
    failure = error_in(payload)
    if failure is not None:
        raise failure
    choice = _choice(payload)
    said: Mapping[str, Any] = choice["message"]
    sent = [call for call in said.get("tool_calls") or () if isinstance(call, Mapping)]
    functions = [call.get("function") or {} for call in sent]
    calls = calls_of(
        (str(call.get("id") or ""), str(function.get("name") or ""), _arguments(function.get("arguments")))
        for call, function in zip(sent, functions, strict=True)
    )
    refusal = _text(said.get("refusal"))
    text = _text(said.get("content"))
    message = Message("assistant", text or refusal, calls, native=_native(said, sent, form))
    return Completion(
        message,
        _stop(str(choice.get("finish_reason") or ""), refused=bool(refusal), called=bool(calls)),
        usage=chat_usage(payload.get("usage")),
        model_reported=str(payload.get("model") or ""),
    )


def chat_usage(usage: Any) -> Usage | None:
    """Return the usage in the accounting of all providers; this API's input includes what was cached.

    Some servers leave reasoning out of the output, which their total gives away.
    """
    if not isinstance(usage, Mapping) or usage.get("prompt_tokens") is None:
        return None
    asked, said = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    prompt, output = int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
    cached = _first(
        asked.get("cached_tokens"), usage.get("cache_read_input_tokens"), usage.get("prompt_cache_hit_tokens")
    )
    written = _first(asked.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    reasoning = _first(said.get("reasoning_tokens"))
    if reasoning and int(usage.get("total_tokens") or 0) == prompt + output + reasoning:
        output += reasoning
    cost = usage.get("cost")
    return Usage(
        input_tokens=max(0, prompt - cached - written),
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=reasoning,
        cost_usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )


def chat_messages(messages: Sequence[Message], form: ChatForm) -> Iterator[dict[str, Json]]:
    """Iterate over the messages of a request that whole exchanges make."""
    for answer, said in exchanges(messages):
        rendered = None if answer is None else _assistant(answer, form)
        if rendered is not None:
            yield rendered
        yield from (_result(message, form) for message in said if message.role == "tool")
        texts = [{"role": "user", "content": wire_text(message.text)} for message in said if message.role == "user"]
        if texts and form.closes_foreign and rendered is not None and answer is not None and answer.calls:
            if "thinking_blocks" not in rendered:
                yield {"role": "assistant", "content": CLOSED}
        if texts:
            yield texts[0] if len(texts) == 1 else joined(texts)


def _result(message: Message, form: ChatForm) -> dict[str, Json]:
    call_id = wire_id(message.call_id, form.ids)
    return {"role": "tool", "tool_call_id": call_id, "content": wire_text(message.text)}


def _assistant(message: Message, form: ChatForm) -> dict[str, Json]:
    native = native_of(message, form.provider, form.model) or {}
    rendered: dict[str, Json] = {"role": "assistant", "content": wire_text(message.text, blank="") or None}
    if not message.calls:
        return {**rendered, "content": rendered["content"] or NO_ANSWER, **native.get("message", {})}
    rendered["tool_calls"] = [
        {
            "id": wire_id(call.call_id, form.ids),
            "type": "function",
            "function": {"name": wire_name(call.name), "arguments": arguments_text(call.arguments)},
            **more,
        }
        for call, more in zip(message.calls, native.get("calls") or [{}] * len(message.calls), strict=True)
    ]
    return {**rendered, **native.get("message", {})}


def _native(said: Mapping[str, Any], sent: Sequence[Mapping[str, Any]], form: ChatForm) -> Native | None:
    """Return what the server wants back beyond text and calls, if there is any."""
    if not form.replay_reasoning:
        return None
    of_message = {name: said[name] for name in REPLAYED if said.get(name)}
    signatures = (said.get("provider_specific_fields") or {}).get(SIGNATURES)
    if signatures:
        of_message["provider_specific_fields"] = {SIGNATURES: signatures}
    of_calls = [{name: call[name] for name in REPLAYED_OF_CALLS if call.get(name)} for call in sent]
    if not of_message and not any(of_calls):
        return None
    return Native(form.provider, form.model, sendable({"message": of_message, "calls": of_calls}))


def _choice(payload: Any) -> Mapping[str, Any]:
    choices = payload.get("choices") if isinstance(payload, Mapping) else None
    choice = choices[0] if isinstance(choices, Sequence) and choices else None
    if isinstance(choice, Mapping):
        failure = error_in(choice)
        if failure is not None:
            raise failure
        if isinstance(choice.get("message"), Mapping):
            return choice
    raise Failure(200, f"a body without an answer: {str(payload)[:200]}", raw=str(payload))


def _stop(finish_reason: str, *, refused: bool, called: bool) -> Stop:
    if finish_reason in ("length", "max_tokens"):
        return "length"
    if finish_reason in ("content_filter", "refusal") or refused:
        return "refusal"
    return "calls" if called else "done"


def _tool(tool: ToolSpec) -> dict[str, Json]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _text(content: Any) -> str:
    """Return the text of content, which some servers send in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return ""


def _arguments(value: Any) -> Mapping[str, Json] | str:
    """Return the arguments of a call; some servers send an object in place of its text."""
    return checked_arguments(value) if isinstance(value, Mapping) else read_arguments(_text(value))


def _first(*values: Any) -> int:
    return next((int(value) for value in values if value), 0)
