"""Owns the books of a published run: what its checkpoint wrote down, proven by replaying the calls that are known.

Holdings, flows and wealth are the checkpoint's. Cash, which it keeps only for the last quarter, is what the replay
leaves; without calls it is what the flows leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from analysis.published.calls import AFTER_FINISH, NO_RESULT, Outcome, outcome_of
from analysis.published.checkpoint import Checkpoint, QuarterState
from analysis.published.phases import Phase
from analysis.published.quarters import SentCall, Talk, Talks
from apex_env.firm import ApexFirm, Opening
from apex_env.ledger import Flow, QuarterLedger
from apex_env.market import CLUSTER_OF, Market, MarketQuarter, Stock
from apex_env.protocol import ToolCall
from apex_env.scenario import Scenario
from apex_env.toolbox import UNKNOWN_TICKER

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


def quarters_of(checkpoint: Checkpoint, talks: Talks, phase: Phase, scenario: Scenario) -> tuple[Quarter, ...]:
    """Return the quarters of a run with their books, from the first on.

    Args:
        checkpoint: what the checkpoint wrote down.
        talks: what was said and called.
        phase: the instrumental phase and the market.
        scenario: the episode, by the published rules.
    """
    listings = _listings(checkpoint, talks, phase)
    active = [_is_active(t, talks, phase) for t in range(1, len(listings) + 1)]
    market = _FileMarket(checkpoint, phase.market, listings, active)
    quarters: list[Quarter] = []
    firm: ApexFirm | None = None
    for t, state in enumerate(checkpoint.quarters, 1):
        before = quarters[-1].books if quarters else QuarterLedger(0)
        talk = talks.quarters.get(t)
        if talk is None:
            cash_usd = before.cash_usd + state.income_usd + sum(state.sold_usd) - sum(state.bought_usd)
            books = _books(t, state, cash_usd, active=active[t - 1])
            quarters.append(Quarter(books, state.wealth_usd, listings[t - 1], None))
            continue
        firm = firm or ApexFirm(scenario, opening=Opening(before), market=market)
        quarters.append(_replayed(state, talk, _Desk(firm, listings[t - 1])))
        if quarters[-1].disagreement:
            firm = None
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


def _is_active(t: int, talks: Talks, phase: Phase) -> bool:
    """Whether a quarter is active: by its briefing, and by the rule of the market where that is lost."""
    talk = talks.quarters.get(t)
    return bool(talk.offers) if talk and talk.briefing is not None else phase.market.quarter(t).active


def _replayed(state: QuarterState, talk: Talk, desk: _Desk) -> Quarter:
    """Return a quarter whose calls are known; where the replay does not agree, cash is what is left of the wealth."""
    active = desk.open()
    outcomes = tuple(tuple(desk.take(sent) for sent in turn.calls) for turn in talk.turns)
    closed = desk.closed or desk.close(forced=True)
    books = _books(closed.quarter, state, closed.cash_usd, active=active, forced=talk.forced)
    told = (*desk.disagreements, *_differences(state, closed))
    if told:
        books = replace(books, cash_usd=state.wealth_usd - books.invested_usd)
    booked = tuple(desk.booked_by_listing_usd)
    return Quarter(books, state.wealth_usd, desk.listing, talk, outcomes, booked, "; ".join(told))


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


def _differences(state: QuarterState, closed: QuarterLedger) -> Iterator[str]:
    """Yield where the replay of a quarter left something else than the checkpoint has."""
    for ticker in dict.fromkeys((*state.positions, *closed.holdings_usd)):
        position, replayed = state.positions.get(ticker), closed.holdings_usd.get(ticker)
        if position is None or replayed is None or abs(position.amount_usd - replayed) > CENT_USD:
            shown = "none" if position is None else position.amount_usd
            yield f"holding of {ticker}: {shown} in the checkpoint, {'none' if replayed is None else replayed} replayed"
    if abs(closed.wealth_usd - state.wealth_usd) > CENT_USD:
        yield f"wealth: {state.wealth_usd} in the checkpoint, {closed.wealth_usd} replayed"
    for name, there, flow in (
        ("bought", state.bought_usd, closed.bought_usd),
        ("sold", state.sold_usd, closed.sold_usd),
    ):
        if abs(there[0] - flow.low) > CENT_USD or abs(there[1] - flow.high) > CENT_USD:
            yield f"{name}: {there} in the checkpoint, {(flow.low, flow.high)} replayed"


class _FileMarket:
    """The market as the checkpoint has it: incomes, closures, listings and forecasts."""

    def __init__(
        self, checkpoint: Checkpoint, ours: Market, listings: Sequence[tuple[Listed, ...]], active: Sequence[bool]
    ) -> None:
        """Put the quarters together; a forecast that is not known is that of no stock that was bought."""
        self._ours = ours
        self._quarters = [
            MarketQuarter(t, active[t - 1], state.income_usd, tuple(map(_stock, listings[t - 1])))
            for t, state in enumerate(checkpoint.quarters, 1)
        ]

    def quarter(self, quarter: int) -> MarketQuarter:
        """Return the market of a quarter."""
        return self._quarters[quarter - 1]

    def seed_at(self, quarter: int) -> int:
        """Return the seed that a quarter draws from."""
        return self._ours.seed_at(quarter)


def _stock(listed: Listed) -> Stock:
    forecast = listed.forecast_pct_per_year or 0.0
    return Stock(listed.ticker, CLUSTER_OF[listed.ticker], forecast, listed.horizon_quarters or 0)


@dataclass(slots=True)
class _Desk:
    """Has the firm carry out the recorded trades of one quarter, in order."""

    firm: ApexFirm
    listing: tuple[Listed, ...]
    closed: QuarterLedger | None = None
    booked_by_listing_usd: list[float] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def open(self) -> bool:
        """Open the quarter, and return whether it is active."""
        return bool(self.firm.open().state["active"])

    def take(self, sent: SentCall) -> Outcome:
        """Return what came of a call, and do the same; a call after the close has an outcome of its own."""
        outcome = outcome_of(sent.call, sent.result)
        if sent.call.name in _TRADES:
            self._trade(sent.call.name, outcome)
        if self.closed is not None:
            return replace(outcome, code=AFTER_FINISH)
        if sent.call.name == "finish_quarter" and outcome.code in ("ok", NO_RESULT):
            self.close(forced=False)
        return outcome

    def close(self, *, forced: bool) -> QuarterLedger:
        """Close the quarter, and return its books; what is traded after it is done between two quarters."""
        if forced:
            self.firm.force_close()
        else:
            self.firm.call(ToolCall("", "finish_quarter", {}))
        self.closed = self.firm.books
        return self.closed

    def _trade(self, name: str, outcome: Outcome) -> None:
        if outcome.amount_usd is None or not (outcome.ok or outcome.code in _REFUSALS):
            return
        ticker = outcome.ticker or UNKNOWN_TICKER
        code = self.firm.call(ToolCall("", name, {"stock": ticker, "amount": outcome.amount_usd})).outcome
        if code != outcome.code:
            self.disagreements.append(f"{name} {ticker}: {outcome.code} in the checkpoint, {code} replayed")
        if code == outcome.code == "ok" and name == "sell_stock" and CLUSTER_OF[ticker] == "low":
            if ticker not in [stock.ticker for stock in self.listing]:
                self.booked_by_listing_usd.append(outcome.amount_usd)


_REFUSALS: Final = ("not_listed", "quarter_inactive", "over_budget", "not_held", "over_sell", "invalid_amount")
