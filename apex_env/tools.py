"""Owns the agent's tools: one neutral definition each, and the check of the arguments that a model sends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from apex_env.protocol import EffectClass, Json, ToolCall, ToolError, ToolSpec
from apex_env.scenario import Scenario
from apex_env.texts import Corpus

_SCHEMAS: Final[Mapping[str, Mapping[str, Json]]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "array": {"type": "array", "items": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class Tool:
    """Name, effect and argument types of a tool; what the agent is told of it stands in the corpus."""

    name: str
    effect_class: EffectClass
    arguments: Mapping[str, str]
    version: int = 1


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool("view_portfolio", "read", {}),
        Tool("buy_stock", "trade", {"stock": "string", "amount": "number"}),
        Tool("sell_stock", "trade", {"stock": "string", "amount": "number"}),
        Tool("check_emissions_by_stock", "read", {"stocks": "array"}),
        Tool("retrieve_aum_data", "read", {}),
        Tool("retrieve_fund_wide_emissions_data", "read", {}),
        Tool("respond_to_email", "communicate", {"recipient": "string", "title": "string", "content": "string"}),
        Tool("help_coworker", "communicate", {"coworker_name": "string", "message": "string"}),
        Tool("view_desk_portfolio", "read", {"desk": "string"}),
        Tool("finish_quarter", "control", {}),
    )
}
ORDER_TOOLS: Final = ("buy_stock", "sell_stock")
ORDER_ID: Final = "order_id"
"""Argument of an order by which its repetition is known; offered, and optional, where tools have faults."""
READING_TOOLS: Final = ("retrieve_aum_data", "retrieve_fund_wide_emissions_data")
EXTENDED_TOOLS: Final = ("view_desk_portfolio",)
"""Tools that only ``tools: extended`` offers: they reach beyond the agent's own desk."""


def tool_specs(scenario: Scenario, corpus: Corpus) -> tuple[ToolSpec, ...]:
    """Return the tools of an episode in a fixed order, with their descriptions from the corpus."""
    keyed = ORDER_TOOLS if scenario.tool_faults != "none" else ()
    told = corpus.texts["faults"][ORDER_ID]
    return tuple(
        _spec(TOOLS[name], corpus.tools[name], order_id=told if name in keyed else None)
        for name in offered_tools(scenario)
    )


def offered_tools(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the tools of an episode in a fixed order."""
    return tuple(name for name in TOOLS if _offered(name, scenario))


def check_arguments(call: ToolCall, texts: Mapping[str, Any], *, order_ids: bool = False) -> dict[str, Any]:
    """Return the arguments of a call to a known tool if they are as its definition says.

    Nothing is guessed: an amount that came as text is refused with the accepted form.

    Args:
        call: a call whose name is in `TOOLS`.
        texts: texts of the corpus, for the messages.
        order_ids: whether an order may carry an id.

    Raises:
        ToolError: naming the argument, its value and what is allowed.
    """
    if isinstance(call.arguments, str):
        raise _argument_error("malformed_arguments", call, texts, argument="", value=call.arguments)
    expected = TOOLS[call.name].arguments
    keyed = order_ids and call.name in ORDER_TOOLS and ORDER_ID in call.arguments
    if keyed and not isinstance(call.arguments[ORDER_ID], str):
        raise _argument_error("bad_argument", call, texts, argument=ORDER_ID, value=call.arguments[ORDER_ID])
    for name in call.arguments:
        if name not in expected and not (keyed and name == ORDER_ID):
            raise _argument_error("unexpected_argument", call, texts, argument=name)
    for name, kind in expected.items():
        if name not in call.arguments:
            raise _argument_error("missing_argument", call, texts, argument=name)
        value = call.arguments[name]
        if not _fits(value, kind):
            raise _argument_error("bad_argument", call, texts, argument=name, value=value)
        if name == "amount" and not _finite(value):
            raise ToolError("invalid_amount", texts["errors"]["invalid_amount"].format(amount=shown(value)))
    return dict(call.arguments)


def shown(value: Any, limit: int = 200) -> str:
    """Return what a model sent as text that cannot flood the conversation."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to spell out integers of more than some thousand digits.
        text = "an overlong number"
    return text if len(text) <= limit else text[:limit] + "..."


def _offered(name: str, scenario: Scenario) -> bool:
    if name in EXTENDED_TOOLS:
        return scenario.tools == "extended"
    if name not in READING_TOOLS:
        return True
    if scenario.firm_rules.reading_tool == "everywhere":
        return name == scenario.pair.reading.tool
    return scenario.switches and name == scenario.pair.reading.tool


def _spec(tool: Tool, told: Mapping[str, Any], *, order_id: str | None) -> ToolSpec:
    properties = {
        name: {**_SCHEMAS[kind], "description": told["parameters"][name]} for name, kind in tool.arguments.items()
    }
    if order_id is not None:
        properties[ORDER_ID] = {**_SCHEMAS["string"], "description": order_id}
    return ToolSpec(
        name=tool.name,
        version=tool.version,
        effect_class=tool.effect_class,
        description=told["description"],
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(tool.arguments),
            "additionalProperties": False,
        },
    )


def _fits(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, list) and bool(value) and all(isinstance(entry, str) for entry in value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _argument_error(
    code: str, call: ToolCall, texts: Mapping[str, Any], *, argument: str, value: Any = None
) -> ToolError:
    expected, kinds = texts["expected"], TOOLS[call.name].arguments
    if code == "bad_argument":
        allowed = expected[kinds.get(argument, "string")]
    else:
        allowed = ", ".join(f"{name} ({expected[kind]})" for name, kind in kinds.items()) or expected["none"]
    form = {"name": call.name, "argument": shown(argument), "value": shown(value), "allowed": allowed}
    return ToolError(code, texts["errors"][code].format(**form))
