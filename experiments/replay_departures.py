"""Owns what the departures from the published rules change: which runs end with other books, and by how much.

Each departure is switched on alone, on top of the published rules, and the recorded decisions are replayed: what the
books differ by then is its share. Departures can act on one another, so the shares need not add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from statistics import median
from typing import Final

from apex_env.ledger import Flow, QuarterLedger
from apex_env.rules import FirmRules
from experiments.published_runs import TRADES, PublishedRun
from experiments.replay_run import OUTCOMES, PublishedMarket, drive

CENT_USD: Final = 0.01
DEPARTURES: Final = tuple(spec.name for spec in fields(FirmRules))


@dataclass(frozen=True, slots=True)
class Change:
    """By how much one run's books differ from the published ones, in US dollars."""

    wealth_usd: float
    """Holdings and cash at the last close, ours minus published."""
    positions_usd: float
    """Sum of the absolute differences of cash and every holding at the last close."""
    booked_usd: float
    """Sum of the absolute differences of purchases and sales by cluster over all quarters."""
    n_outcomes: int
    """Trades that came out otherwise."""

    @property
    def ends_elsewhere(self) -> bool:
        """Whether cash or a holding at the end differs by a cent or more."""
        return self.positions_usd >= CENT_USD

    @property
    def booked_elsewhere(self) -> bool:
        """Whether purchases or sales of some quarter differ by a cent or more."""
        return self.booked_usd >= CENT_USD


@dataclass(slots=True)
class Tally:
    """Changes of many runs under one choice of rules."""

    n_runs: int = 0
    changes: list[Change] = field(default_factory=list)
    """Changes of the runs whose books differ."""

    def add(self, change: Change) -> None:
        """Count a run."""
        self.n_runs += 1
        if change.ends_elsewhere or change.booked_elsewhere or change.n_outcomes:
            self.changes.append(change)


def one_departure(name: str) -> FirmRules:
    """Return the published rules with one of the benchmark's departures.

    >>> one_departure("buy_tolerance_usd").buy_tolerance_usd
    0.01
    """
    return replace(FirmRules.published(), **{name: getattr(FirmRules.default(), name)})


def change_under(run: PublishedRun, rules: FirmRules) -> Change:
    """Replay a run under other rules, and return by how much its books differ from the published ones."""
    booked_usd, n_outcomes = 0.0, 0
    ours = theirs = QuarterLedger(0)
    for quarter in drive(run, rules, PublishedMarket(run)):
        ours, theirs = quarter.books, quarter.published.books
        booked_usd += _distance(ours.bought_usd, theirs.bought_usd) + _distance(ours.sold_usd, theirs.sold_usd)
        for call, answer in zip(quarter.published.calls or (), quarter.answers, strict=True):
            if call.name in TRADES and call.outcome in OUTCOMES:
                n_outcomes += answer.outcome != OUTCOMES[call.outcome]
    return Change(
        wealth_usd=ours.wealth_usd - theirs.wealth_usd,
        positions_usd=abs(ours.cash_usd - theirs.cash_usd) + _apart(ours.holdings_usd, theirs.holdings_usd),
        booked_usd=booked_usd,
        n_outcomes=n_outcomes,
    )


def study(run: PublishedRun, tallies: Mapping[str, Tally]) -> None:
    """Replay a run under the default rules, and where that changes anything under each departure alone.

    Args:
        run: the run.
        tallies: one by name of each departure, and one named ``default``; the run is counted in each.
    """
    whole = change_under(run, FirmRules.default())
    tallies["default"].add(whole)
    changed = whole.ends_elsewhere or whole.booked_elsewhere or whole.n_outcomes > 0
    for name in DEPARTURES:
        tallies[name].add(change_under(run, one_departure(name)) if changed else whole)


def new_tallies() -> dict[str, Tally]:
    """Return empty tallies for `study`."""
    return {name: Tally() for name in ("default", *DEPARTURES)}


def report(tallies: Mapping[str, Tally]) -> Iterator[str]:
    """Yield the lines of a table: one a departure, and all of them together last."""
    yield f"{'':<20}{'runs that':>12}{'|wealth| differs there by':>30}{'runs with':>16}{'trades that':>14}"
    yield f"{'departure':<20}{'end with':>12}{'median':>15}{'at most':>15}{'other purchases':>16}{'come out':>14}"
    yield f"{'':<20}{'other books':>12}{'USD':>15}{'USD':>15}{'or sales':>16}{'otherwise':>14}"
    for name in (*DEPARTURES, "default"):
        changes = tallies[name].changes
        wealth = [abs(change.wealth_usd) for change in changes if change.ends_elsewhere]
        yield (
            f"{'all together' if name == 'default' else name:<20}{len(wealth):>12,}"
            f"{median(wealth) if wealth else 0.0:>15,.2f}{max(wealth, default=0.0):>15,.2f}"
            f"{sum(change.booked_elsewhere for change in changes):>16,}"
            f"{sum(change.n_outcomes for change in changes):>14,}"
        )


def _distance(ours: Flow, theirs: Flow) -> float:
    return abs(ours.low - theirs.low) + abs(ours.high - theirs.high)


def _apart(ours: Mapping[str, float], theirs: Mapping[str, float]) -> float:
    return sum(abs(ours.get(ticker, 0.0) - theirs.get(ticker, 0.0)) for ticker in {**ours, **theirs})
