"""Owns what each tool of the agent does, short of ending the quarter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from apex_env.goals import GoalPair, Reading
from apex_env.ledger import Ledger, TradeRefused
from apex_env.market import CLUSTER_OF, MarketQuarter
from apex_env.protocol import Json, ToolCall, ToolError
from apex_env.scenario import Scenario, quarter_and_year
from apex_env.streams import fraction, whole_number
from apex_env.texts import Corpus
from apex_env.tools import READING_TOOLS, shown

UNKNOWN_TICKER: Final = "?"
"""Stands for whatever name is none of a stock of the market."""

_RESOURCE_ARGUMENTS: Final = ("stock", "stocks", "recipient", "coworker_name")
_STOCK_TOOLS: Final = ("buy_stock", "sell_stock", "check_emissions_by_stock")


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool did."""

    text: str
    committed: bool = False
    moved: Mapping[str, Json] = field(default_factory=dict)


def emissions_tonnes_per_year(pair: GoalPair, ticker: str, seed: int, quarter: int) -> int:
    """Return the emissions of a company in a quarter that draws from ``seed``, rounded to 100 tonnes."""
    low, high = pair.attribute_range[CLUSTER_OF[ticker]]
    hundreds = whole_number(low // 100, high // 100, seed=seed, purpose=f"emissions:{ticker}", quarter=quarter)
    return hundreds * 100


def reading_value(reading: Reading, seed: int, quarter: int, *, crossed: bool) -> float:
    """Return what the reading tool shows in a quarter that draws from ``seed``, before or after the threshold."""
    least, most = reading.after if crossed else reading.before
    return least + fraction(seed, "reading", quarter) * (most - least)


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

    def resource(self, call: ToolCall) -> tuple[str | None, str | None]:
        """Return what a call acts on: as the model named it, and as tickers, None where a name did not resolve."""
        if not call.arguments or isinstance(call.arguments, str):
            return None, None
        sent = next((call.arguments[name] for name in _RESOURCE_ARGUMENTS if name in call.arguments), None)
        if sent is None:
            return None, None
        parts = [
            part if isinstance(part, str) else shown(part) for part in (sent if isinstance(sent, list) else [sent])
        ]
        raw = ", ".join(parts)
        if call.name not in _STOCK_TOOLS:
            return raw, raw
        resolved = [self.resolve(part) for part in parts]
        return raw, None if None in resolved else ", ".join(filter(None, resolved))

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
        ticker, ledger = self.resolve(stock) or UNKNOWN_TICKER, self.ledger
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
        ticker, ledger = self.resolve(stock) or UNKNOWN_TICKER, self.ledger
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
        known = {stock.ticker for stock in self._quarter.listing}.union(self.ledger.holdings_usd)
        form, pair, quarter = self.corpus.texts["results"]["emissions"], self.scenario.pair, self._quarter.quarter
        lines = []
        for stock in stocks:
            ticker = self.resolve(stock)
            if ticker not in known:
                allowed = ", ".join(sorted(map(self.shown_name, known)))
                text = self.corpus.texts["errors"]["unknown_stock"].format(ticker=shown(stock), allowed=allowed)
                raise ToolError("unknown_stock", text)
            value = emissions_tonnes_per_year(pair, ticker, self._seed, quarter)
            lines.append(form.format(ticker=self.shown_name(ticker), value=value))
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

    def _refused(self, refusal: TradeRefused, stock: str, amount: float, allowed: str) -> ToolError:
        held_usd = self.ledger.holdings_usd.get(self.resolve(stock) or UNKNOWN_TICKER, 0.0)
        text = self.corpus.texts["errors"][refusal.code].format(
            ticker=shown(stock), amount=amount, allowed=allowed, cash=self.ledger.shown_cash_usd, held=held_usd
        )
        return ToolError(refusal.code, text)


def _brief(name: str, limit: int = 200) -> str:
    """Return a name that is echoed to the agent, at a length that cannot flood the conversation."""
    return name if len(name) <= limit else name[:limit] + "..."
