"""Owns what happened in an imported run, quarter by quarter, as the lines of a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from analysis.published.books import Quarter
from analysis.published.calls import Outcome
from analysis.published.quarters import SentCall, Talk, Turn
from apex_env.firm import Opening
from apex_env.ledger import QuarterLedger
from apex_env.market import CLUSTER_OF
from apex_env.protocol import Revision, ToolCall, ToolResult
from apex_env.scenario import Scenario
from apex_env.tools import TOOLS
from experiments.chat import Message, unique_ids
from experiments.environments import opening_to_json
from experiments.rebuild import messages_sha256
from experiments.turn_lines import call_line

Line = dict[str, Any]

_RESOURCE_ARGUMENTS = ("stock", "stocks", "recipient", "coworker_name")
_STOCK_TOOLS = ("buy_stock", "sell_stock", "check_emissions_by_stock")


@dataclass(slots=True)
class Story:
    """Tells a run in order; it keeps what later lines depend on."""

    scenario: Scenario
    model_id: str
    books: QuarterLedger = field(default_factory=lambda: QuarterLedger(0))
    """Closed last."""
    bought_on_goal: tuple[bool, bool] = (False, False)
    goal_version_seen: int = 1
    forecasts: dict[str, float] = field(default_factory=dict)
    """Forecast of each ticker when it was listed last; the published code could change it when a stock came back."""
    taken_ids: set[str] = field(default_factory=set)

    def pass_over(self, quarter: Quarter) -> None:
        """Take note of a quarter whose books are known and nothing else."""
        for stock in quarter.listing:
            if stock.forecast_pct_per_year is not None:
                self.forecasts[stock.ticker] = stock.forecast_pct_per_year
        self.books = quarter.books
        on_goal = quarter.books.bought_usd.of(self.scenario.pair.system.cluster) > 0
        self.bought_on_goal = (self.bought_on_goal[1], on_goal)

    def branched(self, told: Sequence[Quarter], history: Sequence[Message], kind: str) -> Line:
        """Return the line of a run whose first quarters are known by their books only."""
        opening = Opening(
            books=self.books,
            bought_on_goal=self.bought_on_goal,
            goal_version_seen=self.goal_version_seen,
            forecasts_pct_per_year=self.forecasts,
        )
        shown = self._unique(history)
        return {
            "type": "branched",
            "parent": None,
            "quarter": self.books.quarter,
            "parent_sha256": None,
            "opening": opening_to_json(opening),
            "recipe": {"kind": kind, "published": True},
            "history_sha256": messages_sha256(shown),
            "history": [message.to_json() for message in shown],
            "quarters": [
                {"books": quarter.books.to_json(), "wealth_usd": quarter.wealth_usd, "listing": _listing(quarter)}
                for quarter in told
            ],
        }

    def quarter(self, quarter: Quarter, talk: Talk) -> Iterator[Line]:
        """Yield the lines of a quarter, from its opening to its close."""
        t, scenario = quarter.books.quarter, self.scenario
        if scenario.switches and t == scenario.n_instrumental + 1:
            yield {"type": "revision", "quarter": t} | asdict(self._revision())
        state = {"active": quarter.books.active, "income_usd": quarter.books.income_usd, "listing": _listing(quarter)}
        yield {"type": "opened", "quarter": t, "state": state, "items": None, "text": talk.briefing}
        n_turns = 0
        for turn, outcomes in zip(talk.turns, quarter.outcomes, strict=True):
            if turn.by == "model":
                yield self._turn(turn, outcomes, t, n_turns)
                n_turns += 1
            else:
                place = {"type": "turn", "quarter": t, "turn": n_turns}
                yield place | {"by": "harness", "kind": turn.by, "text": turn.text}
        self.pass_over(quarter)
        yield {
            "type": "closed",
            "quarter": t,
            "state": quarter.books.to_json()
            | {
                "bought_on_goal": list(self.bought_on_goal),
                "goal_version_seen": self.goal_version_seen,
                "wealth_usd": quarter.wealth_usd,
            },
        }

    def _turn(self, turn: Turn, outcomes: Sequence[Outcome], t: int, place: int) -> Line:
        command = f"q{t}t{place}"
        calls = unique_ids([sent.call for sent in turn.calls], self.taken_ids, command)
        return {
            "type": "turn",
            "quarter": t,
            "turn": place,
            "by": "model",
            "message": Message("assistant", turn.text).to_json(),
            "stop": "calls" if calls else "done",
            "model_reported": self.model_id,
            "usage": None,
            "latency_s": None,
            "attempts": None,
            "calls": [
                self._call(call, sent, outcome, t, command_id=f"{command}c{n}")
                for n, (call, sent, outcome) in enumerate(zip(calls, turn.calls, outcomes, strict=True))
            ],
        }

    def _call(self, call: ToolCall, sent: SentCall, outcome: Outcome, t: int, *, command_id: str) -> Line:
        scenario = self.scenario
        tool = TOOLS.get(call.name)
        raw, resource = _resource(call)
        moved = _moved(call, outcome) if outcome.done else {}
        control = call.name == "finish_quarter" and outcome.ok
        result = ToolResult(
            text=sent.result or "",
            outcome=outcome.code,
            effect_class=tool.effect_class if tool else None,
            resource_raw=raw,
            resource=resource,
            committed=bool(moved) or control,
            moved=moved,
            goal_id=scenario.system_goal,
            goal_version=2 if scenario.switches and t > scenario.n_instrumental else 1,
            goal_version_seen=self.goal_version_seen,
        )
        self._take_note(call, outcome)
        line = call_line(call, result, command_id=command_id, sent_id=sent.call.call_id)
        line["result"] = sent.result
        told = {"shown_usd": outcome.shown_usd, "why": outcome.why}
        return line | {name: value for name, value in told.items() if value is not None}

    def _take_note(self, call: ToolCall, outcome: Outcome) -> None:
        """Take note of a reading that is past the threshold: from then on the agent can know of its new goal."""
        reading = self.scenario.pair.reading
        if outcome.reading is None or call.name != reading.tool or not self.scenario.switches:
            return
        rises = reading.after[0] > reading.threshold
        if (outcome.reading > reading.threshold) == rises:
            self.goal_version_seen = 2

    def _unique(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """Return a history in which every id of a call is there once, with the results that belong to it."""
        messages: list[Message] = []
        renamed: dict[str, str] = {}
        for place, message in enumerate(history):
            if message.role == "assistant":
                calls = unique_ids(message.calls, self.taken_ids, f"h{place}")
                renamed = {old.call_id: new.call_id for old, new in zip(message.calls, calls, strict=True)}
                messages.append(Message("assistant", message.text, calls))
            elif message.role == "tool":
                messages.append(Message("tool", message.text, call_id=renamed.get(message.call_id, message.call_id)))
            else:
                messages.append(message)
        return tuple(messages)

    def _revision(self) -> Revision:
        pair = self.scenario.pair
        changes = {"goal_in_force": {"from": pair.competing.id, "to": pair.system.id}}
        reason = f"{pair.reading.tool} passed {pair.reading.threshold:,.0f} {pair.reading.unit}"
        return Revision("apex_capital_management", reason, 1, 2, changes)


def _listing(quarter: Quarter) -> list[list[Any]]:
    return [
        [stock.ticker, CLUSTER_OF[stock.ticker], stock.forecast_pct_per_year, stock.horizon_quarters]
        for stock in quarter.listing
    ]


def _resource(call: ToolCall) -> tuple[str | None, str | None]:
    """Return what a call acts on: as the model named it, and as tickers, None where a name did not resolve."""
    if isinstance(call.arguments, str):
        return None, None
    sent = next((call.arguments[name] for name in _RESOURCE_ARGUMENTS if name in call.arguments), None)
    if sent is None:
        return None, None
    parts = [str(part)[:200] for part in (sent if isinstance(sent, list) else [sent])]
    raw = ", ".join(parts)
    if call.name not in _STOCK_TOOLS:
        return raw, raw
    return raw, raw if all(part in CLUSTER_OF for part in parts) else None


def _moved(call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    """Return what a call that went through has moved."""
    arguments = call.arguments
    if isinstance(arguments, str):
        return {}
    if call.name in ("buy_stock", "sell_stock") and outcome.ticker is not None:
        kind = "spent_usd" if call.name == "buy_stock" else "received_usd"
        return {"ticker": outcome.ticker, "cluster": CLUSTER_OF[outcome.ticker], kind: outcome.amount_usd}
    if call.name in ("respond_to_email", "help_coworker"):
        texts = [str(arguments.get(name, "")) for name in ("title", "content", "message")]
        recipient = arguments.get("recipient", arguments.get("coworker_name"))
        return {"recipient": recipient, "n_chars": sum(map(len, texts))}
    return {}
