"""Owns the shape of a checkpoint: which keys it must have, of which types, and which may be missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.published.inert import CheckpointError
from analysis.published.pickles import read_pickle
from apex_env.market import CLUSTER_OF
from experiments.fields import Misfit, list_field, number_field, shown, text_field, whole_field

OPTIONAL_STATE_KEYS: Final = ("retrieve_data_count", "last_investment_in_high_profit_stock")
"""Keys of the simulation's state that early checkpoints lack, beside `system_message`; nothing needs them."""

MAX_QUARTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Position:
    """A holding at the end of a quarter, after its growth."""

    amount_usd: float
    return_pct_per_year: float


@dataclass(frozen=True, slots=True)
class QuarterState:
    """What the simulation wrote down at the end of a quarter."""

    income_usd: int
    wealth_usd: float
    bought_usd: tuple[float, float]
    """In stocks listed as low and as high."""
    sold_usd: tuple[float, float]
    """From stocks listed as low at that moment, and from all others."""
    positions: Mapping[str, Position]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A published run as its checkpoint has it."""

    model_id: str
    run: int
    messages: Sequence[Any]
    quarters: tuple[QuarterState, ...]
    cash_usd: float
    """At the end of the last quarter."""
    system_message: str | None
    n_tokens: int | None
    missing: tuple[str, ...]
    """Optional keys that are not there."""


def read_checkpoint(data: bytes) -> Checkpoint:
    """Return the checkpoint that a pickle holds, without executing it.

    Raises:
        CheckpointError: if it cannot be read as plain data, or has not the shape of a checkpoint.
    """
    value = read_pickle(data)
    if type(value) is not dict:
        raise CheckpointError("misshapen", f"a {type(value).__name__} where a dictionary is expected")
    try:
        return _checkpoint(value)
    except Misfit as misfit:
        raise CheckpointError("misshapen", str(misfit)) from None


def _checkpoint(value: Mapping[str, Any]) -> Checkpoint:
    state = value.get("prev_sim_data")
    if type(state) is not dict:
        raise Misfit(f"prev_sim_data is {shown(state)}: a dictionary is expected")
    n_quarters = whole_field(value, "current_timestep", 1) - 1
    if not 1 <= n_quarters <= MAX_QUARTERS:
        raise Misfit(f"current_timestep is {n_quarters + 1}: 2 to {MAX_QUARTERS + 1} are expected")
    missing = [] if "system_message" in value else ["system_message"]
    missing += [f"prev_sim_data.{key}" for key in OPTIONAL_STATE_KEYS if key not in state]
    return Checkpoint(
        model_id=text_field(value, "model"),
        run=whole_field(value, "run", 0),
        messages=list_field(value, "messages"),
        quarters=_quarters(state, n_quarters),
        cash_usd=_finite(state, "budget"),
        system_message=None if value.get("system_message") is None else text_field(value, "system_message"),
        n_tokens=None if value.get("num_tokens") is None else whole_field(value, "num_tokens", 0),
        missing=tuple(missing),
    )


def _quarters(state: Mapping[str, Any], n_quarters: int) -> tuple[QuarterState, ...]:
    names: tuple[str, ...] = ("budgets", "profits", "portfolio_composition")
    names += tuple(f"{flow}_{cluster}_profit_stocks" for flow in _FLOWS for cluster in ("low", "high"))
    columns = []
    for name in names:
        column = list_field(state, f"quarterly_{name}")
        if len(column) != n_quarters:
            raise Misfit(f"quarterly_{name} has {len(column)} entries, but {n_quarters} quarters are finished")
        columns.append(column)
    quarters = []
    for t, row in enumerate(zip(*columns, strict=True), 1):
        try:
            quarters.append(_quarter(dict(zip(names, row, strict=True))))
        except Misfit as misfit:
            raise Misfit(f"quarter {t}: {misfit}") from None
    return tuple(quarters)


_FLOWS: Final = ("investments_in", "divestments_from")


def _quarter(row: Mapping[str, Any]) -> QuarterState:
    holdings = row["portfolio_composition"]
    if type(holdings) is not dict:
        raise Misfit(f"portfolio_composition is {shown(holdings)}: a dictionary is expected")
    flows = [(_finite(row, f"{flow}_low_profit_stocks"), _finite(row, f"{flow}_high_profit_stocks")) for flow in _FLOWS]
    return QuarterState(
        income_usd=whole_field(row, "budgets", 0),
        wealth_usd=_finite(row, "profits"),
        bought_usd=flows[0],
        sold_usd=flows[1],
        positions={ticker: _position(ticker, entry) for ticker, entry in holdings.items()},
    )


def _finite(state: Mapping[str, Any], name: str) -> float:
    value = number_field(state, name)
    if not math.isfinite(value):
        raise Misfit(f"{name} is {value}: a finite number is expected")
    return value


def _position(ticker: str, entry: Any) -> Position:
    if ticker not in CLUSTER_OF:
        raise Misfit(f"portfolio_composition holds {shown(ticker)}, which is not in the market")
    if type(entry) is not dict:
        raise Misfit(f"the holding of {ticker} is {shown(entry)}: a dictionary is expected")
    return Position(_finite(entry, "amount"), _finite(entry, "return"))
