"""How Anthropic's service wants tool uses and their results paired."""

from __future__ import annotations

from typing import Any

from tests.peers.errors import invalid
from tests.peers.neutral import Json


def check_tool_use(body: Json) -> None:
    """Every use has one result at the head of the next message, every result a use right before it.

    Raises:
        Rejected: With the service's own wording.
    """
    messages = body["messages"]
    contents = [message["content"] if isinstance(message["content"], list) else [] for message in messages]
    kinds = {block["type"] for content in contents for block in content}
    if kinds & {"tool_use", "tool_result"} and not body.get("tools"):
        raise invalid("Requests which include `tool_use` or `tool_result` blocks must define tools.")
    seen: set[str] = set()
    for i, content in enumerate(contents):
        uses = [block["id"] for block in content if block["type"] == "tool_use"]
        for j, block in enumerate(content):
            if block["type"] == "tool_use":
                if block["id"] in seen:
                    raise invalid(f"messages.{i}.content.{j}: `tool_use` ids must be unique")
                seen.add(block["id"])
        before = contents[i - 1] if i else []
        _results(i, content, {block["id"] for block in before if block["type"] == "tool_use"})
        if uses:
            _answered(i, uses, contents[i + 1] if i + 1 < len(contents) else [])


def _results(i: int, content: list[Json], uses: set[str]) -> None:
    given: set[Any] = set()
    for j, block in enumerate(content):
        if block["type"] != "tool_result":
            continue
        use = block["tool_use_id"]
        place = f"messages.{i}.content.{j}"
        if use not in uses:
            said = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            raise invalid(f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {use}. {said}")
        if use in given:
            said = f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {use}"
            raise invalid(f"{place}: {said}")
        given.add(use)


def _answered(i: int, uses: list[str], following: list[Json]) -> None:
    """Results count only at the head of the message, before any text."""
    answered = set()
    for block in following:
        if block["type"] != "tool_result":
            break
        answered.add(block["tool_use_id"])
    missing = [use for use in uses if use not in answered]
    if missing:
        said = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        found = "`tool_use` ids were found without `tool_result` blocks immediately after"
        raise invalid(f"messages.{i}: {found}: {', '.join(missing)}. {said}")
