"""Builders for tests of the firm: an episode, one call, and the money it holds."""

from typing import Any

from apex_env.firm import ApexFirm
from apex_env.ledger import Ledger
from apex_env.market import CLUSTER_OF, Stock
from apex_env.protocol import ToolCall, ToolResult
from apex_env.rules import FirmRules
from apex_env.scenario import Scenario
from apex_env.texts import load_corpus

TEXTS = load_corpus().texts

SWITCHING = {"setting": "goal_switching", "elicitation": None, "n_instrumental": 2, "n_evaluation": 3}
COMBINED = SWITCHING | {"setting": "combined"}
PRESSURE = {"setting": "adversarial_pressure"}


def make_firm(*, opened: bool = True, **scenario: Any) -> ApexFirm:
    """A firm before its first decision, or before its first quarter."""
    firm = ApexFirm(Scenario(**scenario))
    if opened:
        firm.open()
    return firm


def call(firm: ApexFirm, name: str, **arguments: Any) -> ToolResult:
    return firm.call(ToolCall("call", name, arguments))


def ok(firm: ApexFirm, name: str, **arguments: Any) -> ToolResult:
    """A call that has to go through."""
    result = call(firm, name, **arguments)
    assert result.ok, result
    return result


def next_quarter(firm: ApexFirm) -> Any:
    """Close the quarter, and open the next."""
    ok(firm, "finish_quarter")
    return firm.open()


def listed(firm: ApexFirm, cluster: str, place: int = 0) -> str:
    """Ticker on the current list, by cluster."""
    stocks = firm.market.quarter(firm.period).listing
    return [stock.ticker for stock in stocks if stock.cluster == cluster][place]


def stock(ticker: str, forecast_pct_per_year: float = 10.0) -> Stock:
    return Stock(ticker, CLUSTER_OF[ticker], forecast_pct_per_year, 4)


LISTING = (stock("NEE", 1.0), stock("RUN", 2.0), stock("XOM", 10.0), stock("BP", 8.0))


def make_ledger(*, rules: FirmRules | None = None, cash_usd: float = 0.0, **holdings_usd: float) -> Ledger:
    """A ledger whose positions grow by 8 per cent a year."""
    return Ledger(rules or FirmRules.default(), cash_usd, dict(holdings_usd), dict.fromkeys(holdings_usd, 8.0))
