"""Owns the way of a call: parsed, decided on, made a typed command, carried out; each step sees what the last one left.

A call that does not parse never becomes an action; an action that is denied never becomes a command. Whatever the agent
may mend comes back as a result with the kind of error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apex_env.contract import BUYING, Action
from apex_env.guard import Guard, Trade
from apex_env.ledger import Flow
from apex_env.market import CLUSTER_OF
from apex_env.protocol import Decision, ToolCall, ToolError, ToolResult, ToolSpec
from apex_env.tool_faults import FaultyTools, LostOrder
from apex_env.toolbox import UNKNOWN_TICKER, Done, Toolbox
from apex_env.tools import ORDER_ID, TOOLS, check_arguments, shown


class Gateway:
    """Takes the calls of one run."""

    def __init__(
        self, guard: Guard, toolbox: Toolbox, tools: Sequence[ToolSpec], *, lost: Sequence[LostOrder] = ()
    ) -> None:
        """Put a guard in front of a toolbox.

        Args:
            guard: decides on each action.
            toolbox: carries out what was authorised.
            tools: tools of the episode; no other one can be called.
            lost: orders of before whose answers never arrived.
        """
        self._guard = guard
        self._toolbox = toolbox
        self._tools = {tool.name: TOOLS[tool.name] for tool in tools}
        self._faults = FaultyTools(toolbox.scenario.tool_faults, toolbox.corpus.texts, lost)
        self.denied_usd = Flow()
        """Purchases denied since the quarter began, by the amounts asked for."""

    @property
    def lost_orders(self) -> tuple[LostOrder, ...]:
        """Orders that were carried out and whose answer has not reached the agent yet."""
        return self._faults.lost

    def open_quarter(self, quarter: int, seed: int) -> None:
        """Turn to a quarter, which draws from ``seed``, and begin to count anew."""
        self._guard.open_quarter()
        self._faults.open(quarter, seed)
        self.denied_usd = Flow()

    def take(self, call: ToolCall, quarter: int, *, late: bool, finish: Callable[[], Done]) -> ToolResult:
        """Return what comes of a call.

        Args:
            call: the call as the model sent it.
            quarter: the quarter opened last.
            late: whether the quarter is closed and this call comes too late for it.
            finish: closes the quarter.
        """
        guard, toolbox = self._guard, self._toolbox
        contract, seen = guard.contract, toolbox.goal_version_seen
        raw, resources = toolbox.resolver.resources(call)
        tool = self._tools.get(call.name)
        decision: Decision | None = None
        try:
            arguments = self._parsed(call, late=late)
            action = Action(
                contract.goal_id,
                contract.version,
                toolbox.resolver.owner(resources),
                call.name,
                TOOLS[call.name].effect_class,
                resources,
                arguments.get("amount"),
                quarter,
                False,
                toolbox.resolver.fresh,
            )
            decision = guard.decide(action)
            done = self._carry_out(action, arguments, decision, finish)
            outcome = done.outcome
        except ToolError as error:
            done, outcome = Done(error.text), error.code
        return ToolResult(
            text=done.text,
            outcome=outcome,
            effect_class=tool.effect_class if tool else None,
            tool_version=tool.version if tool else None,
            resource_raw=raw,
            resource=_joined(resources),
            decision=guard.of_error(outcome) if decision is None else decision,
            committed=done.committed,
            moved=done.moved,
            goal_id=contract.goal_id,
            goal_version=contract.version,
            goal_version_seen=seen,
        )

    def _parsed(self, call: ToolCall, *, late: bool) -> dict[str, Any]:
        """Return the arguments of a call that has a tool, a time and a form."""
        texts = self._toolbox.corpus.texts
        if call.name not in self._tools:
            form = {"name": shown(call.name), "allowed": ", ".join(self._tools)}
            raise ToolError("unknown_tool", texts["errors"]["unknown_tool"].format(**form))
        if late:
            raise ToolError("after_finish", texts["errors"]["after_finish"])
        return check_arguments(call, texts, order_ids=self._faults.takes_order_ids)

    def _carry_out(
        self, action: Action, arguments: Mapping[str, Any], decision: Decision, finish: Callable[[], Done]
    ) -> Done:
        if self._guard.denies(decision):
            raise self._denied(action, decision)
        if not self._faults.takes_order_ids:
            return self._do(action, arguments, decision, finish)
        order_id = arguments.get(ORDER_ID)
        sent = {argument: value for argument, value in arguments.items() if argument != ORDER_ID}
        return self._faults.carry_out(
            action.operation,
            action.effect,
            sent,
            lambda: self._do(action, sent, decision, finish),
            order_id=order_id,
        )

    def _do(self, action: Action, sent: Mapping[str, Any], decision: Decision, finish: Callable[[], Done]) -> Done:
        name = action.operation
        if action.effect == "trade":
            return self._toolbox.trade(name, self._guard.authorise(_trade(action), decision), sent["stock"])
        return finish() if name == "finish_quarter" else self._toolbox.run(name, sent, action.resources)

    def _denied(self, action: Action, decision: Decision) -> ToolError:
        """Return what the agent reads of a denial, and take note of money that it wanted to spend.

        The denial names the version in force, so from here on the agent can know of it.
        """
        toolbox = self._toolbox
        named = [resource for resource in action.resources if resource is not None]
        if action.operation == BUYING and named and action.amount_usd is not None and named[0] in CLUSTER_OF:
            self.denied_usd = self.denied_usd.plus(CLUSTER_OF[named[0]], action.amount_usd)
        toolbox.goal_version_seen = max(toolbox.goal_version_seen, action.goal_version)
        text = toolbox.corpus.texts["errors"]["denied"].format(
            reason=decision.reason,
            operation=action.operation,
            resource=", ".join(toolbox.shown_name(resource) for resource in named) or "none",
            goal_version=action.goal_version,
        )
        return ToolError("denied", text)


def _trade(action: Action) -> Trade:
    """Return the order that an action comes to; a stock that did not resolve is one that the ledger refuses."""
    ticker = action.resources[0] if action.resources else None
    return Trade(ticker or UNKNOWN_TICKER, 0 if action.amount_usd is None else action.amount_usd)


def _joined(resources: tuple[str | None, ...]) -> str | None:
    if not resources or None in resources:
        return None
    return resources[0] if len(resources) == 1 else ", ".join(filter(None, resources))
