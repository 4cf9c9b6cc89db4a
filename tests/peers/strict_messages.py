"""Which Anthropic Messages requests the peer refuses, and why: parameters, tools, cache marks, roles and text.

Where models differ, the strictest is played: no reply may be begun for the model (unless the settings allow it), and
the results of one turn stand in one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.peers.errors import invalid
from tests.peers.neutral import Json
from tests.peers.strict_common import NAME
from tests.peers.strict_thinking import check_setting, check_thinking
from tests.peers.strict_tool_use import check_tool_use
from tests.peers.wire import Memory, Rules

PARAMETERS = frozenset(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config service_tier"
    " speed stop_sequences system thinking tool_choice tools user_profile_id workspace_id".split()
)
# Of older models, and no longer in the SDK's types; the service still knows them.
SAMPLING = frozenset({"temperature", "top_k", "top_p"})
MAX_BREAKPOINTS = 4

_BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "cache_control", "citations", "context", "title"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
_TOOL_FIELDS = {
    "name", "description", "input_schema", "cache_control", "type", "strict", "allowed_callers", "defer_loading",
    "eager_input_streaming", "input_examples",
}  # fmt: skip
_USER_BLOCKS = ("text", "image", "document", "tool_result")
_ASSISTANT_BLOCKS = ("text", "tool_use", "thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check(body: Json, headers: Mapping[str, str], memory: Memory, rules: Rules) -> None:
    """Refuse what the service refuses.

    Raises:
        Rejected: With the service's own wording.
    """
    if not headers.get("anthropic-version"):
        raise invalid("anthropic-version: header is required")
    _parameters(body)
    _tools(body)
    for i, message in enumerate(body["messages"]):
        _message(i, message)
    _texts(body)
    _roles(body["messages"], rules)
    _cache_marks(body)
    check_setting(body)
    check_tool_use(body)
    check_thinking(body, memory)
    _ending(body["messages"], rules)


def _parameters(body: Json) -> None:
    for name in body:
        if name not in PARAMETERS | SAMPLING | {"stream"}:
            raise invalid(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise invalid(f"{name}: Field required")
    limit = body["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise invalid("max_tokens: Input should be greater than or equal to 1")
    temperature = body.get("temperature")
    if temperature is not None and (isinstance(temperature, bool) or not isinstance(temperature, (int, float))):
        raise invalid("temperature: Input should be a valid number")
    if temperature is not None and not 0 <= temperature <= 1:
        raise invalid("temperature: Input should be less than or equal to 1")
    if not isinstance(body["messages"], list):
        raise invalid("messages: Input should be a valid list")
    if not body["messages"]:
        raise invalid("messages: at least one message is required")


def _tools(body: Json) -> None:
    names: set[str] = set()
    for i, tool in enumerate(body.get("tools") or []):
        place = f"tools.{i}.custom"
        _no_extra(tool, _TOOL_FIELDS, place)
        for field in ("name", "input_schema"):
            if field not in tool:
                raise invalid(f"{place}.{field}: Field required")
        if not NAME.fullmatch(tool["name"]):
            raise invalid(f"{place}.name: String should match pattern '^{NAME.pattern}$'")
        if tool["input_schema"].get("type") != "object":
            raise invalid(f"{place}.input_schema.type: Input should be 'object'")
        if tool["name"] in names:
            raise invalid("tools: Tool names must be unique.")
        names.add(tool["name"])


def _no_extra(value: Any, fields: set[str], place: str) -> None:
    if not isinstance(value, dict):
        raise invalid(f"{place}: Input should be an object")
    for field in value:
        if field not in fields:
            raise invalid(f"{place}.{field}: Extra inputs are not permitted")


def _message(i: int, message: Any) -> None:
    place = f"messages.{i}"
    _no_extra(message, {"role", "content"}, place)
    role = message.get("role")
    if role == "system":
        said = 'The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
        raise invalid(f'messages: Unexpected role "system". {said}')
    if role not in ("user", "assistant"):
        raise invalid(f"{place}.role: Input should be 'user' or 'assistant'")
    content = message.get("content")
    if not isinstance(content, (str, list)):
        raise invalid(f"{place}.content: Input should be a valid list")
    allowed = _ASSISTANT_BLOCKS if role == "assistant" else _USER_BLOCKS
    for j, block in enumerate(content if isinstance(content, list) else []):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind not in allowed:
            expected = ", ".join(f"'{each}'" for each in allowed)
            raise invalid(
                f"{place}.content.{j}: Input tag '{kind}' found using 'type' does not match any of: {expected}"
            )
        _block(block, f"{place}.content.{j}.{kind}")


def _block(block: Json, place: str) -> None:
    kind = block["type"]
    _no_extra(block, _BLOCK_FIELDS[kind], place)
    strings = {"text": ("text",), "tool_use": ("id", "name"), "tool_result": ("tool_use_id",)}
    strings |= {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
    for field in strings.get(kind, ()):
        if field not in block:
            raise invalid(f"{place}.{field}: Field required")
        if not isinstance(block[field], str):
            raise invalid(f"{place}.{field}: Input should be a valid string")
    patterns = {"tool_use": (("id", _ID), ("name", NAME)), "tool_result": (("tool_use_id", _ID),)}
    for field, pattern in patterns.get(kind, ()):
        if not pattern.fullmatch(block[field]):
            raise invalid(f"{place}.{field}: String should match pattern '^{pattern.pattern}$'")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise invalid(f"{place}.input: Input should be an object")


def _texts(body: Json) -> None:
    """No text is empty or blank, and no message without content, except the last one of the assistant."""
    _text_blocks(body.get("system"), "system")
    last = len(body["messages"]) - 1
    for i, message in enumerate(body["messages"]):
        content = message["content"]
        if not content and not (i == last and message["role"] == "assistant"):
            said = "all messages must have non-empty content except for the optional final assistant message"
            raise invalid(f"messages.{i}: {said}")
        if isinstance(content, str):
            _text(content or "(an empty last message of the assistant is allowed)", "messages")
            continue
        _text_blocks(content, "messages")
        for block in content:
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                _text_blocks(block["content"], "messages")


def _text_blocks(content: Any, place: str) -> None:
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "text":
            _text(block.get("text"), place)
            if block.get("cache_control") and not block["text"]:
                raise invalid(f"{place}: cache_control cannot be set for empty text blocks")


def _text(text: Any, place: str) -> None:
    if not text:
        raise invalid(f"{place}: text content blocks must be non-empty")
    if not text.strip():
        raise invalid(f"{place}: text content blocks must contain non-whitespace text")


def _roles(messages: list[Json], rules: Rules) -> None:
    if messages[0]["role"] != "user":
        raise invalid('messages: first message must use the "user" role')
    if rules.roles == "alternate":
        for before, message in zip(messages, messages[1:], strict=False):
            if before["role"] == message["role"]:
                said = 'roles must alternate between "user" and "assistant", but found multiple'
                raise invalid(f'messages: {said} "{message["role"]}" roles in a row')


def _ending(messages: list[Json], rules: Rules) -> None:
    if messages[-1]["role"] != "assistant":
        return
    content = messages[-1]["content"]
    text = content if isinstance(content, str) else (content[-1].get("text", "") if content else "")
    if text != text.rstrip():
        raise invalid("messages: final assistant content cannot end with trailing whitespace")
    if not rules.prefill:
        said = "This model does not support assistant message prefill. The conversation must end with a user message."
        raise invalid(said)


def _cache_marks(body: Json) -> None:
    marks = list(_marks(body))
    if len(marks) > MAX_BREAKPOINTS:
        raise invalid(f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marks)}.")
    lifetimes = []
    for mark in marks:
        if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            raise invalid(f"cache_control: Input should be an ephemeral mark with ttl '5m' or '1h', got {mark}")
        lifetimes.append(mark.get("ttl", "5m"))
    if "1h" in lifetimes[lifetimes.index("5m") :] if "5m" in lifetimes else False:
        said = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        raise invalid(f"cache_control.ttl: {said}. Blocks are processed in the order: tools, system, messages.")


def _marks(body: Json) -> Iterator[Json]:
    """Cache marks in the service's order."""
    groups = [body.get("tools"), body.get("system"), *(message["content"] for message in body["messages"])]
    for group in groups:
        for block in group if isinstance(group, list) else []:
            if block.get("cache_control"):
                yield block["cache_control"]
    if body.get("cache_control"):
        yield body["cache_control"]
