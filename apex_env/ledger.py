"""Owns the fund's money: cash, holdings, and what a purchase, a sale or a quarter's growth does to them.

Cash and holdings are plain float64, updated once per operation in call order and never recomputed as a sum: that, and
nothing else, replays the published runs to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from apex_env.guard import Authorised, Trade
from apex_env.market import CLUSTER_OF, Cluster, Stock
from apex_env.rules import FirmRules

SALE_SLACK_USD = 1.0
"""A sale may exceed the holding by this much; a position left under it is closed."""


class TradeRefused(Exception):
    """A trade that the ledger does not carry out; nothing has changed.

    Attributes:
        code: stable name of the reason (`not_listed`, `quarter_inactive`, `over_budget`, `not_held`, `over_sell`,
            `invalid_amount`).
    """

    def __init__(self, code: str) -> None:
        """Name the reason."""
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Flow:
    """US dollars by cluster."""

    low: float = 0.0
    high: float = 0.0

    def plus(self, cluster: Cluster, amount_usd: float) -> Flow:
        """Return this flow with ``amount_usd`` more in one cluster."""
        if cluster == "low":
            return Flow(self.low + amount_usd, self.high)
        return Flow(self.low, self.high + amount_usd)

    def of(self, cluster: Cluster) -> float:
        """Return the dollars of one cluster."""
        return self.low if cluster == "low" else self.high


@dataclass(frozen=True, slots=True)
class QuarterLedger:
    """The closed books of one quarter: all that the scores need to know of it."""

    quarter: int
    active: bool = True
    income_usd: float = 0.0
    bought_usd: Flow = Flow()
    sold_usd: Flow = Flow()
    holdings_usd: Mapping[str, float] = field(default_factory=dict)
    """By ticker, after the quarter's growth."""
    returns_pct_per_year: Mapping[str, float] = field(default_factory=dict)
    """Return that each position grows with, by ticker."""
    cash_usd: float = 0.0
    forced: bool = False
    """Closed by the harness at the turn limit."""
    denied_usd: Flow = Flow()
    """Purchases that a guard denied, by the amounts that were asked for: attempts, of which no money moved."""

    def held_usd(self, cluster: Cluster) -> float:
        """Return the value of one cluster's holdings at the quarter's end."""
        return sum(value for ticker, value in self.holdings_usd.items() if CLUSTER_OF[ticker] == cluster)

    @property
    def invested_usd(self) -> float:
        """Value of all holdings at the quarter's end."""
        return sum(self.holdings_usd.values())

    @property
    def wealth_usd(self) -> float:
        """Holdings and cash at the quarter's end."""
        return self.invested_usd + self.cash_usd

    def to_json(self) -> dict[str, Any]:
        """Return the books as plain JSON, by field name; denied amounts only where there are any."""
        denied = self.denied_usd
        attempts = {"denied_usd": {"low": denied.low, "high": denied.high}} if denied != Flow() else {}
        return attempts | {
            "quarter": self.quarter,
            "active": self.active,
            "income_usd": self.income_usd,
            "bought_usd": {"low": self.bought_usd.low, "high": self.bought_usd.high},
            "sold_usd": {"low": self.sold_usd.low, "high": self.sold_usd.high},
            "holdings_usd": dict(self.holdings_usd),
            "returns_pct_per_year": dict(self.returns_pct_per_year),
            "cash_usd": self.cash_usd,
            "forced": self.forced,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self:
        """Return the books that `to_json` wrote; further keys are passed over."""
        return cls(
            quarter=state["quarter"],
            active=state["active"],
            income_usd=state["income_usd"],
            bought_usd=Flow(**state["bought_usd"]),
            sold_usd=Flow(**state["sold_usd"]),
            holdings_usd=state["holdings_usd"],
            returns_pct_per_year=state["returns_pct_per_year"],
            cash_usd=state["cash_usd"],
            forced=state["forced"],
            denied_usd=Flow(**state.get("denied_usd", {})),
        )


@dataclass(slots=True)
class Ledger:
    """Cash and holdings of one fund, with what was bought and sold since the quarter began."""

    rules: FirmRules = field(default_factory=FirmRules.default)
    cash_usd: float = 0.0
    holdings_usd: dict[str, float] = field(default_factory=dict)
    returns_pct_per_year: dict[str, float] = field(default_factory=dict)
    """Return that each position grows with: the listed one at its last purchase."""
    bought_usd: Flow = field(default_factory=Flow)
    sold_usd: Flow = field(default_factory=Flow)

    def receive(self, income_usd: float) -> None:
        """Begin a quarter with its income; purchases and sales are counted from here."""
        self.cash_usd += income_usd
        self.bought_usd = Flow()
        self.sold_usd = Flow()

    def buy(self, order: Authorised[Trade], *, listing: Sequence[Stock], active: bool) -> float:
        """Buy for an amount, and return the amount spent.

        Raises:
            TypeError: for an order that was not authorised.
            TradeRefused: in an inactive quarter, if the ticker is not listed, if the amount is not allowed, or if it
                exceeds the cash.
        """
        ticker, amount_usd = _command(order)
        if not active:
            raise TradeRefused("quarter_inactive")
        stock = next((stock for stock in listing if stock.ticker == ticker), None)
        if stock is None:
            raise TradeRefused("not_listed")
        if not math.isfinite(amount_usd) or (self.rules.buy_amounts == "positive" and not amount_usd > 0):
            raise TradeRefused("invalid_amount")
        if not amount_usd <= self.cash_usd:
            if not amount_usd <= self.cash_usd + self.rules.buy_tolerance_usd or self.cash_usd <= 0:
                raise TradeRefused("over_budget")
            amount_usd = self.cash_usd
        self.cash_usd -= amount_usd
        self.holdings_usd[ticker] = self.holdings_usd.get(ticker, 0) + amount_usd
        self.returns_pct_per_year[ticker] = stock.forecast_pct_per_year
        self.bought_usd = self.bought_usd.plus(stock.cluster, amount_usd)
        return amount_usd

    def sell(self, order: Authorised[Trade], *, listing: Sequence[Stock]) -> float:
        """Sell for an amount, and return the amount paid; allowed in every quarter.

        Raises:
            TypeError: for an order that was not authorised.
            TradeRefused: if the stock is not held, if the amount is not positive, or if it exceeds the holding by more
                than 1 USD.
        """
        ticker, amount_usd = _command(order)
        held_usd = self.holdings_usd.get(ticker)
        if held_usd is None:
            raise TradeRefused("not_held")
        if not amount_usd > 0:
            raise TradeRefused("invalid_amount")
        if amount_usd > held_usd + SALE_SLACK_USD:
            raise TradeRefused("over_sell")
        if self.rules.near_full_sale == "sell_all" and abs(held_usd - amount_usd) <= SALE_SLACK_USD:
            amount_usd = held_usd
        self.cash_usd += amount_usd
        left_usd = held_usd - amount_usd
        if left_usd < SALE_SLACK_USD:
            del self.holdings_usd[ticker], self.returns_pct_per_year[ticker]
        else:
            self.holdings_usd[ticker] = left_usd
        self.sold_usd = self.sold_usd.plus(self._booked_as(ticker, listing), amount_usd)
        return amount_usd

    def grow(self) -> None:
        """End a quarter: every position grows by a quarter of its yearly return."""
        for ticker, return_pct_per_year in self.returns_pct_per_year.items():
            self.holdings_usd[ticker] *= 1 + return_pct_per_year / 400

    @property
    def shown_cash_usd(self) -> float:
        """Cash as the agent is shown it, in whole cents."""
        if self.rules.shown_cash == "rounded":
            return round(self.cash_usd, 2)
        return math.floor(round(self.cash_usd * 100, 6)) / 100

    def _booked_as(self, ticker: str, listing: Sequence[Stock]) -> Cluster:
        if self.rules.sale_booking == "cluster":
            return CLUSTER_OF[ticker]
        return "low" if any(stock.ticker == ticker and stock.cluster == "low" for stock in listing) else "high"


def _command(order: Authorised[Trade]) -> Trade:
    if type(order) is not Authorised:
        raise TypeError(f"a {type(order).__name__} is no authorised order: the ledger carries out nothing else")
    return order.command
