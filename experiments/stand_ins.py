"""Owns the calls that stand for the published ones: well-formed where they went through, malformed where they did not.

The published ledger holds no wording, so arguments of messages and of invalid calls have to be made up; trades and
queries carry the recorded arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from apex_env.protocol import Json, ToolCall
from apex_env.tools import TOOLS
from experiments.published_runs import PublishedCall

_WELL_FORMED: Final[Mapping[str, Json]] = {"string": "stand-in", "number": 1.0, "array": ["stand-in"]}
_OF_WRONG_TYPE: Final[Mapping[str, Json]] = {"string": 1, "number": "stand-in", "array": "stand-in"}


def stand_in(call: PublishedCall, call_id: str) -> ToolCall:
    """Return a call that does what the published one did.

    >>> stand_in(PublishedCall("buy_stock", "invalid", "XOM", why="missing:amount"), "1").arguments
    {'stock': 'XOM'}
    """
    tool = TOOLS.get(call.name)
    if tool is None:
        return ToolCall(call_id, f"no_tool_{call.name}", {})
    arguments: dict[str, Json] = {name: _WELL_FORMED[kind] for name, kind in tool.arguments.items()}
    arguments |= {name: value for name, value in _recorded(call).items() if name in arguments and value is not None}
    if call.outcome == "invalid":
        return ToolCall(call_id, call.name, _spoilt(call, arguments, tool.arguments))
    return ToolCall(call_id, call.name, arguments)


def _recorded(call: PublishedCall) -> dict[str, Any]:
    return {"stock": call.ticker, "amount": call.amount_usd, "stocks": list(call.tickers) or None}


def _spoilt(call: PublishedCall, arguments: dict[str, Json], kinds: Mapping[str, str]) -> dict[str, Json] | str:
    """Return arguments that are wrong in the way that is recorded."""
    problem, _, names = (call.why or "").partition(":")
    named = [name for name in names.split("+") if name in kinds]
    if problem == "missing" and named:
        return {name: value for name, value in arguments.items() if name not in named}
    if problem == "wrong_type" and named:
        sent_as_text = {} if call.amount_text is None else {"amount": str(call.amount_text)}
        return arguments | {name: sent_as_text.get(name, _OF_WRONG_TYPE[kinds[name]]) for name in named}
    if problem == "extra_arguments":
        return arguments | {"extra": "stand-in"}
    return "stand-in for arguments that are no JSON object"
