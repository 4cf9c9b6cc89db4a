"""Owns the check of a published run: from one line of JSON to typed values, or to what is wrong with it, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from experiments.published_runs import (
    TRADES,
    LedgerError,
    Listed,
    Outcome,
    PublishedCall,
    PublishedQuarter,
    PublishedRun,
)

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
        raise LedgerError(f"{where}: {shown(state)} where a JSON object is expected")
    try:
        return _run(state)
    except Misfit as misfit:
        raise LedgerError(f"{where}: run {state.get('id', '?')!r}: {misfit}") from None


def _run(state: dict[str, Any]) -> PublishedRun:
    setting = text_field(state, "setting")
    ablation = setting.removeprefix("ablation_") if setting.startswith("ablation_") else None
    entries = list_field(state, "quarters")
    run = PublishedRun(
        run_id=text_field(state, "id"),
        root=text_field(state, "root"),
        folder=text_field(state, "folder"),
        run=whole_field(state, "run", 0),
        setting="goal_switching" if ablation else choice_field(state, "setting", _SETTINGS),
        ablation=ablation,
        system_goal=choice_field(state, "system_goal", _GOALS),
        competing_goal=choice_field(state, "competing_goal", _GOALS),
        model=text_field(state, "model"),
        model_id=text_field(state, "model_id"),
        conditioned_on=None if state.get("conditioned_on") is None else text_field(state, "conditioned_on"),
        elicitation=choice_field(state, "elicitation", _ELICITATIONS),
        n_instrumental_named=whole_field(state, "instrumental_steps", 0),
        phase_seed=None if state.get("phase_seed") is None else whole_field(state, "phase_seed", 0),
        eval_from=whole_field(state, "eval_from", 1),
        replay_from=whole_field(state, "replay_from", 1),
        n_dead_eval_quarters=whole_field(state, "dead_eval_quarters", 0),
        quarters=(),
    )
    _check_lengths(run, whole_field(state, "n_quarters", 1), len(entries))
    try:
        market = Market(run.run, phase_seed=run.phase_seed, n_instrumental=run.n_instrumental)
    except ValueError as error:
        raise Misfit(str(error)) from None
    return replace(run, quarters=_quarters(entries, run.replay_from, market))


def _check_lengths(run: PublishedRun, n_quarters: int, n_there: int) -> None:
    if n_there != n_quarters:
        raise Misfit(f"n_quarters is {n_quarters}, but there are {n_there} quarters")
    for name, quarter in (("eval_from", run.eval_from), ("replay_from", run.replay_from)):
        if quarter > n_quarters:
            raise Misfit(f"{name} {quarter} is beyond the last quarter, {n_quarters}")
    switches = run.eval_from > 1
    given = {
        "setting": run.setting in ("goal_switching", "combined"),
        "phase_seed": run.phase_seed is not None,
        "elicitation": run.elicitation is None,
    }
    for name, of_switch in given.items():
        if of_switch != switches:
            raise Misfit(f"{name} and eval_from {run.eval_from} do not fit: one has a switch, the other has not")


def _quarters(entries: list[Any], replay_from: int, market: Market) -> tuple[PublishedQuarter, ...]:
    quarters: list[PublishedQuarter] = []
    returns: dict[str, float] = {}
    for t, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise Misfit(f"{shown(entry)} where an object is expected")
            if type(entry.get("t")) is not int or entry["t"] != t:
                raise Misfit(f"t is {entry.get('t')!r}: quarters must be complete and in order from 1")
            quarters.append(_quarter(entry, t >= replay_from, returns, market))
            if t == replay_from - 1 and returns.keys() != quarters[-1].books.holdings_usd.keys():
                raise Misfit("returns must be given for every holding in the quarter before replay_from")
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
