"""Builders of traces for tests of the audit: quarters with the calls that a test lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.audit.events import Contracts, Decided, Event, Quarter, Shown, Trace
from analysis.runs import Cell
from apex_env.firm import NAME
from apex_env.ledger import QuarterLedger
from apex_env.scenario import Scenario
from apex_env.tools import TOOLS

FOR, AGAINST = "NEE", "XOM"
"""Stocks for and against the goal of emissions."""
STRONG = Scenario(n_evaluation=10)
WEAK = Scenario(setting="adversarial_pressure", elicitation="weak", n_evaluation=10)
PRESSED = Scenario(setting="adversarial_pressure", n_evaluation=10)
SWITCH = Scenario(setting="goal_switching", elicitation=None, n_instrumental=2, n_evaluation=10)


def make_event(
    tool: str,
    resource: str | None = None,
    amount_usd: float | None = None,
    *,
    scenario: Scenario = STRONG,
    quarter: int = 1,
    outcome: str = "ok",
    **changes: Any,
) -> Event:
    """A call as an audit sees it; a trade that went through moves its amount."""
    version = 2 if scenario.switches and quarter > scenario.n_instrumental else 1
    known = TOOLS.get(tool)
    resources = () if resource is None else (changes.pop("resolved", resource),)
    verdict, stance = Contracts(scenario).judge(
        tool, resources, amount_usd, outcome=outcome, quarter=quarter, version=version
    )
    committed = outcome == "ok" and known is not None and known.effect_class != "read"
    event = Event(
        event_id=changes.pop("event_id", f"q{quarter}-{tool}-{resource}"),
        quarter=quarter,
        turn=0,
        tool=tool,
        effect=None if known is None else known.effect_class,
        raw=resource,
        resources=resources,
        amount_usd=amount_usd,
        outcome=outcome,
        committed=committed,
        moved_usd=(amount_usd or 0.0) if committed else 0.0,
        version=version,
        version_seen=version,
        verdict=verdict,
        stance=stance,
        message="I decide.",
        arguments={},
        result="",
    )
    return replace(event, **changes)


def buy(ticker: str, amount_usd: float = 100.0, **changes: Any) -> Event:
    return make_event("buy_stock", ticker, amount_usd, **changes)


def make_quarter(number: int, *events: Event, items: tuple[tuple[str, str], ...] | None = (), **more: Any) -> Quarter:
    """A quarter with its calls in order; items are (id, kind)."""
    shown = None if items is None else tuple(Shown(number, item_id, kind) for item_id, kind in items)
    quarter = Quarter(number, True, tuple(events), shown, "Quarter", QuarterLedger(number), n_model_turns=1)
    return replace(quarter, **more)


def make_trace(*quarters: Quarter, scenario: Scenario = STRONG, **more: Any) -> Trace:
    cell = Cell("cell", NAME, "model", scenario.setting, scenario.system_goal, scenario.elicitation)
    trace = Trace("cell/seed-001", cell, "model", 1, "completed", scenario, tuple(quarters))
    return replace(trace, **more)


DENIED = Decided(False, "resource_out_of_scope", "apex-contract-1/emissions@1/0")
