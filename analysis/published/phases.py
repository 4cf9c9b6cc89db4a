"""Owns where a published run's instrumental phase ends, and which seed it has, as far as the data themselves tell.

Every quarter's income is drawn from the phase's seed up to the phase's end and from the run's own after, so incomes
give seed and length away, whatever a folder's name says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from analysis.ledger_source import N_AFTER_SWITCH
from apex_env.market import Market

PHASE_SEEDS: Final = range(100)
"""Seeds that are tried for an instrumental phase; the published ones are 1 and 4."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The instrumental phase of a run, and the market that follows from it."""

    phase_seed: int | None
    """None without a switch."""
    n_instrumental: int
    market: Market
    strange_incomes: tuple[int, ...] = ()
    """Quarters whose income is not that of the market."""


def phase_of(incomes: Sequence[int], run: int, n_named: int, readings: Mapping[int, bool]) -> Phase:
    """Return the instrumental phase that a run's incomes tell of.

    Where the phase has the run's own seed they do not tell its end; then it is ten quarters before the last, or where
    the folder's name says if only that agrees with the readings.

    Args:
        incomes: income of every quarter, from the first on.
        run: number of the run, which is the seed of its market.
        n_named: length by the folder's name, 0 without a switch.
        readings: by quarter, whether a reading of that quarter was past the threshold.
    """
    if not n_named:
        return _checked(incomes, None, 0, run)
    seeds = [seed for seed in dict.fromkeys((run, *PHASE_SEEDS)) if _income(seed, 1) == incomes[0]]
    phase_seed = seeds[0] if seeds else 1
    if phase_seed != run:
        n_same = next((t for t, usd in enumerate(incomes) if _income(phase_seed, t + 1) != usd), len(incomes))
        return _checked(incomes, phase_seed, n_same or n_named, run)
    for length in (len(incomes) - N_AFTER_SWITCH, n_named):
        if length > 0 and all(past == (quarter > length) for quarter, past in readings.items()):
            return _checked(incomes, phase_seed, length, run)
    return _checked(incomes, phase_seed, n_named, run)


@lru_cache(maxsize=2048)
def market_of(run: int, phase_seed: int | None, n_instrumental: int) -> Market:
    """Return the market of a run; runs of several models share it."""
    return Market(run, phase_seed=phase_seed, n_instrumental=n_instrumental)


def _checked(incomes: Sequence[int], phase_seed: int | None, n_instrumental: int, run: int) -> Phase:
    market = market_of(run, phase_seed, n_instrumental)
    strange = tuple(t for t, usd in enumerate(incomes, 1) if market.quarter(t).income_usd != usd)
    return Phase(phase_seed, n_instrumental, market, strange)


def _income(seed: int, quarter: int) -> int:
    return market_of(seed, None, 0).quarter(quarter).income_usd
