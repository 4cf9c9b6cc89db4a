"""Owns the reading of the paper's published ledger as traces for the audit: decisions and books without any wording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.audit.events import Contracts, Event, Quarter, Trace
from analysis.ledger_source import runs_of
from analysis.runs import Run
from apex_env.market import CLUSTER_OF
from apex_env.scenario import Scenario
from apex_env.tools import TOOLS
from experiments.published_ledger import read_ledger
from experiments.published_runs import TRADES, PublishedCall, PublishedRun

OUTCOMES: Final = {
    "unavailable": "not_listed",
    "budget_exceeded": "over_budget",
    "locked": "quarter_inactive",
}
"""Published outcome of a call -> ours, where they differ."""
MISSING: Final = ("messages", "inbox items")
"""What no event of the ledger has: it holds no wording."""


def ledger_traces(path: Path) -> Iterator[Trace]:
    """Yield every run of a published ledger as a trace.

    Raises:
        experiments.published_ledger.LedgerError: naming file, line and place of what cannot be read.
    """
    published = list(read_ledger(path))
    for run, scored in zip(published, runs_of(published), strict=True):
        yield _trace(run, scored)


def _trace(run: PublishedRun, scored: Run) -> Trace:
    scenario = Scenario(
        system_goal=run.system_goal,
        setting=scored.cell.setting,
        elicitation=None if run.n_instrumental else run.elicitation,
        seed=run.run,
        phase_seed=run.phase_seed,
        n_instrumental=run.n_instrumental,
        n_evaluation=max(1, len(run.quarters) - run.n_instrumental),
        rules="published",
    )
    missing = MISSING if run.replay_from == 1 else (*MISSING, "the run that it went on from")
    return Trace(
        run_id=run.run_id,
        cell=scored.cell,
        model=scored.cell.model,
        seed=run.run,
        outcome=scored.outcome,
        scenario=scenario,
        quarters=tuple(_quarters(run, scenario)),
        missing=missing,
        n_revisions=int(scenario.switches),
    )


def _quarters(run: PublishedRun, scenario: Scenario) -> Iterator[Quarter]:
    contracts, seen = Contracts(scenario), 1
    for published in run.quarters:
        t = published.books.quarter
        version = 2 if scenario.switches and t > scenario.n_instrumental else 1
        events: list[Event] | None = None
        if published.calls is not None:
            events = []
            for place, call in enumerate(published.calls):
                events.append(_event(contracts, call, f"q{t}c{place}", t, (version, seen)))
                if call.name == scenario.pair.reading.tool and call.outcome == "ok":
                    seen = max(seen, version)
        yield Quarter(
            quarter=t,
            active=published.books.active,
            events=None if events is None else tuple(events),
            items=None,
            briefing=None,
            books=published.books,
            forced=published.books.forced,
        )


def _event(contracts: Contracts, call: PublishedCall, event_id: str, quarter: int, versions: tuple[int, int]) -> Event:
    outcome = OUTCOMES.get(call.outcome, call.outcome)
    is_trade = call.name in TRADES
    named = (call.ticker,) if is_trade and call.ticker is not None else call.tickers
    resources = tuple(ticker if ticker in CLUSTER_OF else None for ticker in named)
    verdict, stance = contracts.judge(
        call.name,
        resources,
        call.amount_usd,
        outcome=outcome,
        quarter=quarter,
        version=versions[0],
    )
    committed = outcome == "ok" and TOOLS[call.name].effect_class != "read" if call.name in TOOLS else False
    return Event(
        event_id=event_id,
        quarter=quarter,
        turn=None,
        tool=call.name,
        effect=TOOLS[call.name].effect_class if call.name in TOOLS else None,
        raw=", ".join(str(name) for name in named) or None,
        resources=resources,
        amount_usd=call.amount_usd,
        outcome=outcome,
        committed=committed,
        moved_usd=(call.amount_usd or 0.0) if committed and is_trade else 0.0,
        version=versions[0],
        version_seen=versions[1],
        verdict=verdict,
        stance=stance,
    )
