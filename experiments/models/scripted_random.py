"""Owns the agent that calls at random: right and wrong calls in every form that a model may send."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from apex_env.streams import stream
from experiments.chat import Prompt
from experiments.models.scripted_reading import read_quarter

Call = tuple[str, dict[str, Any] | str]
"""Name of a tool, and arguments."""

P_NO_CALL: Final = 0.1
P_FINISH: Final = 0.35
P_WRONG: Final = 0.25
MAX_CALLS: Final = 4


def random_turn(prompt: Prompt) -> tuple[str, list[Call]]:
    """Return a turn drawn from (seed, quarter, turn): no call, or a few of which some are wrong."""
    position = prompt.position
    rng = stream(position.seed, f"scripted:random:{position.turn}", position.period)
    if rng.random() < P_NO_CALL:
        return "Let me see.", []
    quarter = read_quarter(prompt.messages)
    stocks = [*quarter.briefing.forecasts_pct_per_year, *(holding.ticker for holding in quarter.holdings or ())]
    tools = [tool.name for tool in prompt.tools if tool.name != "finish_quarter"]
    calls = []
    for _ in range(rng.randint(1, MAX_CALLS)):
        call = _right(rng, rng.choice(tools), stocks or ["XOM"])
        calls.append(rng.choice(_WRONG)(rng, call) if rng.random() < P_WRONG else call)
    if rng.random() < P_FINISH:
        # Anywhere among the others: calls after it are refused.
        calls.insert(rng.randint(0, len(calls)), ("finish_quarter", {}))
    return "Let me try something.", calls


def _right(rng: random.Random, tool: str, stocks: Sequence[str]) -> Call:
    """Return a call with arguments of the right form; the firm may still refuse it."""
    if tool in ("buy_stock", "sell_stock"):
        return tool, {"stock": rng.choice(stocks), "amount": round(10 ** rng.uniform(0, 8), 2)}
    if tool == "check_emissions_by_stock":
        return tool, {"stocks": rng.sample(stocks, rng.randint(1, len(stocks)))}
    if tool == "respond_to_email":
        return tool, {"recipient": "A coworker", "title": "Your mail", "content": "Thank you."}
    if tool == "help_coworker":
        return tool, {"coworker_name": "A coworker", "message": "Here it is."}
    return tool, {}


def _unknown_tool(rng: random.Random, call: Call) -> Call:
    return rng.choice(["purchase", "Buy_Stock", ""]), call[1]


def _unknown_argument(rng: random.Random, call: Call) -> Call:
    return call[0], {**_arguments(call), "urgency": rng.choice(["high", None, 1])}


def _missing_argument(rng: random.Random, call: Call) -> Call:
    return call[0], dict(list(_arguments(call).items())[1:])


def _wrong_type(rng: random.Random, call: Call) -> Call:
    values = ["5,000,000", "$5000000", True, None, [], {"usd": 5}, -3, 0]
    return call[0], {name: rng.choice(values) for name in _arguments(call)}


def _bad_amount(rng: random.Random, call: Call) -> Call:
    return call[0], {
        name: rng.choice([0, -1, -2500.5]) if name == "amount" else value for name, value in _arguments(call).items()
    }


def _no_json(rng: random.Random, call: Call) -> Call:
    return call[0], rng.choice(['{"stock": "XOM", "amount": ', "not JSON", "[1, 2]", ""])


def _unknown_stock(rng: random.Random, call: Call) -> Call:
    return call[0], {name: "NOSUCH" if name == "stock" else value for name, value in _arguments(call).items()}


def _arguments(call: Call) -> dict[str, Any]:
    return {} if isinstance(call[1], str) else call[1]


_WRONG: Final[Sequence[Callable[[random.Random, Call], Call]]] = (
    _unknown_tool,
    _unknown_argument,
    _missing_argument,
    _wrong_type,
    _bad_amount,
    _no_json,
    _unknown_stock,
)
