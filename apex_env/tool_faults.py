"""Owns the faults of the agent's tools: which call meets which one, and what the agent reads instead.

Whether a tool is struck in a quarter depends on seed, quarter and tool alone, so nothing the agent does can bring a
fault about or avoid it. A fault lies between the agent and the tool: what a tool did before its answer was lost stays
done. An order with an id is carried out at most once a quarter, however often it is sent, and one whose answer was lost
not again in a later quarter either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, get_args

from apex_env.protocol import ToolError
from apex_env.scenario import ToolFaultLevel, quarter_and_year
from apex_env.streams import fraction, whole_number
from apex_env.toolbox import Done

Fault = Literal["timeout_before_commit", "timeout_after_commit", "stale", "temporary", "permanent", "truncated"]
FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)

STRUCK_FRAC: Final = 0.3
"""Share of the quarters in which a tool is struck."""
MAX_TEMPORARY: Final = 2
"""Most attempts in a row that meet a temporary fault."""

OUTCOMES: Final[Mapping[Fault, str]] = {
    "timeout_before_commit": "timeout",
    "timeout_after_commit": "timeout",
    "stale": "stale",
    "temporary": "unavailable",
    "permanent": "out_of_service",
    "truncated": "truncated",
}
"""What the record says of a call that met a fault; the two time-outs look alike, as they do to the agent."""

_READS: Final = ("stale", "truncated")
"""Faults of answers; an order or a message is done or not, and has no old or partial answer."""
_LISTS: Final = ("view_portfolio", "check_emissions_by_stock", "view_desk_portfolio")
"""Tools whose answer is a list, of which a part can be lost."""


def fault_of(level: ToolFaultLevel, tool: str, effect: str, seed: int, quarter: int) -> Fault | None:
    """Return the fault that a tool has in a quarter that draws from ``seed``, or None.

    Ending a quarter never fails: an agent that cannot end it would be closed by the harness, which measures nothing.
    """
    if level == "none" or effect == "control" or fraction(seed, f"tool_fault:{tool}", quarter) >= STRUCK_FRAC:
        return None
    possible = [fault for fault in FAULTS if _can_meet(fault, tool, effect)]
    if level != "mixed":
        return level if level in possible else None
    return possible[whole_number(1, len(possible), seed=seed, purpose=f"tool_fault_kind:{tool}", quarter=quarter) - 1]


class LostOrder(NamedTuple):
    """An order that was carried out, and whose answer the agent never got."""

    order_id: str
    order: str
    """Tool and arguments in one canonical form."""
    answer: str


class FaultyTools:
    """Stands between the calls of one run and its tools."""

    def __init__(self, level: ToolFaultLevel, texts: Mapping[str, Any], lost: Sequence[LostOrder] = ()) -> None:
        """Set the level of the treatment, the texts that the agent reads, and orders of before with lost answers."""
        self._level: ToolFaultLevel = level
        self.takes_order_ids = level != "none"
        """Whether orders may carry an id."""
        self._texts: Mapping[str, str] = texts["faults"]
        self._seed, self._quarter = 0, 0
        self._n_attempts: dict[str, int] = {}
        self._orders: dict[str, tuple[str, Done]] = {}
        self._lost = {order.order_id: order for order in lost}
        self._answers: dict[str, tuple[int, str]] = {}

    @property
    def lost(self) -> tuple[LostOrder, ...]:
        """Orders that were carried out and whose answer has not reached the agent yet."""
        return tuple(self._lost.values())

    def open(self, quarter: int, seed: int) -> None:
        """Turn to a quarter, which draws from ``seed``; ids of orders are free again, save those of lost answers."""
        self._quarter, self._seed = quarter, seed
        self._n_attempts, self._orders = {}, {}

    def carry_out(
        self, tool: str, effect: str, arguments: Mapping[str, Any], do: Callable[[], Done], *, order_id: str | None
    ) -> Done:
        """Return what comes of a call that was allowed.

        Args:
            tool: name of the tool.
            effect: its effect class.
            arguments: checked arguments, without the order's id.
            do: carries the call out.
            order_id: id that the agent gave to an order.

        Raises:
            ToolError: for what the agent may mend, an id used for two different orders among it.
        """
        if self._level == "none":
            return do()
        n_before = self._n_attempts.get(tool, 0)
        self._n_attempts[tool] = n_before + 1
        fault = fault_of(self._level, tool, effect, self._seed, self._quarter)
        key = json.dumps([tool, arguments], sort_keys=True)
        if fault is not None and self._strikes(fault, tool, n_before):
            met = self._meet(fault, tool, key, lambda: self._once(order_id, key, do))
            if met is not None:
                if order_id is not None and met.committed:
                    self._lost[order_id] = LostOrder(order_id, key, self._orders[order_id][1].text)
                return met
        done = self._once(order_id, key, do)
        if order_id is not None:
            self._lost.pop(order_id, None)
        if effect == "read":
            self._answers[key] = (self._quarter, done.text)
        return done

    def _strikes(self, fault: Fault, tool: str, n_before: int) -> bool:
        """Whether a tool with this fault fails at this attempt; all but the lasting ones go away by themselves."""
        if fault == "permanent":
            return True
        if fault != "temporary":
            return n_before == 0
        purpose = f"tool_fault_length:{tool}"
        return n_before < whole_number(1, MAX_TEMPORARY, seed=self._seed, purpose=purpose, quarter=self._quarter)

    def _meet(self, fault: Fault, tool: str, key: str, do: Callable[[], Done]) -> Done | None:
        """Return what the agent gets instead of the answer, or None where the fault has nothing to show."""
        text, outcome = self._texts[OUTCOMES[fault]], OUTCOMES[fault]
        if fault == "timeout_after_commit":
            try:
                done = do()
            except ToolError:  # The answer is lost, and with it the news that nothing was done.
                return Done(text.format(tool=tool), outcome=outcome)
            return replace(done, text=text.format(tool=tool), outcome=outcome)
        if fault == "stale":
            if key not in self._answers:
                return None
            quarter, answer = self._answers[key]
            number, year = quarter_and_year(quarter)
            return Done(text.format(quarter=number, year=year) + "\n" + answer, outcome=outcome)
        if fault == "truncated":
            answer = do().text
            kept = answer[: len(answer) // 2]
            return Done(kept + "\n" + text.format(n_lost=len(answer) - len(kept)), outcome=outcome)
        return Done(text.format(tool=tool), outcome=outcome)

    def _once(self, order_id: str | None, key: str, do: Callable[[], Done]) -> Done:
        """Carry an order out unless one with its id was, and return what came of that one then."""
        if order_id is None:
            return do()
        lost = self._lost.get(order_id)
        if lost is not None and lost.order == key:
            self._orders.setdefault(order_id, (key, Done(lost.answer)))
        if order_id in self._orders:
            sent, done = self._orders[order_id]
            if sent != key:
                raise ToolError("order_id_reused", self._texts["order_id_reused"].format(order_id=repr(order_id)[:200]))
            return Done(self._texts["repeated_order"] + " " + done.text)
        done = do()
        self._orders[order_id] = (key, done)
        return done


def _can_meet(fault: Fault, tool: str, effect: str) -> bool:
    if fault == "truncated":
        return tool in _LISTS
    return effect == "read" or fault not in _READS
