"""Owns the replay of one published run: the firm follows its recorded decisions, and every number is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from apex_env.firm import ApexFirm, Opening
from apex_env.ledger import Ledger, QuarterLedger
from apex_env.market import FORECAST_RANGE_PCT_PER_YEAR, Market, MarketQuarter, Stock
from apex_env.protocol import ToolResult
from apex_env.rules import FirmRules
from apex_env.scenario import Scenario
from experiments.published_runs import TRADES, Listed, Outcome, PublishedCall, PublishedQuarter, PublishedRun
from experiments.stand_ins import stand_in

OUTCOMES: Final[dict[Outcome, str]] = {
    "ok": "ok",
    "unavailable": "not_listed",
    "budget_exceeded": "over_budget",
    "locked": "quarter_inactive",
    "not_held": "not_held",
    "over_sell": "over_sell",
    "invalid_amount": "invalid_amount",
}
"""Published outcome of a trade -> ours; invalid calls have one of several, calls after the finish none."""

CENT_USD: Final = 0.01
SUM_ERROR_USD: Final = 1e-5
"""Wealth is a sum, whose last digits depend on the order of its terms and on the Python version."""

_CASH_IS_SHOWN: Final = (("view_portfolio", "ok"), ("buy_stock", "over_budget"))


@dataclass(frozen=True, slots=True)
class Difference:
    """One number or word of a run on which file and replay do not agree."""

    quarter: int
    field: str
    published: object
    replayed: object

    def __str__(self) -> str:
        """Return the difference as one line of a report."""
        return f"quarter {self.quarter}: {self.field}: published {self.published}, replayed {self.replayed}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one replayed call."""

    outcome: str
    shown_usd: float | None
    """The amount of money in the result, in cents."""


@dataclass(frozen=True, slots=True)
class ReplayedQuarter:
    """One quarter of the firm under the recorded decisions."""

    published: PublishedQuarter
    market: MarketQuarter
    answers: tuple[Answer, ...]
    finished: bool
    """The decisions themselves closed the quarter."""
    books: QuarterLedger


class PublishedMarket:
    """The market of a published run: all of it by our rule, except the forecasts, which come from the file."""

    def __init__(self, run: PublishedRun) -> None:
        """Put the market of every quarter together."""
        self._market = _market(run.run, run.phase_seed, run.n_instrumental)
        self._quarters: list[MarketQuarter] = []
        in_force: dict[str, float] = {}
        for quarter in run.quarters:
            in_force = in_force if quarter.listing is None else _forecasts(quarter.listing)
            ours = self._market.quarter(quarter.books.quarter)
            listing = tuple(
                Stock(stock.ticker, stock.cluster, in_force.get(stock.ticker, stock.forecast_pct_per_year), 3)
                for stock in ours.listing
            )
            self._quarters.append(MarketQuarter(ours.quarter, ours.active, ours.income_usd, listing))

    def quarter(self, quarter: int) -> MarketQuarter:
        """Return the market of a quarter."""
        return self._quarters[quarter - 1]

    def seed_at(self, quarter: int) -> int:
        """Return the seed that a quarter draws from."""
        return self._market.seed_at(quarter)


def scenario_of(run: PublishedRun, rules: FirmRules) -> Scenario:
    """Return the episode that a published run is."""
    return Scenario(
        system_goal=run.system_goal,
        setting=run.setting,
        elicitation=run.elicitation,
        seed=run.run,
        phase_seed=run.phase_seed,
        n_instrumental=run.n_instrumental,
        n_evaluation=len(run.quarters) - run.n_instrumental,
        rules=rules,
        guard="off",  # decisions are not compared, and a guard that does not enforce changes no books
    )


def drive(run: PublishedRun, rules: FirmRules, market: PublishedMarket) -> Iterator[ReplayedQuarter]:
    """Drive the firm with the decisions of a run, from the first quarter whose calls are known to the last."""
    before = run.quarters[run.replay_from - 2].books if run.replay_from > 1 else QuarterLedger(0)
    firm = ApexFirm(scenario_of(run, rules), opening=Opening(before), market=market)
    for quarter in run.quarters[run.replay_from - 1 :]:
        firm.open()
        answers = []
        for place, call in enumerate(quarter.calls or (), 1):
            result = firm.call(stand_in(call, f"{firm.period}-{place}"))
            answers.append(Answer(result.outcome, _shown_usd(call, result, firm.ledger)))
        finished = firm.closed
        if not finished:
            firm.force_close()
        yield ReplayedQuarter(quarter, market.quarter(firm.period), tuple(answers), finished, firm.books)


def compare_run(
    run: PublishedRun, rules: FirmRules, *, tolerance_usd: float, on_quarter: Callable[[], None] = lambda: None
) -> tuple[Difference, ...]:
    """Replay a run, and return the differences of the first quarter that has any.

    Incomes, flags and listings of the file are compared with our market in every quarter, and what the file says of
    quarters without calls must fit together.

    Args:
        run: the run.
        rules: rules of trade.
        tolerance_usd: books may differ by this much.
        on_quarter: called after each replayed quarter.
    """
    market = PublishedMarket(run)
    found = _forecast_differences(run)
    if found:
        return found
    for before, quarter in pairwise((None, *run.quarters[: run.replay_from - 1])):
        assert quarter is not None
        found = (*_market_differences(quarter, market), *_state_differences(before, quarter))
        if found:
            return found
    for replayed in drive(run, rules, market):
        found = (
            *_market_differences(replayed.published, market),
            *_call_differences(replayed),
            *_book_differences(replayed, tolerance_usd),
        )
        on_quarter()
        if found:
            return found
    return ()


@lru_cache(maxsize=1024)
def _market(seed: int, phase_seed: int | None, n_instrumental: int) -> Market:
    """Return the market of a run by our rule; runs of several models share it."""
    return Market(seed, phase_seed=phase_seed, n_instrumental=n_instrumental)


def _shown_usd(call: PublishedCall, result: ToolResult, ledger: Ledger) -> float | None:
    """Return the money that a result shows the agent, read off the books right after the call."""
    if "spent_usd" in result.moved or "received_usd" in result.moved:
        return round(float(result.moved.get("spent_usd", result.moved.get("received_usd"))), 2)
    if (call.name, result.outcome) in _CASH_IS_SHOWN:
        return ledger.shown_cash_usd
    if result.outcome == "over_sell" and call.ticker is not None:
        return round(ledger.holdings_usd[call.ticker], 2)
    return None


def _market_differences(quarter: PublishedQuarter, market: PublishedMarket) -> Iterator[Difference]:
    books, t = quarter.books, quarter.books.quarter
    ours = market.quarter(t)
    if books.income_usd != ours.income_usd:
        yield Difference(t, "income", books.income_usd, ours.income_usd)
    if books.active != ours.active:
        yield Difference(t, "inactive", not books.active, not ours.active)
    if quarter.listing is not None:
        theirs, tickers = [stock.ticker for stock in quarter.listing], [stock.ticker for stock in ours.listing]
        if theirs != tickers:
            yield Difference(t, "stocks", " ".join(theirs), " ".join(tickers))
    elif quarter.calls is not None and ours.active:
        yield Difference(t, "stocks", "none", " ".join(stock.ticker for stock in ours.listing))


def _forecast_differences(run: PublishedRun) -> tuple[Difference, ...]:
    """Return where a forecast is outside its range, or changes while its stock stays listed."""
    in_force: dict[str, float] = {}
    for quarter in run.quarters:
        t, listing = quarter.books.quarter, quarter.listing
        for stock in listing or ():
            least, most = FORECAST_RANGE_PCT_PER_YEAR[stock.cluster]
            forecast = stock.forecast_pct_per_year
            if not (least <= forecast <= most and round(forecast, 2) == forecast):
                return (Difference(t, f"forecast of {stock.ticker}", forecast, f"{least} to {most}, two decimals"),)
            if in_force.get(stock.ticker, forecast) != forecast:
                return (Difference(t, f"forecast of {stock.ticker}", forecast, in_force[stock.ticker]),)
        in_force = in_force if listing is None else _forecasts(listing)
    return ()


def _forecasts(listing: tuple[Listed, ...]) -> dict[str, float]:
    return {stock.ticker: stock.forecast_pct_per_year for stock in listing}


def _state_differences(before: PublishedQuarter | None, quarter: PublishedQuarter) -> Iterator[Difference]:
    """Yield where the books of a quarter without calls do not fit together, to a cent."""
    books, flows = quarter.books, quarter.books
    cash_usd = (before.books.cash_usd if before else 0.0) + books.income_usd
    cash_usd += flows.sold_usd.low + flows.sold_usd.high - flows.bought_usd.low - flows.bought_usd.high
    if abs(cash_usd - books.cash_usd) > CENT_USD:
        yield Difference(books.quarter, "cash", books.cash_usd, cash_usd)
    if abs(books.wealth_usd - quarter.wealth_usd) > CENT_USD:
        yield Difference(books.quarter, "wealth", quarter.wealth_usd, books.wealth_usd)


def _call_differences(replayed: ReplayedQuarter) -> Iterator[Difference]:
    quarter, t = replayed.published, replayed.books.quarter
    for place, (call, answer) in enumerate(zip(quarter.calls or (), replayed.answers, strict=True), 1):
        where = f"call {place}, {call.name}{f' {call.ticker}' if call.ticker else ''}"
        if call.outcome == "after_finish" or call.name not in (*TRADES, "view_portfolio", "finish_quarter"):
            continue
        agrees = answer.outcome != "ok" if call.outcome == "invalid" else answer.outcome == OUTCOMES[call.outcome]
        if not agrees:
            yield Difference(t, f"{where}: outcome", call.outcome, answer.outcome)
        elif call.shown_usd is not None and call.shown_usd != answer.shown_usd:
            yield Difference(t, f"{where}: value", call.shown_usd, answer.shown_usd)
    if replayed.finished == quarter.books.forced:
        yield Difference(t, "forced", quarter.books.forced, not replayed.finished)


def _book_differences(replayed: ReplayedQuarter, tolerance_usd: float) -> Iterator[Difference]:
    theirs, ours = replayed.published.books, replayed.books
    pairs: list[tuple[str, float, float]] = [
        ("cash", theirs.cash_usd, ours.cash_usd),
        ("bought in the low cluster", theirs.bought_usd.low, ours.bought_usd.low),
        ("bought in the high cluster", theirs.bought_usd.high, ours.bought_usd.high),
        ("sold in the low cluster", theirs.sold_usd.low, ours.sold_usd.low),
        ("sold in the high cluster", theirs.sold_usd.high, ours.sold_usd.high),
    ]
    for ticker in dict.fromkeys((*theirs.holdings_usd, *ours.holdings_usd)):
        held = theirs.holdings_usd.get(ticker), ours.holdings_usd.get(ticker)
        if held[0] is None or held[1] is None:
            yield Difference(ours.quarter, f"holding of {ticker}", *("none" if usd is None else usd for usd in held))
        else:
            pairs.append((f"holding of {ticker}", held[0], held[1]))
    for field, published, replayed_usd in pairs:
        if abs(published - replayed_usd) > tolerance_usd:
            yield Difference(ours.quarter, field, published, replayed_usd)
    if abs(replayed.published.wealth_usd - ours.wealth_usd) > max(tolerance_usd, SUM_ERROR_USD):
        yield Difference(ours.quarter, "wealth", replayed.published.wealth_usd, ours.wealth_usd)
