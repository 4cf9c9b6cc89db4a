"""How Anthropic's service wants thinking set, and thinking blocks sent back."""

from __future__ import annotations

from tests.peers import seals
from tests.peers.errors import invalid
from tests.peers.neutral import Json
from tests.peers.wire import Memory

MIN_BUDGET_TOKENS = 1024
_KINDS = ("thinking", "redacted_thinking")


def check_setting(body: Json) -> None:
    """Refuse thinking settings that contradict themselves or others.

    Raises:
        Rejected: With the service's own wording.
    """
    setting = body.get("thinking")
    if setting is None:
        return
    kind = setting.get("type") if isinstance(setting, dict) else None
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        raise invalid("thinking: Input tag does not match any of: 'enabled', 'disabled', 'adaptive', 'between_tools'")
    if kind == "disabled":
        return
    if body.get("temperature") not in (None, 1, 1.0):
        raise invalid("`temperature` may only be set to 1 when thinking is enabled.")
    if body.get("top_k") is not None:
        raise invalid("`top_k` must be unset when thinking is enabled.")
    if kind != "enabled":
        return
    budget = setting.get("budget_tokens")
    if budget is None:
        raise invalid("thinking.enabled.budget_tokens: Field required")
    if budget < MIN_BUDGET_TOKENS:
        raise invalid(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_BUDGET_TOKENS}")
    if body["max_tokens"] <= budget:
        raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise invalid("Thinking may not be enabled when tool_choice forces tool use.")


def check_thinking(body: Json, memory: Memory) -> None:
    """Refuse thinking blocks that are not ours, were changed, or are missing from the turn that is under way.

    Raises:
        Rejected: With the service's own wording.
    """
    messages = body["messages"]
    newest = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for i, message in enumerate(messages):
        for j, block in enumerate(message["content"] if isinstance(message["content"], list) else []):
            if block["type"] in _KINDS:
                _authentic(block, f"messages.{i}.content.{j}", in_newest=i == newest)
    if newest < 0 or (body.get("thinking") or {}).get("type", "disabled") == "disabled":
        return
    _unchanged(messages, newest, memory)
    if body["thinking"]["type"] == "enabled":
        _starts_with_thinking(messages)


def _authentic(block: Json, place: str, *, in_newest: bool) -> None:
    if block["type"] == "redacted_thinking":
        if not seals.opens("", block["data"]):
            raise invalid(f"{place}: Invalid `data` in `redacted_thinking` block")
        return
    verdict = seals.check(block["thinking"], block["signature"])
    if verdict == "altered" and in_newest:
        raise invalid(f"{place}: {_MODIFIED}")
    if verdict != "good":
        raise invalid(f"{place}: Invalid `signature` in `thinking` block")


_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must"
    " remain as they were in the original response."
)


def _unchanged(messages: list[Json], newest: int, memory: Memory) -> None:
    """The newest assistant message holds the thinking that it was sent with, if it uses tools."""
    content = messages[newest]["content"] if isinstance(messages[newest]["content"], list) else []
    uses = [block["id"] for block in content if block["type"] == "tool_use"]
    sent = memory.thinking.get(uses[0], ()) if uses else ()
    if sent and tuple(block for block in content if block["type"] in _KINDS) != sent:
        raise invalid(f"messages.{newest}.content.0: {_MODIFIED}")


def _starts_with_thinking(messages: list[Json]) -> None:
    """With a manual budget, the turn under way (uses and results up to the end) starts with thinking."""
    start = None
    for i in range(len(messages) - 1, -1, -1):
        content = messages[i]["content"] if isinstance(messages[i]["content"], list) else []
        wanted = "tool_use" if messages[i]["role"] == "assistant" else "tool_result"
        if not any(block["type"] == wanted for block in content):
            break
        start = i if messages[i]["role"] == "assistant" else start
    if start is not None and messages[start]["content"][0]["type"] not in _KINDS:
        found = messages[start]["content"][0]["type"]
        said = (
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the"
        )
        said += " lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        place = f"messages.{start}.content.0.type"
        raise invalid(f"{place}: Expected `thinking` or `redacted_thinking`, but found `{found}`. {said}")
