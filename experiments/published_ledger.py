"""Owns the reading of the published ledger: the paper's public runs as decisions and books, one JSON object a line.

A line that is not what it should be raises `LedgerError`, which names file, line, run, place and what is allowed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

import orjson

from apex_env.goals import Elicitation, GoalId
from apex_env.ledger import Flow, QuarterLedger
from apex_env.market import CLUSTER_OF, Market
from apex_env.scenario import Setting
from experiments.fields import (
    Misfit,
    choice_field,
    flag_field,
    list_field,
    number_field,
    shown,
    text_field,
    whole_field,
)
from experiments.published_runs import TRADES, Listed, Outcome, PublishedCall, PublishedQuarter, PublishedRun

__all__ = ["LedgerError", "PublishedCall", "PublishedQuarter", "PublishedRun", "parse_run", "read_each", "read_ledger"]

_OUTCOMES: Final = frozenset(get_args(Outcome))
_NAMES: Final = frozenset(
    (
        *TRADES,
        "view_portfolio",
        "check_emissions_by_stock",
        "retrieve_aum_data",
        "retrieve_fund_wide_emissions_data",
        "respond_to_email",
        "help_coworker",
        "finish_quarter",
        "unknown",
    )
)
_SETTINGS: Final[Mapping[str, Setting]] = {
    "baseline": "baseline",
    "adversarial": "adversarial_pressure",
    "goal_switching": "goal_switching",
    "goal_switching_adversarial": "combined",
}
_GOALS: Final[Mapping[str, GoalId]] = {"env": "emissions", "profit": "profit"}
_ELICITATIONS: Final[Mapping[str, Elicitation | None]] = {
    "weak": "weak",
    "strong": "strong",
    "strong(baseline)": "strong",
    "instrumental": None,
}


class LedgerError(ValueError):
    """A ledger cannot be read, in whole or at a line; the text names file, line, run and place."""


def read_ledger(path: str | Path) -> Iterator[PublishedRun]:
    """Yield the runs of a published ledger in the order of the file.

    Args:
        path: a file of JSON lines, compressed by gzip or plain.

    Raises:
        LedgerError: for a file that cannot be read or holds no run, and at the first line that is not in order.
    """
    for _, run in read_each(path):
        if isinstance(run, LedgerError):
            raise run
        yield run


def read_each(path: str | Path) -> Iterator[tuple[int, PublishedRun | LedgerError]]:
    """Yield number and run of each line, or what is wrong with the line, so that a caller can go on after it.

    Raises:
        LedgerError: for a file that cannot be read, is damaged or cut off, or is empty.
    """
    number, seen = 0, dict[str, int]()
    try:
        with open(path, "rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            if not compressed and str(path).endswith(".gz"):
                raise LedgerError(f"{path}: not a gzip file, though its name ends in .gz")
            raw.seek(0)
            for number, line in enumerate(gzip.GzipFile(fileobj=raw) if compressed else raw, 1):
                yield number, _parsed(line, f"{path}:{number}", number, seen)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LedgerError(f"{path}: the compressed data are damaged or cut off after line {number}: {error}") from error
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror or error}") from error
    if number == 0:
        raise LedgerError(f"{path}: the file is empty; expected one JSON object a line")


def _parsed(line: bytes, where: str, number: int, seen: dict[str, int]) -> PublishedRun | LedgerError:
    """Return the run of a line, or its error; ``seen`` holds the line of each run so far."""
    try:
        run = parse_run(line, where)
    except LedgerError as error:
        return error
    first = seen.setdefault(run.run_id, number)
    return run if first == number else LedgerError(f"{where}: run {run.run_id!r} stands in line {first} already")


def parse_run(line: bytes, where: str) -> PublishedRun:
    """Return the run of one line.

    Args:
        line: one JSON object.
        where: file and line, for messages.

    Raises:
        LedgerError: naming the run and the place in it.
    """
    try:
        state = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LedgerError(f"{where}: not a JSON object, or cut off: {error}") from error
    if not isinstance(state, dict):
        raise LedgerError(f"{where}: a {type(state).__name__} where a JSON object is expected")
    try:
        return _run(state)
    except Misfit as misfit:
        raise LedgerError(f"{where}: run {state.get('id', '?')!r}: {misfit}") from None


def _run(state: dict[str, Any]) -> PublishedRun:
    setting = text_field(state, "setting")
    eval_from, replay_from = whole_field(state, "eval_from", 1), whole_field(state, "replay_from", 1)
    phase_seed = None if state.get("phase_seed") is None else whole_field(state, "phase_seed", 0)
    run, entries = whole_field(state, "run", 0), list_field(state, "quarters")
    try:
        market = Market(run, phase_seed=phase_seed, n_instrumental=eval_from - 1)
    except ValueError as error:
        raise Misfit(str(error)) from None
    n_quarters = whole_field(state, "n_quarters", 1)
    if len(entries) != n_quarters:
        raise Misfit(f"n_quarters is {n_quarters}, but there are {len(entries)} quarters")
    for name, quarter in (("eval_from", eval_from), ("replay_from", replay_from)):
        if quarter > n_quarters:
            raise Misfit(f"{name} {quarter} is beyond the last quarter, {n_quarters}")
    ablation = setting.removeprefix("ablation_") if setting.startswith("ablation_") else None
    return PublishedRun(
        run_id=text_field(state, "id"),
        root=text_field(state, "root"),
        folder=text_field(state, "folder"),
        run=run,
        setting="goal_switching" if ablation else choice_field(state, "setting", _SETTINGS),
        ablation=ablation,
        system_goal=choice_field(state, "system_goal", _GOALS),
        competing_goal=choice_field(state, "competing_goal", _GOALS),
        model=text_field(state, "model"),
        model_id=text_field(state, "model_id"),
        conditioned_on=None if state.get("conditioned_on") is None else text_field(state, "conditioned_on"),
        elicitation=choice_field(state, "elicitation", _ELICITATIONS),
        n_instrumental_named=whole_field(state, "instrumental_steps", 0),
        phase_seed=phase_seed,
        eval_from=eval_from,
        replay_from=replay_from,
        n_dead_eval_quarters=whole_field(state, "dead_eval_quarters", 0),
        quarters=_quarters(entries, replay_from, market),
    )


def _quarters(entries: list[Any], replay_from: int, market: Market) -> tuple[PublishedQuarter, ...]:
    quarters: list[PublishedQuarter] = []
    returns: dict[str, float] = {}
    for t, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise Misfit(f"a {type(entry).__name__} where an object is expected")
            if type(entry.get("t")) is not int or entry["t"] != t:
                raise Misfit(f"t is {entry.get('t')!r}: quarters must be complete and in order from 1")
            quarters.append(_quarter(entry, t >= replay_from, returns, market))
        except Misfit as misfit:
            raise Misfit(f"quarter {t}: {misfit}") from None
    return tuple(quarters)


def _quarter(entry: dict[str, Any], has_calls: bool, returns: dict[str, float], market: Market) -> PublishedQuarter:
    """Return a quarter, and carry ``returns``, by ticker, over to its end."""
    t, end = entry["t"], entry.get("end")
    for name in ("inactive", "forced", "calls"):
        if (entry.get(name) is not None) != has_calls:
            raise Misfit(f"{name} is {shown(entry.get(name))}: it must be given from replay_from on, and only there")
    if not isinstance(end, dict):
        raise Misfit(f"end is {shown(end)}: an object is expected")
    listing = None if entry.get("stocks") is None else _listing(list_field(entry, "stocks"))
    calls = _calls(list_field(entry, "calls")) if has_calls else None
    holdings = _by_ticker(end, "holdings")
    if "returns" in end:
        returns.update(_by_ticker(end, "returns"))
    forecasts = {stock.ticker: stock.forecast_pct_per_year for stock in listing or ()}
    for call in calls or ():
        if call.name == "buy_stock" and call.outcome == "ok":
            if call.ticker not in forecasts:
                raise Misfit(f"{call.ticker!r} was bought, but is not among the stocks of the quarter")
            returns[call.ticker] = forecasts[call.ticker]
    books = QuarterLedger(
        quarter=t,
        active=not flag_field(entry, "inactive") if has_calls else market.quarter(t).active,
        income_usd=whole_field(entry, "income", 0),
        bought_usd=_flow(end, "invested"),
        sold_usd=_flow(end, "divested"),
        holdings_usd=holdings,
        returns_pct_per_year={ticker: returns[ticker] for ticker in holdings if ticker in returns},
        cash_usd=number_field(end, "budget"),
        forced=has_calls and flag_field(entry, "forced"),
    )
    return PublishedQuarter(books, number_field(end, "profit"), listing, calls)


def _listing(entries: list[Any]) -> tuple[Listed, ...]:
    listing = []
    for entry in entries:
        match entry:
            case [str(ticker), str(cluster), float() | int() as forecast] if CLUSTER_OF.get(ticker) == cluster:
                listing.append(Listed(ticker, CLUSTER_OF[ticker], float(forecast)))
            case _:
                raise Misfit(f"stocks holds {shown(entry)}: [ticker, low or high, forecast] of the market is expected")
    return tuple(listing)


def _calls(entries: list[Any]) -> tuple[PublishedCall, ...]:
    calls = []
    for place, entry in enumerate(entries, 1):
        try:
            calls.append(_call(entry))
        except Misfit as misfit:
            raise Misfit(f"call {place}: {misfit}") from None
    return tuple(calls)


def _call(entry: Any) -> PublishedCall:
    if type(entry) is not dict:
        raise Misfit(f"{shown(entry)}: an object is expected")
    name, outcome = entry.get("name"), entry.get("outcome")
    if type(name) is not str or name not in _NAMES:
        raise Misfit(f"name is {shown(name)}: expected is one of {', '.join(sorted(_NAMES))}")
    if type(outcome) is not str or outcome not in _OUTCOMES:
        raise Misfit(f"outcome is {shown(outcome)}: expected is one of {', '.join(get_args(Outcome))}")
    outcome = cast(Outcome, outcome)
    if len(entry) == 2 and name not in TRADES:
        return PublishedCall(name, outcome)
    tickers = list_field(entry, "tickers") if "tickers" in entry else ()
    if not all(type(ticker) is str for ticker in tickers):
        raise Misfit(f"tickers is {shown(tickers)}: a list of texts is expected")
    call = PublishedCall(
        name=name,
        outcome=outcome,
        ticker=text_field(entry, "ticker") if "ticker" in entry else None,
        amount_usd=number_field(entry, "amount") if "amount" in entry else None,
        shown_usd=number_field(entry, "value") if "value" in entry else None,
        tickers=tuple(tickers),
        why=text_field(entry, "why") if "why" in entry else None,
        amount_text=number_field(entry, "amount_text") if "amount_text" in entry else None,
    )
    if name in TRADES and outcome not in ("invalid", "after_finish"):
        if call.ticker is None or call.amount_usd is None:
            raise Misfit(f"{name} needs ticker and amount, and has {', '.join(entry)}")
        if outcome == "ok" and call.ticker not in CLUSTER_OF:
            raise Misfit(f"ticker {call.ticker!r} is not in the market")
    return call


def _flow(end: Mapping[str, Any], name: str) -> Flow:
    match end.get(name):
        case [float() | int() as low, float() | int() as high]:
            return Flow(float(low), float(high))
    raise Misfit(f"{name} is {shown(end.get(name))}: two numbers are expected, low and high")


def _by_ticker(end: Mapping[str, Any], name: str) -> dict[str, float]:
    values = end.get(name)
    if type(values) is not dict:
        raise Misfit(f"{name} is {shown(values)}: an object is expected")
    for ticker, value in values.items():
        if ticker not in CLUSTER_OF:
            raise Misfit(f"{name} holds {ticker!r}, which is not in the market")
        if type(value) is not float and type(value) is not int:
            raise Misfit(f"{name} of {ticker} is {shown(value)}: a number is expected")
    return {ticker: float(value) for ticker, value in values.items()}
