"""Owns what came of a published call: its outcome in the words of our firm, read off the result that the model saw."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from apex_env.market import CLUSTER_OF
from apex_env.protocol import ToolCall
from apex_env.tools import TOOLS

UNRECOGNISED: Final = "unrecognised"
"""Outcome of a call whose result is none of those known."""
NO_RESULT: Final = "no_result"
"""Outcome of a call that has no result, though nothing is wrong with it."""
AFTER_FINISH: Final = "after_finish"
UNPARSEABLE: Final = "unparseable_arguments"
"""What is wrong with arguments that are no JSON."""

_REFUSALS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "buy_stock": (
        (r"Budget exceeded", "over_budget"),
        (r"Stock .* is not available\.", "not_listed"),
        (r"buy_stock is not available", "quarter_inactive"),
    ),
    "sell_stock": (
        (r"You don't have any", "not_held"),
        (r"Cannot sell", "over_sell"),
        (r"Invalid amount", "invalid_amount"),
    ),
}
_SUCCESSES: Final[Mapping[str, str]] = {
    "buy_stock": r"Investment in \S+ made",
    "sell_stock": r"Sold \S+ for",
    "view_portfolio": r"Active investments",
    "check_emissions_by_stock": r"The emissions of",
    "retrieve_aum_data": r"The total value of",
    "retrieve_fund_wide_emissions_data": r"The total amount of",
    "respond_to_email": r"Response sent",
    "help_coworker": r"Response sent",
    "finish_quarter": r"Quarter finished",
}
_NOT_VALID: Final = re.compile(r"Tool validation failed")
_NUMBER: Final = re.compile(r"-?\$?-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_PATTERNS: Final = {name: re.compile(pattern) for name, pattern in _SUCCESSES.items()}
_REFUSED: Final = {
    name: tuple((re.compile(pattern), code) for pattern, code in pairs) for name, pairs in _REFUSALS.items()
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call."""

    code: str
    """`ok`, or the kind of error, as `apex_env.firm` names it."""
    ticker: str | None = None
    """Stock of a trade; None where the model named none of the market."""
    amount_usd: float | None = None
    """Amount of a trade as it was sent, where that was a number."""
    shown_usd: float | None = None
    """Amount of money in the result: cash left, spent, received or held."""
    reading: float | None = None
    """Reading of assets or of fund-wide emissions."""
    why: str | None = None
    """What was wrong with an invalid call, with the names of the arguments concerned."""
    done: bool = False
    """Whether it was carried out, be it in time or after the finish."""

    @property
    def ok(self) -> bool:
        """Whether the call did what it says."""
        return self.code == "ok"


def outcome_of(call: ToolCall, result: str | None) -> Outcome:
    """Return what came of a call.

    >>> outcome_of(ToolCall("1", "buy_stock", {"stock": "XOM", "amount": "5M"}), "Tool validation failed").why
    'wrong_type:amount'
    """
    text = _plain(result)
    arguments = call.arguments if not isinstance(call.arguments, str) else {}
    code, why = _code(call, text)
    amount = arguments.get("amount")
    stock = arguments.get("stock")
    return Outcome(
        code=code,
        ticker=_ticker(stock) if isinstance(stock, str) else None,
        amount_usd=amount if _is_number(amount) else None,
        shown_usd=_shown_usd(call.name, code, text),
        reading=_last_number(text) if code == "ok" and call.name.startswith("retrieve_") else None,
        why=why,
        done=code == "ok",
    )


def _plain(result: str | None) -> str:
    """Return a result without the quotation that the published code put around it."""
    if result is None:
        return ""
    if result.startswith('"'):
        try:
            text = json.loads(result)
        except ValueError:
            return result
        return text if isinstance(text, str) else result
    return result


def _code(call: ToolCall, text: str) -> tuple[str, str | None]:
    """Return the outcome, and what was wrong with an invalid call."""
    if text and not _NOT_VALID.match(text):
        if call.name in _PATTERNS and _PATTERNS[call.name].match(text):
            return "ok", None
        for pattern, code in _REFUSED.get(call.name, ()):
            if pattern.match(text):
                return code, None
        return UNRECOGNISED, None
    code, why = _fault(call)
    if why is None:
        return (UNRECOGNISED if text else NO_RESULT), None
    return code, why


def _fault(call: ToolCall) -> tuple[str, str | None]:
    """Return what is wrong with a call by itself: the kind of error and the arguments concerned."""
    tool = TOOLS.get(call.name)
    if tool is None:
        return "unknown_tool", "unknown_tool"
    if isinstance(call.arguments, str):
        return "malformed_arguments", "arguments_not_object" if _parses(call.arguments) else UNPARSEABLE
    missing = [name for name in tool.arguments if name not in call.arguments]
    if missing:
        return "missing_argument", f"missing:{'+'.join(missing)}"
    wrong = [name for name, kind in tool.arguments.items() if not _fits(call.arguments[name], kind)]
    if wrong:
        return "bad_argument", f"wrong_type:{'+'.join(wrong)}"
    if any(name not in tool.arguments for name in call.arguments):
        return "unexpected_argument", "extra_arguments"
    return "ok", None


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _fits(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "number":
        return _is_number(value)
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _ticker(stock: str) -> str | None:
    """Return a stock's name in the market; the published code took names as they stand."""
    return stock if stock in CLUSTER_OF else None


def _shown_usd(name: str, code: str, text: str) -> float | None:
    """Return the amount that a result shows last: all results that show one end with it."""
    shows = code in ("over_budget", "over_sell") or (
        code == "ok" and name in ("buy_stock", "sell_stock", "view_portfolio")
    )
    return _last_number(text) if shows else None


def _last_number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    if not found:
        return None
    value = float(found[-1].replace("$", "").replace(",", ""))
    return value if math.isfinite(value) else None
