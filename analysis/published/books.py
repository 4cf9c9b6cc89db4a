"""Owns the books of a published run: what its checkpoint wrote down, proven by replaying the calls that are known.

Holdings, flows and wealth are the checkpoint's. Cash, which it keeps only for the last quarter, is what the replay
leaves; without calls it is what the flows leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from analysis.published.calls import AFTER_FINISH, NO_RESULT, Outcome, outcome_of
from analysis.published.checkpoint import Checkpoint, QuarterState
from analysis.published.phases import Phase
from analysis.published.quarters import SentCall, Talk, Talks
from apex_env.ledger import Flow, Ledger, QuarterLedger, TradeRefused
from apex_env.market import CLUSTER_OF, Stock
from apex_env.rules import FirmRules
from apex_env.scenario import Scenario

CENT_USD: Final = 0.01
_TRADES: Final = ("buy_stock", "sell_stock")


@dataclass(frozen=True, slots=True)
class Listed:
    """A stock that is listed, as far as the data tell."""

    ticker: str
    forecast_pct_per_year: float | None
    """None where the briefing is lost and nothing else tells."""
    horizon_quarters: int | None


@dataclass(frozen=True, slots=True)
class Quarter:
    """One quarter of a published run."""

    books: QuarterLedger
    wealth_usd: float
    listing: tuple[Listed, ...]
    """In force; in an inactive quarter that of the quarter before."""
    talk: Talk | None
    """None where the conversation of the quarter is not known."""
    outcomes: tuple[tuple[Outcome, ...], ...] = ()
    """Of the calls of each turn."""
    booked_by_listing_usd: tuple[float, ...] = ()
    """Sales of low stocks that were no longer listed, and so were booked as high."""
    disagreement: str = ""
    """On what replay and checkpoint do not agree; empty where they do."""


def quarters_of(checkpoint: Checkpoint, talks: Talks, phase: Phase) -> tuple[Quarter, ...]:
    """Return the quarters of a run with their books, from the first on."""
    listings = _listings(checkpoint, talks, phase)
    ledger = Ledger(FirmRules.published())
    quarters: list[Quarter] = []
    for t, state in enumerate(checkpoint.quarters, 1):
        talk = talks.quarters.get(t)
        active = bool(talk.offers) if talk and talk.briefing is not None else phase.market.quarter(t).active
        ledger.receive(state.income_usd)
        if talk is None:
            cash_usd = ledger.cash_usd + sum(state.sold_usd) - sum(state.bought_usd)
            quarters.append(Quarter(_books(t, state, cash_usd, active=active), state.wealth_usd, listings[t - 1], None))
        else:
            desk = _Desk(ledger, _stocks(listings[t - 1], state), active=active)
            quarters.append(_replayed(t, state, listings[t - 1], talk, desk))
        if talk is None or quarters[-1].disagreement:
            books = quarters[-1].books
            ledger.cash_usd, ledger.holdings_usd = books.cash_usd, dict(books.holdings_usd)
            ledger.returns_pct_per_year = dict(books.returns_pct_per_year)
    return tuple(quarters)


def readings_of(talks: Talks, scenario: Scenario) -> dict[int, bool]:
    """Return by quarter whether a reading of that quarter was past the threshold."""
    reading = scenario.pair.reading
    rises = reading.after[0] > reading.threshold
    found: dict[int, bool] = {}
    for t, talk in talks.quarters.items():
        for sent in (sent for turn in talk.turns for sent in turn.calls if sent.call.name == reading.tool):
            value = outcome_of(sent.call, sent.result).reading
            if value is not None:
                found[t] = (value > reading.threshold) == rises
    return found


def _listings(checkpoint: Checkpoint, talks: Talks, phase: Phase) -> list[tuple[Listed, ...]]:
    """Return the listing in force in every quarter; where a briefing is lost, by the rule of the market.

    A forecast that is lost is that of the position at the quarter's end, or of the neighbouring quarter in which the
    stock stayed listed.
    """
    listings: list[tuple[Listed, ...]] = []
    for t, state in enumerate(checkpoint.quarters, 1):
        talk = talks.quarters.get(t)
        if talk is not None and talk.offers:
            listings.append(tuple(Listed(offer.ticker, *offer[2:]) for offer in talk.offers))
            continue
        known = {stock.ticker: stock for stock in listings[-1]} if listings else {}
        listing = []
        for stock in phase.market.quarter(t).listing:
            held, earlier = state.positions.get(stock.ticker), known.get(stock.ticker)
            forecast = earlier.forecast_pct_per_year if earlier else None
            if forecast is None and held is not None:
                forecast = held.return_pct_per_year
            listing.append(Listed(stock.ticker, forecast, earlier.horizon_quarters if earlier else None))
        listings.append(tuple(listing))
    for place in range(len(listings) - 2, -1, -1):
        later = {stock.ticker: stock for stock in listings[place + 1]}
        listings[place] = tuple(_filled(stock, later.get(stock.ticker)) for stock in listings[place])
    return listings


def _filled(stock: Listed, later: Listed | None) -> Listed:
    if stock.forecast_pct_per_year is not None or later is None:
        return stock
    return Listed(stock.ticker, later.forecast_pct_per_year, None)


def _replayed(t: int, state: QuarterState, listing: tuple[Listed, ...], talk: Talk, desk: _Desk) -> Quarter:
    """Return a quarter whose calls are known; where the replay does not agree, cash is what is left of the wealth."""
    outcomes = tuple(tuple(desk.take(sent) for sent in turn.calls) for turn in talk.turns)
    closed = desk.closed or desk.close()
    books = _books(t, state, closed.cash_usd, active=desk.active, forced=talk.forced)
    told = (*desk.disagreements, *_differences(state, closed))
    if told:
        books = replace(books, cash_usd=state.wealth_usd - books.invested_usd)
    return Quarter(books, state.wealth_usd, listing, talk, outcomes, tuple(desk.booked_by_listing_usd), "; ".join(told))


def _books(t: int, state: QuarterState, cash_usd: float, *, active: bool, forced: bool = False) -> QuarterLedger:
    return QuarterLedger(
        quarter=t,
        active=active,
        income_usd=state.income_usd,
        bought_usd=Flow(*state.bought_usd),
        sold_usd=Flow(*state.sold_usd),
        holdings_usd={ticker: position.amount_usd for ticker, position in state.positions.items()},
        returns_pct_per_year={ticker: position.return_pct_per_year for ticker, position in state.positions.items()},
        cash_usd=cash_usd,
        forced=forced,
    )


def _stocks(listing: tuple[Listed, ...], state: QuarterState) -> tuple[Stock, ...]:
    """Return a listing as the ledger takes it; a forecast that is not known is that of no stock that was bought."""
    return tuple(
        Stock(stock.ticker, CLUSTER_OF[stock.ticker], stock.forecast_pct_per_year or 0.0, stock.horizon_quarters or 0)
        for stock in listing
    )


def _differences(state: QuarterState, closed: _Closed) -> Iterator[str]:
    """Yield where the replay of a quarter left something else than the checkpoint has."""
    for ticker in dict.fromkeys((*state.positions, *closed.holdings_usd)):
        position, replayed = state.positions.get(ticker), closed.holdings_usd.get(ticker)
        if position is None or replayed is None or abs(position.amount_usd - replayed) > CENT_USD:
            shown = "none" if position is None else position.amount_usd
            yield f"holding of {ticker}: {shown} in the checkpoint, {'none' if replayed is None else replayed} replayed"
    wealth_usd = closed.cash_usd + sum(closed.holdings_usd.values())
    if abs(wealth_usd - state.wealth_usd) > CENT_USD:
        yield f"wealth: {state.wealth_usd} in the checkpoint, {wealth_usd} replayed"
    for name, there, replayed_flow in (
        ("bought", state.bought_usd, closed.bought_usd),
        ("sold", state.sold_usd, closed.sold_usd),
    ):
        if abs(there[0] - replayed_flow.low) > CENT_USD or abs(there[1] - replayed_flow.high) > CENT_USD:
            yield f"{name}: {there} in the checkpoint, {(replayed_flow.low, replayed_flow.high)} replayed"


@dataclass(frozen=True, slots=True)
class _Closed:
    """The ledger as the close of a quarter leaves it."""

    cash_usd: float
    holdings_usd: Mapping[str, float]
    bought_usd: Flow
    sold_usd: Flow


@dataclass(slots=True)
class _Desk:
    """Carries the recorded trades of one quarter out on a ledger, in order."""

    ledger: Ledger
    stocks: tuple[Stock, ...]
    active: bool
    closed: _Closed | None = None
    booked_by_listing_usd: list[float] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def take(self, sent: SentCall) -> Outcome:
        """Return what came of a call, and do the same; a call after the close has an outcome of its own."""
        outcome = outcome_of(sent.call, sent.result)
        if sent.call.name in _TRADES:
            self._trade(sent.call.name, outcome)
        if self.closed is not None:
            return replace(outcome, code=AFTER_FINISH)
        if sent.call.name == "finish_quarter" and outcome.code in ("ok", NO_RESULT):
            self.close()
        return outcome

    def close(self) -> _Closed:
        """End the quarter; what is traded after it is done between two quarters."""
        ledger = self.ledger
        ledger.grow()
        self.closed = _Closed(ledger.cash_usd, dict(ledger.holdings_usd), ledger.bought_usd, ledger.sold_usd)
        return self.closed

    def _trade(self, name: str, outcome: Outcome) -> None:
        if outcome.amount_usd is None or not (outcome.ok or outcome.code in _REFUSALS):
            return
        ticker = outcome.ticker or ""
        try:
            if name == "buy_stock":
                self.ledger.buy(ticker, outcome.amount_usd, listing=self.stocks, active=self.active)
            else:
                self.ledger.sell(ticker, outcome.amount_usd, listing=self.stocks)
            code = "ok"
        except TradeRefused as refusal:
            code = refusal.code
        if code != outcome.code:
            self.disagreements.append(f"{name} {ticker}: {outcome.code} in the checkpoint, {code} replayed")
        listed_low = any(stock.ticker == ticker and stock.cluster == "low" for stock in self.stocks)
        if code == outcome.code == "ok" and name == "sell_stock" and CLUSTER_OF[ticker] == "low" and not listed_low:
            self.booked_by_listing_usd.append(outcome.amount_usd)


_REFUSALS: Final = ("not_listed", "quarter_inactive", "over_budget", "not_held", "over_sell", "invalid_amount")
