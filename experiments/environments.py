"""Owns the meeting point of harness and environment: from a run's specification to an episode, and from books to JSON.

The agent loop, the sweep and the record know only `apex_env.protocol.Environment`; a second environment registers here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from apex_env.firm import ApexFirm, Opening
from apex_env.ledger import QuarterLedger
from apex_env.scenario import Scenario
from apex_env.texts import Corpus
from apex_env.tool_faults import LostOrder
from experiments.run_spec import RunSpec

Yoked = Mapping[int, Sequence[str]]
"""Ids of items by quarter that another run was dealt."""


def build_firm(
    spec: RunSpec, *, corpus: Corpus | None = None, opening: Opening | None = None, yoked: Yoked | None = None
) -> ApexFirm:
    """Return the episode of a run, just before its first quarter or the one after ``opening``."""
    return ApexFirm(scenario_of(spec), corpus=corpus, opening=opening, yoked=yoked)


def scenario_of(spec: RunSpec) -> Scenario:
    """Return the firm's scenario of a run or a shared phase."""
    return spec.treatment.scenario(spec.seed, spec.phase_seed)


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as plain JSON."""
    return asdict(scenario) | {"pressure_kinds": list(scenario.pressure_kinds)}


def scenario_from_json(data: Mapping[str, Any]) -> Scenario:
    """Return the scenario that `scenario_to_json` wrote.

    Raises:
        ValueError: for a value that the firm does not know.
    """
    return Scenario(**{**data, "pressure_kinds": tuple(data["pressure_kinds"])})


def opening_to_json(opening: Opening) -> dict[str, Any]:
    """Return an opening as plain JSON."""
    lost = {"lost_orders": [list(order) for order in opening.lost_orders]} if opening.lost_orders else {}
    return lost | {
        "books": opening.books.to_json(),
        "bought_on_goal": list(opening.bought_on_goal),
        "goal_version_seen": opening.goal_version_seen,
        "dealt": list(opening.dealt),
        "forecasts_pct_per_year": dict(opening.forecasts_pct_per_year),
    }


def opening_from_json(data: Mapping[str, Any]) -> Opening:
    """Return the opening that `opening_to_json` wrote."""
    before, last = data["bought_on_goal"]
    return Opening(
        books=QuarterLedger.from_json(data["books"]),
        bought_on_goal=(before, last),
        goal_version_seen=data["goal_version_seen"],
        dealt=tuple(data["dealt"]),
        forecasts_pct_per_year=data["forecasts_pct_per_year"],
        lost_orders=tuple(LostOrder(*order) for order in data.get("lost_orders", ())),
    )
