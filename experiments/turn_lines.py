"""Owns what the record keeps of a turn: of each call with what came of it, and of what the answer cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from apex_env.protocol import ToolCall, ToolResult
from experiments.chat import Completion


def cost_of(completion: Completion) -> dict[str, Any]:
    """Return what the record keeps of a completion beside its content."""
    return {
        "model_reported": completion.model_reported,
        "usage": None if completion.usage is None else asdict(completion.usage),
        "latency_s": round(completion.latency_s, 4),
        "attempts": [asdict(attempt) for attempt in completion.attempts],
    }


def call_line(call: ToolCall, result: ToolResult, command_id: str, sent_id: str, attempt: int = 1) -> dict[str, Any]:
    """Return what the record keeps of a call."""
    return {
        "command_id": command_id,
        "id": call.call_id,
        "sent_id": sent_id,
        "tool": call.name,
        "tool_version": result.tool_version,
        "arguments": call.arguments,
        "effect_class": result.effect_class,
        "resource_raw": result.resource_raw,
        "resource": result.resource,
        "goal_id": result.goal_id,
        "goal_version": result.goal_version,
        "goal_version_seen": result.goal_version_seen,
        "decision": {
            "allowed": result.decision.allowed,
            "reason": result.decision.reason,
            "policy_version": result.decision.policy_version,
        },
        "attempt": attempt,
        "outcome": result.outcome,
        "result": result.text,
        "committed": result.committed,
        "moved": dict(result.moved),
    }
