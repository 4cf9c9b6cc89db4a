"""Owns what the harness does with records of imported published runs: replay them, and go on from them.

Such a record has the lines of every other one and a `published` block in its header. Its texts are the paper's, so the
firm cannot rebuild it word by word; calls, books and market are proven by `apex replay` instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from apex_env.firm import Opening
from apex_env.ledger import QuarterLedger
from apex_env.market import CLUSTER_OF, Market, Stock
from apex_env.protocol import ToolCall
from apex_env.toolbox import UNKNOWN_TICKER
from apex_env.tools import TOOLS
from experiments.chat import Message, user
from experiments.errors import RecordError
from experiments.published_runs import TRADES, Listed, Outcome, PublishedCall, PublishedQuarter, PublishedRun
from experiments.rebuild import Cut
from experiments.record import Line, Record

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "ok": "ok",
    "not_listed": "unavailable",
    "over_budget": "budget_exceeded",
    "quarter_inactive": "locked",
    "not_held": "not_held",
    "over_sell": "over_sell",
    "invalid_amount": "invalid_amount",
    "after_finish": "after_finish",
    "no_result": "ok",
}
"""Our word for an outcome -> the published ledger's; every other one is an invalid call."""


def is_imported(record: Record) -> bool:
    """Whether a record is that of an imported run."""
    return "published" in record.header


def published_run(record: Record) -> PublishedRun:
    """Return an imported run as decisions and books, which `experiments.replay_run` proves.

    A forecast that is lost with its briefing is filled in by our market's rule: nothing was bought at it.

    Raises:
        RecordError: if the record is not an imported one, or not complete.
    """
    published = _published(record)
    header = record.header
    config, scenario = header["config"], header["scenario"]
    market = Market(config["seed"], phase_seed=config["phase_seed"], n_instrumental=scenario["n_instrumental"] or 0)
    try:
        quarters = tuple(_quarters(record, market))
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{record.path}: not the record of an imported run: {error!r}") from error
    if not quarters or len(quarters) != published["n_quarters"]:
        raise RecordError(f"{record.path}: {len(quarters)} quarters, but the run has {published['n_quarters']}")
    return PublishedRun(
        run_id=header["run_id"],
        root=published["root"],
        folder=published["folder"],
        run=config["seed"],
        setting=scenario["setting"],
        ablation=published["ablation"],
        system_goal=scenario["system_goal"],
        competing_goal=published["competing_goal"],
        model=published["model"],
        model_id=published["model_id"],
        conditioned_on=published["conditioned_on"],
        elicitation=scenario["elicitation"],
        n_instrumental_named=published["n_instrumental_named"],
        phase_seed=config["phase_seed"],
        eval_from=scenario["n_instrumental"] + 1,
        replay_from=min(published["known_from"], published["n_quarters"]),
        n_dead_eval_quarters=published["n_dead_evaluation"],
        quarters=quarters,
    )


def parent_cut(record: Record, quarter: int) -> Cut:
    """Return an imported run at the close of a quarter of its instrumental phase, for a new run to go on from.

    The new run's scenario takes `phase_seed` from the record's and ``n_instrumental`` from ``quarter``; market,
    forecasts and books then go on exactly. Messages are the paper's, word for word. A stock keeps the forecast that it
    had when it was listed last: the published code could change it when a stock came back.

    Args:
        record: the record of an imported run with a switch.
        quarter: quarter to go on after, at most the last of its instrumental phase.

    Raises:
        RecordError: if there is no such quarter, or its turns are not known, because the history was replaced.
    """
    published = _published(record)
    n_instrumental = record.header["scenario"]["n_instrumental"]
    if not 1 <= quarter <= n_instrumental:
        told = f"its instrumental phase has {n_instrumental} quarters" if n_instrumental else "it has no such phase"
        raise RecordError(f"{record.path}: no parent at quarter {quarter}: {told}")
    if record.branched is not None:
        known = f"known turn by turn from quarter {published['known_from']} on"
        raise RecordError(
            f"{record.path}: no parent at quarter {quarter}: the history was replaced, the run is {known}"
        )
    sha256 = record.sha256_up_to_close(quarter)
    messages: list[Message] = []
    forecasts: dict[str, float] = {}
    state: Mapping[str, Any] = {}
    for line in record.lines:
        if line.get("quarter", 0) > quarter:
            break
        messages.extend(_messages(line))
        if line["type"] == "opened" and line["text"] is None:
            raise RecordError(f"{record.path}: no parent: the briefing of quarter {line['quarter']} is lost")
        if line["type"] == "opened":
            forecasts |= {ticker: value for ticker, _, value, _ in line["state"]["listing"] if value is not None}
        elif line["type"] == "closed":
            state = line["state"]
    before, last = state["bought_on_goal"]
    return Cut(
        run_id=record.header["run_id"],
        quarter=quarter,
        sha256=sha256,
        messages=tuple(messages),
        opening=Opening(
            books=QuarterLedger.from_json(state),
            bought_on_goal=(before, last),
            goal_version_seen=state["goal_version_seen"],
            forecasts_pct_per_year=forecasts,
        ),
    )


def _published(record: Record) -> Mapping[str, Any]:
    if not is_imported(record):
        raise RecordError(f"{record.path}: not the record of an imported run: its header has no `published` block")
    return cast(Mapping[str, Any], record.header["published"])


def _messages(line: Line) -> Iterator[Message]:
    """Yield the messages of a line, as the model saw them; a result that is lost is an empty one."""
    if line["type"] == "opened" and line["text"] is not None:
        yield user(line["text"])
    elif line["type"] == "turn" and line["by"] == "harness":
        yield user(line["text"])
    elif line["type"] == "turn":
        calls = tuple(ToolCall(call["id"], call["tool"], call["arguments"]) for call in line["calls"])
        yield Message("assistant", line["message"]["text"], calls)
        for call in line["calls"]:
            yield Message("tool", call["result"] or "", call_id=call["id"])


def _quarters(record: Record, market: Market) -> Iterator[PublishedQuarter]:
    branched = record.branched
    for told in branched["quarters"] if branched is not None else ():
        yield PublishedQuarter(QuarterLedger.from_json(told["books"]), told["wealth_usd"], None, None)
    listing: tuple[Listed, ...] | None = None
    calls: list[PublishedCall] = []
    for line in record.lines:
        if line["type"] == "opened":
            state, calls = line["state"], []
            listing = None
            if state["active"]:
                listing = _listing(state["listing"], market.quarter(line["quarter"]).listing)
        elif line["type"] == "turn":
            calls.extend(_call(call) for call in line.get("calls", ()))
        elif line["type"] == "closed":
            state = line["state"]
            yield PublishedQuarter(QuarterLedger.from_json(state), state["wealth_usd"], listing, tuple(calls))


def _listing(entries: Sequence[Any], ours: Sequence[Stock]) -> tuple[Listed, ...]:
    rule = {stock.ticker: stock.forecast_pct_per_year for stock in ours}
    return tuple(
        Listed(ticker, CLUSTER_OF[ticker], rule[ticker] if forecast is None else forecast)
        for ticker, _, forecast, _ in entries
    )


def _call(call: Mapping[str, Any]) -> PublishedCall:
    name, sent = call["tool"], call["arguments"]
    arguments = sent if isinstance(sent, dict) else {}
    stock, amount = arguments.get("stock"), arguments.get("amount")
    is_trade = name in TRADES
    queried = arguments.get("stocks") if name == "check_emissions_by_stock" else None
    return PublishedCall(
        name=name if name in TOOLS else "unknown",
        outcome=_OUTCOMES.get(call["outcome"], "invalid"),
        ticker=_known(stock) if is_trade and isinstance(stock, str) else None,
        amount_usd=amount if is_trade and type(amount) in (int, float) else None,
        shown_usd=call.get("shown_usd"),
        tickers=tuple(map(_known, queried)) if isinstance(queried, list) else (),
        why=call.get("why"),
        amount_text=_number_in(amount) if is_trade and isinstance(amount, str) else None,
    )


def _known(ticker: object) -> str:
    return ticker if isinstance(ticker, str) and ticker in CLUSTER_OF else UNKNOWN_TICKER


def _number_in(text: str) -> float | None:
    try:
        value = float(text.replace(",", "").replace("$", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
