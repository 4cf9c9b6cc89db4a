"""Owns the view of a record as handoffs: in each quarter, work goes from management to the agent, and on and back.

Every call that was carried out is a handoff to whom it concerns, and its result the handoff back, so the edges of a
quarter are one chain: management, the agent, (markets | coworkers | the fund's data, the agent) ..., management.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.conformance import Finding
from analysis.workflow import Pattern, check_workflow
from experiments.record import Line, Record

MANAGEMENT: Final = "management"
AGENT: Final = "agent"
RECEIVERS: Final[Mapping[str, str]] = {
    "trade": "markets",
    "communicate": "coworkers",
    "read": "data",
    "control": MANAGEMENT,
}
"""Who a call of each effect class concerns."""


def trajectories(record: Record) -> Iterator[dict[str, Any]]:
    """Yield the trajectory of every closed quarter of a run, as `analysis.conformance` reads them.

    Calls that came to nothing hand nothing over and are left out. A quarter that the harness closed ends in a handoff
    that it mediates.
    """
    edges: list[dict[str, Any]] = []
    for line in record.lines:
        kind = line["type"]
        if kind == "opened":
            edges = []
            _add(edges, MANAGEMENT, AGENT, "briefing/1")
        elif kind == "turn" and line["by"] == "model":
            _add_calls(edges, line)
        elif kind == "turn" and line["kind"] == "forced":
            _add(edges, AGENT, MANAGEMENT, "forced_close/1", mediated_by="harness")
        elif kind == "closed":
            yield {
                "session_slug": f"{record.header['run_id']}/q{line['quarter']}",
                "root_agent": MANAGEMENT,
                "quarter": line["quarter"],
                "handoff_edges": edges,
            }


def check_quarters(record: Record, workflow: Pattern) -> dict[int, list[Finding]]:
    """Return what each closed quarter of a run departs from a workflow in; only quarters that depart are named.

    Raises:
        BadPattern: if the workflow is none.
    """
    found = {quarter["quarter"]: check_workflow(quarter, workflow) for quarter in trajectories(record)}
    return {quarter: findings for quarter, findings in found.items() if findings}


def _add_calls(edges: list[dict[str, Any]], line: Line) -> None:
    for call in line["calls"]:
        receiver = RECEIVERS.get(call["effect_class"] or "")
        if receiver is None or call["outcome"] != "ok":
            continue
        _add(edges, AGENT, receiver, f"{call['tool']}/{call['tool_version']}")
        if receiver != MANAGEMENT:
            _add(edges, receiver, AGENT, f"{call['tool']}.result/{call['tool_version']}")


def _add(edges: list[dict[str, Any]], sender: str, receiver: str, schema: str, mediated_by: str | None = None) -> None:
    edges.append(
        {
            "sequence": len(edges) + 1,
            "from_agent": sender,
            "to_agent": receiver,
            "payload_schema_id": schema,
            "mediated_by": mediated_by,
        }
    )
