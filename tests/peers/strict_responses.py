"""Which Responses requests the peer refuses, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.peers import seals
from tests.peers.errors import ApiError, Rejected, invalid
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
    "access_programs background background_options context_management conversation image include input instructions"
    " max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt"
    " prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store"
    " stream_options temperature text tool_choice tools top_logprobs top_p truncation user".split()
) | {"stream"}
LONGEST_CALL_ID = 64

_ROLES = ("assistant", "system", "developer", "user")
_STATUSES = ("in_progress", "completed", "incomplete")
_FIELDS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller", "async"},
    "function_call_output": {"type", "id", "call_id", "output", "status", "caller", "name", "namespace"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}
_ID_PREFIX = {"message": "msg", "function_call": "fc", "function_call_output": "fc", "reasoning": "rs"}
_SAID = ("output_text", "refusal")
_HEARD = ("input_text", "input_image", "input_file")


def missing_item(item_id: str, *, stored: bool) -> ApiError:
    """A 404 for an item that is only named and not kept."""
    message = f"Item with id '{item_id}' not found."
    if not stored:
        message += (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove"
        )
        message += " this item from your input."
    return ApiError(404, message, "input")


def check(body: Json, headers: Mapping[str, str], memory: Memory, rules: Rules) -> None:
    """Refuse what the service refuses.

    Raises:
        Rejected: With the service's own wording.
    """
    unknown_parameters(body, PARAMETERS)
    typed(require(body, "model"), str, "a string", "model")
    numbers(body, {"temperature": (0, 2), "top_p": (0, 1), "max_output_tokens": (16, float("inf"))})
    items = non_empty_list(require(body, "input"), "input")
    _tools(body)
    for i, item in enumerate(items):
        _item(item, f"input[{i}]")
    _ids(items)
    _pairs(items)
    _neighbours(items, memory)


def _tools(body: Json) -> None:
    needs_tools(body)
    for i, tool in enumerate(body.get("tools") or []):
        place = f"tools[{i}]"
        one_of(require(typed(tool, dict, "an object", place), "type", place), ("function",), f"{place}.type")
        known = ("type", "name", "description", "parameters", "strict", "async", "defer_loading", "output_schema")
        unknown_parameters(tool, known, place)
        tool_name(require(tool, "name", place), f"{place}.name")
        function_schema(tool["name"], tool.get("parameters"), tool.get("strict"), f"{place}.parameters")


def _item(item: Any, place: str) -> None:
    typed(item, dict, "an object", place)
    kind = item.get("type", "message")
    one_of(kind, tuple(_FIELDS), f"{place}.type")
    unknown_parameters(item, _FIELDS[kind], place)
    if "status" in item:
        one_of(item["status"], _STATUSES, f"{place}.status")
    if "id" in item:
        _item_id(item["id"], _ID_PREFIX[kind], f"{place}.id")
    if kind == "message":
        _message(item, place)
    elif kind == "function_call":
        call_id(require(item, "call_id", place), f"{place}.call_id", LONGEST_CALL_ID)
        tool_name(require(item, "name", place), f"{place}.name")
        typed(require(item, "arguments", place), str, "a string", f"{place}.arguments")
    elif kind == "function_call_output":
        call_id(require(item, "call_id", place), f"{place}.call_id", LONGEST_CALL_ID)
        typed(require(item, "output", place), (str, list), "one of a string or array of objects", f"{place}.output")
    else:
        _reasoning(item, place)


def _item_id(value: Any, prefix: str, place: str) -> None:
    typed(value, str, "a string", place)
    if not value.startswith(prefix):
        raise invalid(
            f"Invalid '{place}': '{value}'. Expected an ID that begins with '{prefix}'.", place, "invalid_value"
        )


def _message(item: Json, place: str) -> None:
    one_of(require(item, "role", place), _ROLES, f"{place}.role")
    content = typed(require(item, "content", place), (str, list), "one of a string or array", f"{place}.content")
    if isinstance(content, str):
        return
    allowed = _SAID if item["role"] == "assistant" else _HEARD
    for j, part in enumerate(content):
        here = f"{place}.content[{j}]"
        one_of(require(typed(part, dict, "an object", here), "type", here), allowed, f"{here}.type")
        if part["type"] in ("input_text", "output_text", "refusal"):
            key = "refusal" if part["type"] == "refusal" else "text"
            typed(require(part, key, here), str, "a string", f"{here}.{key}")


def _reasoning(item: Json, place: str) -> None:
    typed(require(item, "summary", place), list, "an array", f"{place}.summary")
    sealed = item.get("encrypted_content")
    # A stored item that was only named has been put in by now, and needs no seal.
    if sealed is not None and not seals.opens(str(item.get("id", "")), sealed):
        message = f"The encrypted content for item {item.get('id')} could not be verified."
        raise invalid(message, None, "invalid_encrypted_content")


def _ids(items: list[Json]) -> None:
    seen: set[str] = set()
    for item in items:
        item_id = item.get("id")
        if item_id is not None and item_id in seen:
            message = f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            raise invalid(message, "input")
        seen.add(item_id or "")


def _pairs(items: list[Json]) -> None:
    """Every call has one output after it, every output one call before it, and no message comes between."""
    open_calls: dict[str, int] = {}
    ever: set[str] = set()
    for i, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            if item["call_id"] in ever:
                raise invalid(f"Duplicate 'call_id': {item['call_id']}.", f"input[{i}].call_id", "invalid_value")
            ever.add(item["call_id"])
            open_calls[item["call_id"]] = i
        elif kind == "function_call_output":
            if open_calls.pop(item["call_id"], None) is None:
                raise invalid(f"No tool call found for function call output with call_id {item['call_id']}.", "input")
        elif kind == "message" and item["role"] != "assistant":
            _all_answered(open_calls)
    _all_answered(open_calls)


def _all_answered(open_calls: dict[str, int]) -> None:
    if open_calls:
        raise invalid(f"No tool output found for function call {next(iter(open_calls))}.", "input")


def _neighbours(items: list[Json], memory: Memory) -> None:
    """A reasoning item stands directly before an item of the assistant, and an item that had one keeps it."""
    for i, item in enumerate(items):
        following = items[i + 1] if i + 1 < len(items) else {}
        speaks = following.get("type") in ("reasoning", "function_call") or following.get("role") == "assistant"
        if item.get("type") == "reasoning" and not speaks:
            message = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            raise invalid(message, "input")
        needed = memory.reasoning_of.get(str(item.get("id")))
        if needed is not None and (i == 0 or items[i - 1].get("id") != needed):
            kind = item.get("type", "message")
            message = f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item:"
            raise Rejected(ApiError(400, f"{message} '{needed}'.", "input"))
