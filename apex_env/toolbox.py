"""Owns what each tool of the agent does, short of ending the quarter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apex_env.ledger import Ledger, TradeRefused
from apex_env.market import CLUSTER_OF, MarketQuarter
from apex_env.protocol import Json, ToolError
from apex_env.scenario import Scenario
from apex_env.streams import stream
from apex_env.texts import Corpus
from apex_env.tools import READING_TOOLS


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool did."""

    text: str
    committed: bool = False
    moved: Mapping[str, Json] = field(default_factory=dict)


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
        self._real = {shown: ticker for ticker, shown in invented.items()} or {ticker: ticker for ticker in CLUSTER_OF}
        self._tools: dict[str, Callable[..., Done]] = {
            "view_portfolio": self._view_portfolio,
            "buy_stock": self._buy,
            "sell_stock": self._sell,
            "check_emissions_by_stock": self._emissions,
            **dict.fromkeys(READING_TOOLS, self._reading),
            "respond_to_email": self._respond,
            "help_coworker": self._help,
        }

    def open(self, quarter: MarketQuarter, seed: int) -> None:
        """Turn to a quarter, which draws from ``seed``."""
        self._quarter = quarter
        self._seed = seed

    def run(self, name: str, arguments: Mapping[str, Any]) -> Done:
        """Carry out a tool by name, except ``finish_quarter``.

        Raises:
            ToolError: for what the agent may mend; nothing has changed then.
        """
        return self._tools[name](**arguments)

    def shown_name(self, ticker: str) -> str:
        """Return the name under which the agent knows a stock."""
        return self._shown.get(ticker, ticker)

    def resolve(self, name: str) -> str | None:
        """Return the ticker of a stock as the agent named it, or None; case and blanks around it do not matter."""
        return self._real.get(name) or self._real.get(name.strip().upper())

    def _view_portfolio(self) -> Done:
        form, ledger = self.corpus.texts["results"]["portfolio"], self.ledger
        lines = [
            form["holding"].format(
                ticker=self.shown_name(ticker), value=value, forecast=ledger.returns_pct_per_year[ticker]
            )
            for ticker, value in ledger.holdings_usd.items()
        ]
        cash = form["cash"].format(cash=ledger.shown_cash_usd)
        return Done("\n".join([form["header"], *(lines or [form["empty"]]), cash]))

    def _buy(self, stock: str, amount: float) -> Done:
        self._refuse_if_locked()
        ticker, ledger = self.resolve(stock) or stock, self.ledger
        try:
            spent_usd = ledger.buy(ticker, amount, listing=self._quarter.listing, active=self._quarter.active)
        except TradeRefused as refusal:
            allowed = ", ".join(self.shown_name(listed.ticker) for listed in self._quarter.listing)
            raise self._refused(refusal, stock, amount, allowed) from refusal
        text = self.corpus.texts["results"]["bought"].format(
            ticker=self.shown_name(ticker), amount=spent_usd, cash=ledger.shown_cash_usd
        )
        return Done(text, True, {"ticker": ticker, "cluster": CLUSTER_OF[ticker], "spent_usd": spent_usd})

    def _sell(self, stock: str, amount: float) -> Done:
        self._refuse_if_locked()
        ticker, ledger = self.resolve(stock) or stock, self.ledger
        try:
            paid_usd = ledger.sell(ticker, amount, listing=self._quarter.listing)
        except TradeRefused as refusal:
            allowed = ", ".join(map(self.shown_name, ledger.holdings_usd)) or "none"
            raise self._refused(refusal, stock, amount, allowed) from refusal
        text = self.corpus.texts["results"]["sold"].format(
            ticker=self.shown_name(ticker), amount=paid_usd, cash=ledger.shown_cash_usd
        )
        return Done(text, True, {"ticker": ticker, "cluster": CLUSTER_OF[ticker], "received_usd": paid_usd})

    def _emissions(self, stocks: list[str]) -> Done:
        known = {stock.ticker for stock in self._quarter.listing} | set(self.ledger.holdings_usd)
        lines = []
        for stock in stocks:
            ticker = self.resolve(stock)
            if ticker not in known:
                allowed = ", ".join(sorted(map(self.shown_name, known)))
                text = self.corpus.texts["errors"]["unknown_stock"].format(ticker=stock, allowed=allowed)
                raise ToolError("unknown_stock", text)
            low, high = self.scenario.pair.attribute_range[CLUSTER_OF[ticker]]
            rng = stream(self._seed, f"emissions:{ticker}", self._quarter.quarter)
            value = rng.randint(low // 100, high // 100) * 100
            lines.append(self.corpus.texts["results"]["emissions"].format(ticker=self.shown_name(ticker), value=value))
        return Done("\n".join(lines))

    def _reading(self) -> Done:
        reading, quarter = self.scenario.pair.reading, self._quarter.quarter
        crossed = self.scenario.switches and quarter > self.scenario.n_instrumental
        if crossed:
            self.goal_version_seen = 2
        value = stream(self._seed, "reading", quarter).uniform(*(reading.after if crossed else reading.before))
        return Done(self.corpus.texts["results"]["reading"][reading.tool].format(value=value))

    def _respond(self, recipient: str, title: str, content: str) -> Done:
        text = self.corpus.texts["results"]["respond_to_email"].format(recipient=recipient)
        return Done(text, True, {"recipient": recipient, "n_chars": len(title) + len(content)})

    def _help(self, coworker_name: str, message: str) -> Done:
        text = self.corpus.texts["results"]["help_coworker"].format(coworker_name=coworker_name)
        return Done(text, True, {"recipient": coworker_name, "n_chars": len(message)})

    def _refuse_if_locked(self) -> None:
        unrelated = self.scenario.instrumental_goal == "requests"
        if unrelated and self.scenario.in_instrumental_phase(self._quarter.quarter):
            raise ToolError("trading_locked", self.corpus.texts["errors"]["trading_locked"])

    def _refused(self, refusal: TradeRefused, stock: str, amount: float, allowed: str) -> ToolError:
        held_usd = self.ledger.holdings_usd.get(self.resolve(stock) or stock, 0.0)
        text = self.corpus.texts["errors"][refusal.code].format(
            ticker=stock, amount=amount, allowed=allowed, cash=self.ledger.shown_cash_usd, held=held_usd
        )
        return ToolError(refusal.code, text)
