"""Owns the reading of run records, of embedded, real and imported runs alike, as traces for the audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from analysis.audit.events import Contracts, Event, Quarter, Shown, Trace, as_decided
from analysis.audit.parents import missing_parent
from analysis.load import cell_of
from analysis.record_form import reading
from analysis.runs import SourceError
from apex_env.firm import NAME
from apex_env.ledger import QuarterLedger
from apex_env.protocol import ToolCall
from apex_env.resolver import Resolver
from apex_env.scenario import Scenario
from apex_env.texts import load_corpus
from apex_env.toolbox import resolver_of
from apex_env.tools import TOOLS
from experiments.environments import scenario_from_json
from experiments.record import Line, Record

N_RESULT_CHARS: Final = 20_000
"""More than the longest answer of any tool; what is longer is cut for the search in it, not for its size."""


def trace_of(record: Record, folders: Sequence[Path] = ()) -> Trace:
    """Return a record as a trace.

    Args:
        record: the record of a run.
        folders: where the record that it branched from may stand, beside its own experiment.

    Raises:
        SourceError: if the record is of another environment, or its lines are not those of a run.
    """
    with reading(record.path):
        environment = record.header["environment"]["name"]
        if environment != NAME:
            raise SourceError(f"{record.path}: runs of environment {environment!r} have no goal contract")
        return _trace(record, missing_parent(record, folders))


def _trace(record: Record, missing: str | None) -> Trace:
    header = record.header
    scenario = scenario_from_json(header["scenario"])
    branched = record.branched
    return Trace(
        run_id=header["run_id"],
        cell=cell_of(header),
        model=header["config"]["model"]["name"],
        seed=header["config"]["seed"],
        outcome=record.outcome,
        scenario=scenario,
        quarters=tuple(_quarters(record, scenario)),
        is_phase=header["is_phase"],
        missing=() if missing is None else (missing,),
        n_revisions=sum(1 for _ in record.of_type("revision")),
        parent=None if branched is None else branched["parent"],
    )


def _quarters(record: Record, scenario: Scenario) -> Iterator[Quarter]:
    branched = record.branched
    if branched is not None:
        for told in branched.get("quarters", ()):
            books = QuarterLedger.from_json(told["books"])
            yield Quarter(books.quarter, books.active, None, None, None, books)
    reader = Reader(scenario)
    opened: Line | None = None
    turns: list[Line] = []
    for line in record.lines:
        kind = line["type"]
        if kind == "opened":
            if opened is not None and opened["quarter"] != line["quarter"]:
                yield reader.quarter(opened, turns, None)
            opened, turns = line, []
        elif kind == "turn":
            turns.append(line)
        elif kind == "closed" and opened is not None:
            yield reader.quarter(opened, turns, line)
            opened, turns = None, []
    if opened is not None:
        yield reader.quarter(opened, turns, None)


class Reader:
    """Turns the lines of a run into quarters and events."""

    def __init__(self, scenario: Scenario) -> None:
        """Take contracts and names from the scenario."""
        self._contracts = Contracts(scenario)
        invented = load_corpus().invented_tickers if scenario.ticker_names == "invented" else {}
        self._resolver: Resolver = resolver_of(invented)

    def quarter(self, opened: Line, turns: list[Line], closed: Line | None) -> Quarter:
        """Return one quarter."""
        number = opened["quarter"]
        items = opened.get("items")
        return Quarter(
            quarter=number,
            active=opened["state"]["active"],
            events=tuple(
                self.event(line, call) for line in turns if line["by"] == "model" for call in line.get("calls", ())
            ),
            items=None if items is None else tuple(Shown(number, item_id, kind) for item_id, kind in items),
            briefing=opened.get("text"),
            books=None if closed is None else QuarterLedger.from_json(closed["state"]),
            forced=any(line.get("kind") == "forced" for line in turns),
            n_model_turns=sum(line["by"] == "model" for line in turns),
        )

    def event(self, line: Line, call: Mapping[str, Any]) -> Event:
        """Return one call of a turn as an event."""
        tool, arguments = call["tool"], call["arguments"]
        moved, outcome = call["moved"], call["outcome"]
        _, resources = self._resolver.resources(ToolCall("", tool, arguments))
        amount = _amount(arguments)
        verdict, stance = self._contracts.judge(
            tool,
            resources,
            amount,
            outcome=outcome,
            quarter=line["quarter"],
            version=call["goal_version"],
        )
        result = call["result"]
        return Event(
            event_id=call["command_id"],
            quarter=line["quarter"],
            turn=line["turn"],
            tool=tool,
            effect=TOOLS[tool].effect_class if tool in TOOLS else None,
            raw=call["resource_raw"],
            resources=resources,
            amount_usd=amount,
            outcome=outcome,
            committed=call["committed"],
            moved_usd=float(moved.get("spent_usd") or moved.get("received_usd") or 0.0),
            version=call["goal_version"],
            version_seen=call["goal_version_seen"],
            verdict=verdict,
            stance=stance,
            decided=as_decided(call["decision"]),
            message=line["message"]["text"],
            arguments=arguments,
            result=None if result is None else result[:N_RESULT_CHARS],
        )


def _amount(arguments: object) -> float | None:
    """Return the amount of a trade as it was sent, infinite where a float cannot hold it."""
    amount = arguments.get("amount") if isinstance(arguments, Mapping) else None
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    try:
        return float(amount)
    except OverflowError:
        return math.inf
