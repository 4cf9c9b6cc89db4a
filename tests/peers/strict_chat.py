"""Which Chat Completions requests the peer refuses, and why.

Where services differ, the strictest is played: OpenAI itself refuses an id twice among the results of one turn, others
(Mistral, Fireworks) anywhere in the conversation; the peer refuses both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.peers.errors import invalid
from tests.peers.neutral import Json
from tests.peers.strict_common import (
    call_id,
    function_schema,
    needs_tools,
    non_empty_list,
    numbers,
    one_of,
    require,
    tool_name,
    typed,
    unknown_parameters,
)
from tests.peers.wire import Memory, Rules

PARAMETERS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages"
    " metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key"
    " prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier"
    " stop store stream_options temperature tool_choice tools top_logprobs top_p user verbosity"
    " web_search_options".split()
) | {"stream"}
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
LONGEST_CALL_ID = 40

_FIELDS = {
    "assistant": {"role", "content", "refusal", "tool_calls", "function_call", "name", "audio", "annotations"},
    "tool": {"role", "content", "tool_call_id"},
}
_PLAIN_FIELDS = {"role", "content", "name"}
_PARTS = {"assistant": ("text", "refusal"), "tool": ("text",), "system": ("text",), "developer": ("text",)}
_USER_PARTS = ("text", "image_url", "input_audio", "file")


def check(body: Json, headers: Mapping[str, str], memory: Memory, rules: Rules) -> None:
    """Refuse what the service refuses.

    Raises:
        Rejected: With the service's own wording.
    """
    unknown_parameters(body, PARAMETERS)
    typed(require(body, "model"), str, "a string", "model")
    messages = non_empty_list(require(body, "messages"), "messages")
    numbers(body, {"temperature": (0, 2), "top_p": (0, 1), "frequency_penalty": (-2, 2), "presence_penalty": (-2, 2)})
    if body.get("stream_options") is not None and not body.get("stream"):
        raise invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    _tools(body)
    for i, message in enumerate(messages):
        _message(i, message, rules)
    _pairs(messages)
    if rules.roles == "alternate":
        _alternation(messages)


def _tools(body: Json) -> None:
    needs_tools(body)
    if body.get("tools") is None:
        return
    for i, tool in enumerate(non_empty_list(body["tools"], "tools")):
        place = f"tools[{i}]"
        one_of(require(typed(tool, dict, "an object", place), "type", place), ("function",), f"{place}.type")
        function = typed(require(tool, "function", place), dict, "an object", f"{place}.function")
        unknown_parameters(function, ("name", "description", "parameters", "strict"), f"{place}.function")
        tool_name(require(function, "name", f"{place}.function"), f"{place}.function.name")
        schema_place = f"{place}.function.parameters"
        function_schema(function["name"], function.get("parameters"), function.get("strict"), schema_place)


def _message(i: int, message: Any, rules: Rules) -> None:
    place = f"messages[{i}]"
    typed(message, dict, "an object", place)
    role = require(message, "role", place)
    one_of(role, ROLES, f"{place}.role")
    fields = _FIELDS.get(role, _PLAIN_FIELDS) | ({rules.reasoning_field} if rules.reasoning_field else set())
    unknown_parameters(message, fields, place)
    _content(i, message, role)
    if role == "tool":
        call_id(require(message, "tool_call_id", place), f"{place}.tool_call_id", LONGEST_CALL_ID)
    if message.get("tool_calls") is not None:
        for j, call in enumerate(non_empty_list(message["tool_calls"], f"{place}.tool_calls")):
            _call(call, f"{place}.tool_calls[{j}]")


def _content(i: int, message: Json, role: str) -> None:
    content = message.get("content")
    if content is None:
        if role == "assistant" and (message.get("tool_calls") or message.get("refusal") or message.get("audio")):
            return
        raise invalid("Invalid value for 'content': expected a string, got null.", f"messages.[{i}].content")
    place = f"messages[{i}].content"
    typed(content, (str, list), "one of a string or array of objects", place)
    if isinstance(content, str):
        return
    for j, part in enumerate(non_empty_list(content, place)):
        typed(part, dict, "an object", f"{place}[{j}]")
        one_of(require(part, "type", f"{place}[{j}]"), _PARTS.get(role, _USER_PARTS), f"{place}[{j}].type")
        if part["type"] in ("text", "refusal"):
            typed(require(part, part["type"], f"{place}[{j}]"), str, "a string", f"{place}[{j}].{part['type']}")


def _call(call: Any, place: str) -> None:
    typed(call, dict, "an object", place)
    unknown_parameters(call, ("id", "type", "function"), place)
    call_id(require(call, "id", place), f"{place}.id", LONGEST_CALL_ID)
    one_of(require(call, "type", place), ("function",), f"{place}.type")
    function = typed(require(call, "function", place), dict, "an object", f"{place}.function")
    unknown_parameters(function, ("name", "arguments"), f"{place}.function")
    tool_name(require(function, "name", f"{place}.function"), f"{place}.function.name")
    # The text need not be JSON: the service takes back what its model wrote.
    typed(require(function, "arguments", f"{place}.function"), str, "a string", f"{place}.function.arguments")


def _pairs(messages: list[Json]) -> None:
    """Every call has one result, directly after it, before anything else."""
    open_calls: dict[str, int] = {}
    results: dict[str, int] = {}
    ever: set[str] = set()
    in_turn = False
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            _result(i, message["tool_call_id"], in_turn, open_calls, results)
            continue
        _all_answered(open_calls, i)
        calls = [call["id"] for call in message.get("tool_calls") or []]
        for j, one in enumerate(calls):
            if one in ever:
                raise invalid(f"Duplicate tool call id '{one}'.", f"messages[{i}].tool_calls[{j}].id", "invalid_value")
            ever.add(one)
        in_turn = bool(calls)
        open_calls = dict.fromkeys(calls, i)
        results = {}
    _all_answered(open_calls, len(messages))


def _result(i: int, one: str, in_turn: bool, open_calls: dict[str, int], results: dict[str, int]) -> None:
    if not in_turn:
        message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        raise invalid(f"Invalid parameter: {message}", f"messages.[{i}].role")
    if one in results:
        message = f"Duplicate value for 'tool_call_id' of '{one}', in messages[{results[one]}] and messages[{i}]."
        raise invalid(f"Invalid parameter: {message}", f"messages.[{i}].tool_call_id")
    if one not in open_calls:
        message = f"'tool_call_id' of '{one}' not found in 'tool_calls' of previous message."
        raise invalid(f"Invalid parameter: {message}", f"messages.[{i}].tool_call_id")
    results[one] = i
    del open_calls[one]


def _all_answered(open_calls: dict[str, int], i: int) -> None:
    if open_calls:
        message = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        message += (
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )
        raise invalid(message, f"messages.[{i}].role")


def _alternation(messages: list[Json]) -> None:
    """What chat templates of local servers ask: user and assistant in turn, results left aside."""
    spoken = [message["role"] for message in messages if message["role"] in ("user", "assistant")]
    calls = [bool(message.get("tool_calls")) for message in messages if message["role"] in ("user", "assistant")]
    for before, called, role in zip(spoken, calls, spoken[1:], strict=False):
        if before == role and not (role == "assistant" and called):
            raise invalid("Conversation roles must alternate user/assistant/user/assistant/...", "messages")
    if spoken and spoken[0] != "user":
        raise invalid("Conversation roles must alternate user/assistant/user/assistant/...", "messages")
