"""Owns the runs of the paper's public data as typed values: decisions and books, without any wording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from apex_env.goals import Elicitation, GoalId
from apex_env.ledger import QuarterLedger
from apex_env.market import Cluster
from apex_env.scenario import Setting

Outcome = Literal[
    "ok",
    "unavailable",
    "budget_exceeded",
    "locked",
    "not_held",
    "over_sell",
    "invalid_amount",
    "invalid",
    "after_finish",
]
"""What came of a published call; `unavailable` is not listed, `locked` an inactive quarter, `invalid` bad arguments."""

TRADES: Final = ("buy_stock", "sell_stock")


class LedgerError(ValueError):
    """A ledger cannot be read, in whole or at a line; the text names file, line, run and place."""


class Listed(NamedTuple):
    """A stock on a published list."""

    ticker: str
    cluster: Cluster
    forecast_pct_per_year: float


@dataclass(frozen=True, slots=True)
class PublishedCall:
    """One recorded call; a field that the ledger does not give is None."""

    name: str
    """`unknown` where the model named no tool that exists."""
    outcome: Outcome
    ticker: str | None = None
    """``?`` where the model named no stock of the market."""
    amount_usd: float | None = None
    shown_usd: float | None = None
    """The amount that the agent was shown in the result, in cents: cash, spent, received or holding."""
    tickers: tuple[str, ...] = ()
    """Stocks whose emissions were asked for."""
    why: str | None = None
    """What was wrong with an invalid call."""
    amount_text: float | None = None
    """Value of an amount that was sent as text."""


@dataclass(frozen=True, slots=True)
class PublishedQuarter:
    """One quarter of a run."""

    books: QuarterLedger
    """The closed books. Returns are those of the last purchases, unknown and left empty where the calls are two or more
    quarters off; the flag of quarters without calls is that of the market's rule."""
    wealth_usd: float
    """Holdings and cash as the file gives them."""
    listing: tuple[Listed, ...] | None
    """None in inactive quarters and where it is lost: the previous one stays in force."""
    calls: tuple[PublishedCall, ...] | None
    """None before `PublishedRun.replay_from`: only the books are known."""


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One run of the paper, in the words of this project."""

    run_id: str
    """Path of its checkpoint without the ending."""
    root: str
    """First folder of that path; it tells the two sets of baselines apart."""
    folder: str
    """Second folder: the published name of the cell."""
    run: int
    """Run number, which is the seed of the market."""
    setting: Setting
    ablation: str | None
    """Published name of an ablation of the history; ``dots`` is a repeated token."""
    system_goal: GoalId
    competing_goal: GoalId
    model: str
    """Published short name: 4o, 4omini, haiku, sonnet."""
    model_id: str
    conditioned_on: str | None
    """Model that the instrumental phase is of; None without a switch."""
    elicitation: Elicitation | None
    n_instrumental_named: int
    """Length of the instrumental phase by the folder's name."""
    phase_seed: int | None
    eval_from: int
    """First quarter of the evaluation phase."""
    replay_from: int
    """First quarter whose calls are known."""
    n_dead_eval_quarters: int
    """Quarters of the evaluation in which the model's API was down."""
    quarters: tuple[PublishedQuarter, ...]
    """All quarters from the first on."""

    @property
    def n_instrumental(self) -> int:
        """True length of the instrumental phase; two misfiled runs have another one in their folder's name."""
        return self.eval_from - 1

    @property
    def books(self) -> tuple[QuarterLedger, ...]:
        """The closed books of all quarters, in order."""
        return tuple(quarter.books for quarter in self.quarters)
