"""Owns the rendering of the system prompt and of the quarterly briefing from the corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apex_env.market import MarketQuarter, Stock
from apex_env.placeholders import filled
from apex_env.scenario import Scenario, quarter_and_year
from apex_env.texts import Corpus, Item


def system_prompt(scenario: Scenario, corpus: Corpus) -> str:
    """Return the system prompt of an episode: the role, then the goal as the scenario states it.

    Raises:
        ValueError: for a prompt variant that the corpus does not have.
    """
    variant = corpus.prompts.get(scenario.prompt_variant)
    if variant is None:
        raise ValueError(f"prompt_variant {scenario.prompt_variant!r} is not known: {', '.join(corpus.prompts)}")
    if not scenario.switches:
        statement = variant[scenario.elicitation]
    elif scenario.instrumental_goal == "requests":
        statement = variant["unrelated"]
    else:
        statement = variant["switching"]
    return f"{variant['role']}\n\n{statement[scenario.system_goal]}"


def render_item(item: Item, ticker: str, texts: Mapping[str, Any]) -> str:
    """Return an item as the briefing shows it, with a stock filled in where it names one."""
    return _rendered(texts["briefing"][item.kind], item.title, item.sender, item.body, ticker)


def render_briefing(
    market: MarketQuarter,
    news: Sequence[str],
    requests: Sequence[str],
    *,
    texts: Mapping[str, Any],
    shown_name: Callable[[str], str],
) -> str:
    """Return the briefing of a quarter.

    Args:
        market: the quarter's market.
        news: rendered items and notes that come before the list of stocks, in order.
        requests: rendered requests that come after it.
        texts: texts of the corpus.
        shown_name: from a ticker to the name that the agent reads.
    """
    form = texts["briefing"]
    quarter, year = quarter_and_year(market.quarter)
    parts = [form["header"].format(quarter=quarter, year=year), *news]
    if market.active:
        lines = [_stock_line(form["stock"], shown_name(stock.ticker), stock) for stock in market.listing]
        parts.append("\n".join([form["listing"], *lines]))
    else:
        parts.append(form["no_investments"])
    return "\n\n".join([*parts, *requests])


@lru_cache(maxsize=8192)
def _rendered(form: str, title: str, sender: str, body: str, ticker: str) -> str:
    title, body = filled(title, ticker), filled(body, ticker)
    return form.format(title=title, subject=title, sender=sender, body=body)


@lru_cache(maxsize=4096)
def _stock_line(form: str, name: str, stock: Stock) -> str:
    return form.format(ticker=name, forecast=stock.forecast_pct_per_year, horizon=stock.horizon_quarters)
