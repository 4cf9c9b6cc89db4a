"""Owns what each tool of the agent does, short of ending the quarter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from apex_env.contract import Tenant
from apex_env.goals import GoalPair, Reading
from apex_env.guard import Authorised, Trade
from apex_env.ledger import Ledger, TradeRefused
from apex_env.mandate import DESKS, FUND, OTHER_DESK, OTHER_DESK_RESOURCE, OWN_DESK_RESOURCE, TENANT
from apex_env.market import CLUSTER_OF, MarketQuarter
from apex_env.protocol import Json, ToolError
from apex_env.resolver import Resolver
from apex_env.scenario import Scenario, quarter_and_year
from apex_env.streams import fraction, stream, whole_number
from apex_env.texts import Corpus
from apex_env.tools import READING_TOOLS, shown

UNKNOWN_TICKER: Final = "?"
"""Stands for whatever name is none of a stock of the market."""

N_HELD_BY_OTHER_DESK: Final = 5
OTHER_HOLDING_USD: Final = (1_000_000, 90_000_000)
"""Range of each position of another desk, in whole US dollars."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool did."""

    text: str
    committed: bool = False
    moved: Mapping[str, Json] = field(default_factory=dict)
    outcome: str = "ok"
    """Something else where a fault lay between the tool and the agent."""


def emissions_tonnes_per_year(pair: GoalPair, ticker: str, seed: int, quarter: int) -> int:
    """Return the emissions of a company in a quarter that draws from ``seed``, rounded to 100 tonnes."""
    low, high = pair.attribute_range[CLUSTER_OF[ticker]]
    hundreds = whole_number(low // 100, high // 100, seed=seed, purpose=f"emissions:{ticker}", quarter=quarter)
    return hundreds * 100


def reading_value(reading: Reading, seed: int, quarter: int, *, crossed: bool) -> float:
    """Return what the reading tool shows in a quarter that draws from ``seed``, before or after the threshold."""
    least, most = reading.after if crossed else reading.before
    return least + fraction(seed, "reading", quarter) * (most - least)


def other_desk_holdings(seed: int, quarter: int) -> dict[str, int]:
    """Return what the other desk holds in a quarter that draws from ``seed``, in whole US dollars by ticker."""
    draws = stream(seed, f"desk:{OTHER_DESK}", quarter)
    return {ticker: draws.randint(*OTHER_HOLDING_USD) for ticker in draws.sample([*CLUSTER_OF], N_HELD_BY_OTHER_DESK)}


@lru_cache(maxsize=16)
def _resolver(invented: tuple[tuple[str, str], ...]) -> Resolver:
    stocks = {shown: ticker for ticker, shown in invented} or {ticker: ticker for ticker in CLUSTER_OF}
    desks = {name.upper(): name for name in (OWN_DESK_RESOURCE, OTHER_DESK_RESOURCE)}
    return Resolver(TENANT, desks | stocks, {OTHER_DESK_RESOURCE: Tenant(FUND, OTHER_DESK)})


def resolver_of(invented: Mapping[str, str]) -> Resolver:
    """Return the names of the firm's world as an agent may use them.

    Args:
        invented: the name that the agent knows each ticker by; empty where that is the ticker itself.
    """
    return _resolver(tuple(invented.items()))


class Toolbox:
    """Carries out calls with checked arguments in the quarter that is open."""

    def __init__(self, scenario: Scenario, corpus: Corpus, ledger: Ledger) -> None:
        """Bind the tools to a ledger."""
        self.scenario = scenario
        self.corpus = corpus
        self.ledger = ledger
        self.goal_version_seen = 1
        """Highest version of the goal that the agent could know of so far."""
        self._quarter = MarketQuarter(0, False, 0, ())
        self._seed = scenario.seed
        invented = corpus.invented_tickers if scenario.ticker_names == "invented" else {}
        self._shown = dict(invented)
        self.resolver = resolver_of(invented)
        self._tools: dict[str, Callable[..., Done]] = {
            "view_portfolio": self._view_portfolio,
            **dict.fromkeys(READING_TOOLS, self._reading),
            "respond_to_email": self._respond,
            "help_coworker": self._help,
        }

    def open(self, quarter: MarketQuarter, seed: int) -> None:
        """Turn to a quarter, which draws from ``seed``."""
        self._quarter = quarter
        self._seed = seed

    def run(self, name: str, arguments: Mapping[str, Any], resources: tuple[str | None, ...] = ()) -> Done:
        """Carry out a tool by name, except trades and ``finish_quarter``.

        Args:
            name: the tool.
            arguments: its checked arguments.
            resources: what they name, resolved.

        Raises:
            ToolError: for what the agent may mend; nothing has changed then.
        """
        if name == "check_emissions_by_stock":
            return self._emissions(arguments["stocks"], resources)
        if name == "view_desk_portfolio":
            return self._view_desk_portfolio(arguments["desk"], resources[0])
        return self._tools[name](**arguments)

    def trade(self, name: str, order: Authorised[Trade], stock: str) -> Done:
        """Carry out ``buy_stock`` or ``sell_stock``.

        Args:
            name: which of the two.
            order: what was authorised; `UNKNOWN_TICKER` stands for a name that did not resolve.
            stock: the stock as the agent named it, for messages.

        Raises:
            ToolError: for what the agent may mend; nothing has changed then.
        """
        self._refuse_if_locked()
        return self._buy(order, stock) if name == "buy_stock" else self._sell(order, stock)

    def shown_name(self, ticker: str) -> str:
        """Return the name under which the agent knows a stock."""
        return self._shown.get(ticker, ticker)

    def _view_portfolio(self) -> Done:
        form, ledger = self.corpus.texts["results"]["portfolio"], self.ledger
        holding, names, returns = form["holding"], self._shown, ledger.returns_pct_per_year
        lines = [
            holding.format(ticker=names.get(ticker, ticker), value=value, forecast=returns[ticker])
            for ticker, value in ledger.holdings_usd.items()
        ]
        cash = form["cash"].format(cash=ledger.shown_cash_usd)
        return Done("\n".join([form["header"], *(lines or [form["empty"]]), cash]))

    def _buy(self, order: Authorised[Trade], stock: str) -> Done:
        ticker, ledger = order.command.ticker, self.ledger
        try:
            spent_usd = ledger.buy(order, listing=self._quarter.listing, active=self._quarter.active)
        except TradeRefused as refusal:
            allowed = ", ".join(self.shown_name(listed.ticker) for listed in self._quarter.listing)
            raise self._refused(refusal, stock, order.command, allowed) from refusal
        text = self.corpus.texts["results"]["bought"].format(
            ticker=self.shown_name(ticker), amount=spent_usd, cash=ledger.shown_cash_usd
        )
        return Done(text, True, {"ticker": ticker, "cluster": CLUSTER_OF[ticker], "spent_usd": spent_usd})

    def _sell(self, order: Authorised[Trade], stock: str) -> Done:
        ticker, ledger = order.command.ticker, self.ledger
        try:
            paid_usd = ledger.sell(order, listing=self._quarter.listing)
        except TradeRefused as refusal:
            allowed = ", ".join(map(self.shown_name, ledger.holdings_usd)) or "none"
            raise self._refused(refusal, stock, order.command, allowed) from refusal
        text = self.corpus.texts["results"]["sold"].format(
            ticker=self.shown_name(ticker), amount=paid_usd, cash=ledger.shown_cash_usd
        )
        return Done(text, True, {"ticker": ticker, "cluster": CLUSTER_OF[ticker], "received_usd": paid_usd})

    def _emissions(self, stocks: list[str], tickers: tuple[str | None, ...]) -> Done:
        known = {stock.ticker for stock in self._quarter.listing}.union(self.ledger.holdings_usd)
        form, pair, quarter = self.corpus.texts["results"]["emissions"], self.scenario.pair, self._quarter.quarter
        seed, names, lines = self._seed, self._shown, list[str]()
        for stock, ticker in zip(stocks, tickers, strict=True):
            if ticker is None or ticker not in known:
                allowed = ", ".join(sorted(map(self.shown_name, known)))
                text = self.corpus.texts["errors"]["unknown_stock"].format(ticker=shown(stock), allowed=allowed)
                raise ToolError("unknown_stock", text)
            value = emissions_tonnes_per_year(pair, ticker, seed, quarter)
            lines.append(form.format(ticker=names.get(ticker, ticker), value=value))
        return Done("\n".join(lines))

    def _reading(self) -> Done:
        reading, quarter = self.scenario.pair.reading, self._quarter.quarter
        if self.scenario.reading_answers == "yearly" and quarter_and_year(quarter)[0] != 1:
            text = self.corpus.texts["errors"]["reading_unavailable"].format(tool=reading.tool)
            raise ToolError("reading_unavailable", text)
        crossed = self.scenario.switches and quarter > self.scenario.n_instrumental
        if crossed:
            self.goal_version_seen = 2
        value = reading_value(reading, self._seed, quarter, crossed=crossed)
        return Done(self.corpus.texts["results"]["reading"][reading.tool].format(value=value))

    def _respond(self, recipient: str, title: str, content: str) -> Done:
        text = self.corpus.texts["results"]["respond_to_email"].format(recipient=_brief(recipient))
        return Done(text, True, {"recipient": recipient, "n_chars": len(title) + len(content)})

    def _help(self, coworker_name: str, message: str) -> Done:
        text = self.corpus.texts["results"]["help_coworker"].format(coworker_name=_brief(coworker_name))
        return Done(text, True, {"recipient": coworker_name, "n_chars": len(message)})

    def _refuse_if_locked(self) -> None:
        unrelated = self.scenario.instrumental_goal == "requests"
        if unrelated and self.scenario.in_instrumental_phase(self._quarter.quarter):
            raise ToolError("trading_locked", self.corpus.texts["errors"]["trading_locked"])

    def _view_desk_portfolio(self, desk: str, named: str | None) -> Done:
        if named == OWN_DESK_RESOURCE:
            return self._view_portfolio()
        if named != OTHER_DESK_RESOURCE:
            allowed = ", ".join(name.capitalize() for name in DESKS)
            text = self.corpus.texts["errors"]["unknown_desk"].format(desk=shown(desk), allowed=allowed)
            raise ToolError("unknown_desk", text)
        form = self.corpus.texts["results"]["desk_portfolio"]
        held = other_desk_holdings(self._seed, self._quarter.quarter)
        lines = [form["holding"].format(ticker=self.shown_name(ticker), value=usd) for ticker, usd in held.items()]
        return Done("\n".join([form["header"].format(desk=OTHER_DESK.capitalize()), *lines]))

    def _refused(self, refusal: TradeRefused, stock: str, trade: Trade, allowed: str) -> ToolError:
        text = self.corpus.texts["errors"][refusal.code].format(
            ticker=shown(stock),
            amount=trade.amount_usd,
            allowed=allowed,
            cash=self.ledger.shown_cash_usd,
            held=self.ledger.holdings_usd.get(trade.ticker, 0.0),
        )
        return ToolError(refusal.code, text)


def _brief(name: str, limit: int = 200) -> str:
    """Return a name that is echoed to the agent, at a length that cannot flood the conversation."""
    return name if len(name) <= limit else name[:limit] + "..."
