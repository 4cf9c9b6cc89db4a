"""Owns the episode: Apex Capital from the first quarter to the last, as an environment of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from apex_env.gateway import Gateway
from apex_env.guard import Guard
from apex_env.inbox import Inbox, Standing
from apex_env.ledger import Ledger, QuarterLedger
from apex_env.mandate import contract_of, crossing
from apex_env.market import CLUSTER_OF, Market, MarketQuarter
from apex_env.notes import notes_of_management
from apex_env.prompts import render_briefing, render_item, system_prompt
from apex_env.protocol import (
    DealtItem,
    EnvironmentDone,
    Observation,
    Revision,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from apex_env.resolver import Resolver
from apex_env.revisions import check_revision
from apex_env.scenario import Scenario, quarter_and_year
from apex_env.texts import Corpus, Item, load_corpus
from apex_env.tool_faults import LostOrder
from apex_env.toolbox import Done, Toolbox
from apex_env.tools import tool_specs

NAME: Final = "apex_fund"
VERSION: Final = "1"


class MarketSource(Protocol):
    """Where the firm reads its market; `Market` is the one of new runs, replays bring their own."""

    def quarter(self, quarter: int) -> MarketQuarter:
        """Return the market of a quarter."""

    def seed_at(self, quarter: int) -> int:
        """Return the seed that a quarter draws from."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What an episode goes on from: the books closed last, and what the run has seen so far."""

    books: QuarterLedger
    bought_on_goal: tuple[bool, bool] = (False, False)
    """Whether a stock that serves the system goal was bought in the quarter before the closed one, and in that."""
    goal_version_seen: int = 1
    dealt: tuple[str, ...] = ()
    """Ids of all items that reached the agent."""
    forecasts_pct_per_year: Mapping[str, float] = field(default_factory=dict)
    """Forecast that each ticker had when it was first listed."""
    lost_orders: tuple[LostOrder, ...] = ()
    """Orders that were carried out and whose answer has not reached the agent."""


class ApexFirm:
    """One seeded episode of the fund; see `apex_env.protocol.Environment` for the contract.

    The market, forecasts, emissions and readings depend on the seeds alone; nothing the agent does can shift them.
    """

    name = NAME
    version = VERSION

    def __init__(
        self,
        scenario: Scenario,
        *,
        corpus: Corpus | None = None,
        opening: Opening | None = None,
        market: MarketSource | None = None,
        yoked: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        """Set the firm up just before the first quarter, or before the one after ``opening``.

        Args:
            scenario: the episode.
            corpus: all texts; the embedded corpus where None.
            opening: where the episode goes on from; an empty fund before its first quarter where None.
            market: the market; the one of the scenario's seeds where None.
            yoked: ids of items by quarter that another run was dealt, for ``pressure_schedule: yoked``.

        Raises:
            ValueError: if the opening or the yoked items do not fit the scenario.
            CorpusExhausted: if the corpus has too few items for the episode.
        """
        if (yoked is None) != (scenario.pressure_schedule == "adaptive"):
            raise ValueError(f"pressure_schedule {scenario.pressure_schedule!r} and yoked items do not go together")
        opening = opening or Opening(QuarterLedger(scenario.first_quarter - 1))
        first, last = scenario.first_quarter - 1, scenario.last_quarter
        if not first <= opening.books.quarter <= last:
            raise ValueError(f"an opening after quarter {opening.books.quarter} is not allowed: {first} to {last}")
        self.scenario = scenario
        self.corpus = corpus or load_corpus()
        self.market = market or Market(
            scenario.seed,
            phase_seed=scenario.phase_seed,
            n_instrumental=scenario.n_instrumental,
            forecasts=opening.forecasts_pct_per_year,
        )
        self.books = opening.books
        """Closed books of the last quarter."""
        self.ledger = Ledger(
            scenario.firm_rules,
            opening.books.cash_usd,
            dict(opening.books.holdings_usd),
            dict(opening.books.returns_pct_per_year),
        )
        self.inbox = Inbox(scenario, self.corpus, opening.dealt, yoked, opening.books.quarter)
        self.system_prompt = system_prompt(scenario, self.corpus)
        self.tools: tuple[ToolSpec, ...] = tool_specs(scenario, self.corpus)
        self.period = opening.books.quarter
        self.closed = True
        self._bought_on_goal = opening.bought_on_goal
        self._forecasts = dict(opening.forecasts_pct_per_year)
        self._quarter = MarketQuarter(0, False, 0, ())
        self._toolbox = Toolbox(scenario, self.corpus, self.ledger)
        self._toolbox.goal_version_seen = opening.goal_version_seen
        self.guard = Guard(contract_of(scenario, self.goal_version), scenario.guard)
        self._gateway = Gateway(self.guard, self._toolbox, self.tools, lost=opening.lost_orders)

    @property
    def done(self) -> bool:
        """Whether the last quarter is closed."""
        return self.closed and self.period >= self.scenario.last_quarter

    @property
    def resolver(self) -> Resolver:
        """The names of the firm's world."""
        return self._toolbox.resolver

    @property
    def goal_version(self) -> int:
        """Version of the goal in force: 2 from the quarter after the instrumental phase."""
        return 2 if self.scenario.switches and self.period > self.scenario.n_instrumental else 1

    def open(self) -> Observation:
        """Open the next quarter: pay the income, and brief the agent.

        Raises:
            EnvironmentDone: after the last quarter.
            RuntimeError: while the current quarter is open.
        """
        if self.done:
            raise EnvironmentDone(f"quarter {self.period} was the last one")
        if not self.closed:
            raise RuntimeError(f"quarter {self.period} is still open")
        self.period += 1
        self.closed = False
        self._quarter = quarter = self.market.quarter(self.period)
        for stock in quarter.listing:
            self._forecasts.setdefault(stock.ticker, stock.forecast_pct_per_year)
        self.ledger.receive(quarter.income_usd)
        seed = self.market.seed_at(self.period)
        self._toolbox.open(quarter, seed)
        self._gateway.open_quarter(self.period, seed)
        revision = self._revision()
        dealt = self.inbox.deal(Standing(self.period, seed, any(self._bought_on_goal)))
        texts = self.corpus.texts
        notes = notes_of_management(self.scenario, self.books, quarter, texts["briefing"])
        news, requests = list[str](), list[str]()
        for item in dealt:
            place = requests if item.kind == "coworker_request" else news
            place.append(render_item(item, self._stock_named_in(item) if item.names_a_stock else "", texts))
        text = render_briefing(
            quarter, [*news, *notes.values()], requests, texts=texts, shown_name=self._toolbox.shown_name
        )
        items = [DealtItem(item.item_id, item.kind) for item in dealt] + [DealtItem(name, "note") for name in notes]
        return Observation(self.period, text, tuple(items), market_state(quarter), revision)

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call of the agent; what it may mend comes back with the kind of error as outcome."""
        late = self.closed and not self._runs_after_finish(call.name)
        return self._gateway.take(call, self.period, late=late, finish=self._finish)

    def force_close(self) -> str:
        """Close the quarter at the turn limit, and return the notice that the agent reads.

        Raises:
            RuntimeError: if it is closed already.
        """
        if self.closed:
            raise RuntimeError(f"quarter {self.period} is closed already")
        self._close(forced=True)
        quarter, year = quarter_and_year(self.period)
        return str(self.corpus.texts["results"]["forced_close"].format(quarter=quarter, year=year))

    @property
    def nudge(self) -> str:
        """The short request that follows a turn without a call."""
        return str(self.corpus.texts["results"]["nudge"])

    def snapshot(self) -> dict[str, Any]:
        """Return the books closed last as plain JSON, with what the next quarter depends on."""
        return self.books.to_json() | {
            "bought_on_goal": list(self._bought_on_goal),
            "goal_version_seen": self._toolbox.goal_version_seen,
        }

    def opening(self) -> Opening:
        """Return what another episode can go on from; the current quarter must be closed.

        Raises:
            RuntimeError: while the current quarter is open.
        """
        if not self.closed:
            raise RuntimeError(f"quarter {self.period} is still open")
        return Opening(
            books=self.books,
            bought_on_goal=self._bought_on_goal,
            goal_version_seen=self._toolbox.goal_version_seen,
            dealt=self.inbox.dealt,
            forecasts_pct_per_year=dict(self._forecasts),
            lost_orders=self._gateway.lost_orders,
        )

    def _finish(self) -> Done:
        self._close(forced=False)
        quarter, year = quarter_and_year(self.period)
        return Done(self.corpus.texts["results"]["finish_quarter"].format(quarter=quarter, year=year), True)

    def _runs_after_finish(self, name: str) -> bool:
        """Whether a call is carried out between two quarters; none is before the first, and none after the last."""
        between = self._quarter.quarter == self.period > 0 and not self.done
        return between and name != "finish_quarter" and self.ledger.rules.calls_after_finish == "executed"

    def _close(self, *, forced: bool) -> None:
        """Close the books: holdings grow, and the quarter becomes what the next one looks back on."""
        ledger = self.ledger
        ledger.grow()
        self.books = QuarterLedger(
            quarter=self.period,
            active=self._quarter.active,
            income_usd=self._quarter.income_usd,
            bought_usd=ledger.bought_usd,
            sold_usd=ledger.sold_usd,
            holdings_usd=dict(ledger.holdings_usd),
            returns_pct_per_year=dict(ledger.returns_pct_per_year),
            cash_usd=ledger.cash_usd,
            forced=forced,
            denied_usd=self._gateway.denied_usd,
        )
        on_goal = ledger.bought_usd.of(self.scenario.pair.system.cluster) > 0
        self._bought_on_goal = (self._bought_on_goal[1], on_goal)
        self.closed = True

    def _revision(self) -> Revision | None:
        """Return the crossing of the threshold, in the first quarter after it."""
        scenario = self.scenario
        if not scenario.switches or self.period != scenario.n_instrumental + 1:
            return None
        if scenario.switch_notice == "announced":
            self._toolbox.goal_version_seen = 2
        revision, new = crossing(scenario), contract_of(scenario, 2)
        check_revision(self.guard.contract, revision, new)
        self.guard.adopt(new)
        return revision

    def _stock_named_in(self, item: Item) -> str:
        """Return the shown name of the stock that an item is about: the largest holding of the cluster concerned."""
        goals = self.scenario.pair
        cluster = goals.competing.cluster if item.kind == "praise_news" else goals.system.cluster
        held = [ticker for ticker in self.ledger.holdings_usd if CLUSTER_OF[ticker] == cluster]
        listed = [stock.ticker for stock in self._quarter.listing if stock.cluster == cluster]
        ticker = max(held, key=lambda name: self.ledger.holdings_usd[name]) if held else listed[0]
        return self._toolbox.shown_name(ticker)


def market_state(quarter: MarketQuarter) -> dict[str, Any]:
    """Return the facts of a quarter that the record keeps."""
    return {
        "active": quarter.active,
        "income_usd": quarter.income_usd,
        "listing": [
            [stock.ticker, stock.cluster, stock.forecast_pct_per_year, stock.horizon_quarters]
            for stock in quarter.listing
        ],
    }
