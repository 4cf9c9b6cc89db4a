"""Owns the spending of an experiment: the prices of its models, and what all its records have taken so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from experiments.chat import Usage
from experiments.errors import InputError, RecordError
from experiments.glance import Glance, PriceOf, record_files, unknown_price
from experiments.limits import SweepLimits
from experiments.models import adapter_of
from experiments.models.pricing import Price
from experiments.run_spec import ModelConfig
from experiments.spending import Spent, spent_in

LOOK_AGAIN_S: Final = 10.0
"""How often the records of an experiment are looked at for what other processes have spent since."""


FREE: Final = Price(input_usd=0.0, output_usd=0.0)
"""Of embedded agents, and of a user's own unless it reports what it has spent."""


def known_price(config: ModelConfig) -> Price | None:
    """Return the price of a model, or None where it is unknown; no key is needed.

    Raises:
        InputError: for an unknown adapter, or a configured price that is none.
    """
    adapter = adapter_of(config)
    price: Price | None = adapter.price(config) if hasattr(adapter, "price") else FREE
    return price


def check_prices(limits: SweepLimits, models: Sequence[ModelConfig]) -> None:
    """Refuse a cost limit that cannot be kept.

    Args:
        limits: the limits.
        models: every model that is asked.

    Raises:
        InputError: naming the limit and the models of unknown price.
    """
    scopes = {"sweep": limits.sweep, "run": limits.run}
    named = [f"limits.{scope}.max_cost_usd" for scope, one in scopes.items() if one.max_cost_usd is not None]
    unknown = [model.name for model in models if known_price(model) is None] if named else []
    if unknown:
        raise InputError(
            f"{' and '.join(named)} cannot be kept, because the price of {', '.join(unknown)} is unknown: give it as "
            f"service.price.input and service.price.output of the model, in US dollars for a million tokens, or use "
            "max_tokens"
        )


@dataclass(slots=True)
class Spending:
    """What an experiment has spent: its records, and the turns that this process has taken since they were read."""

    root: Path
    price_of: PriceOf = unknown_price
    _glances: dict[Path, Glance] = field(default_factory=dict)
    _on_disk: Spent = Spent()
    _since: Spent = Spent()
    _looked: float = float("-inf")

    def take(self, usage: Usage | None) -> None:
        """Take note of a turn of this process, which is in its record by now."""
        self._since += spent_in(usage)

    @property
    def total(self) -> Spent:
        """Everything that has been spent; other processes are looked at now and then."""
        if time.monotonic() - self._looked >= LOOK_AGAIN_S:
            self._look()
        return self._on_disk + self._since

    def _look(self) -> None:
        for path in record_files(self.root):
            # A damaged record is told of when its run is to be gone on with; what could be read of it counts.
            with suppress(RecordError):
                self._glances.setdefault(path, Glance(path, self.price_of)).refresh()
        self._on_disk = sum((glance.spent for glance in self._glances.values()), Spent())
        self._since = Spent()
        self._looked = time.monotonic()
