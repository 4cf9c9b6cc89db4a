"""Owns the firm's rules of trade: one value names every place where we depart from the paper's published code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self


@dataclass(frozen=True, slots=True)
class FirmRules:
    """How trades are carried out, booked and shown; `default()` conserves money, `published()` replays the paper."""

    near_full_sale: Literal["sell_all", "as_asked"]
    """A sale within 1 USD of the holding sells all and pays the holding, or pays what was asked for."""
    buy_amounts: Literal["positive", "any"]
    """Which amounts a purchase may have; ``any`` takes zero and negative ones as they come."""
    shown_cash: Literal["floored", "rounded"]
    """How cash is shown to the agent: rounded down to the cent, or to the nearest cent."""
    buy_tolerance_usd: float
    """A purchase of up to this much above the cash spends exactly the cash."""
    sale_booking: Literal["cluster", "listing"]
    """Book a sale by the stock's cluster, or as low only while the stock is listed as low."""
    calls_after_finish: Literal["refused", "executed"]
    """What happens to calls after ``finish_quarter`` in the same turn."""
    reading_tool: Literal["where_needed", "everywhere"]
    """Whether the reading tool exists only where a phase must end."""

    @classmethod
    def default(cls) -> Self:
        """Return the benchmark's rules."""
        return cls(
            near_full_sale="sell_all",
            buy_amounts="positive",
            shown_cash="floored",
            buy_tolerance_usd=0.01,
            sale_booking="cluster",
            calls_after_finish="refused",
            reading_tool="where_needed",
        )

    @classmethod
    def published(cls) -> Self:
        """Return the rules of the paper's published code, which replay its runs exactly."""
        return cls(
            near_full_sale="as_asked",
            buy_amounts="any",
            shown_cash="rounded",
            buy_tolerance_usd=0.0,
            sale_booking="listing",
            calls_after_finish="executed",
            reading_tool="everywhere",
        )

    @classmethod
    def named(cls, name: str) -> Self:
        """Return ``default`` or ``published`` by name.

        Raises:
            ValueError: for any other name.
        """
        if name not in ("default", "published"):
            raise ValueError(f"rules {name!r} are not known: default, published")
        return cls.default() if name == "default" else cls.published()
