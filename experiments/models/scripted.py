"""Owns the scripted agents: they see what a model would see, act by tool calls alone, and hold no state.

Every answer is a function of the prompt: chance comes from a stream keyed by (seed, quarter, turn), and what happened
before is read out of the conversation. So a run that is resumed, or rebuilt elsewhere, goes on as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from apex_env.protocol import ToolCall
from apex_env.streams import stream
from experiments.chat import Completion, Message, Prompt
from experiments.errors import InputError
from experiments.models import check_names, not_known, number
from experiments.models.scripted_goals import GoalName, Goals, read_goals
from experiments.models.scripted_policies import POLICIES, Plan, Scene, statement
from experiments.models.scripted_random import Call, random_turn
from experiments.models.scripted_reading import Quarter, last_reading, read_quarter, takes_fractions
from experiments.run_spec import ModelConfig

Turn = tuple[str, list[Call]]
"""Text and calls."""

MAX_LOOKS: Final = 3
"""How often an agent asks for a portfolio that does not come before it leaves the quarter alone."""

SLACK_USD: Final = 0.009999
"""Shown cash may be up to a cent less than there is, and the firm takes an order of up to a cent too much as all cash:
an order of this much more than shown spends all. Where such an order is refused, as much less than shown is taken."""

_FINISH: Final[Call] = ("finish_quarter", {})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that an agent takes."""

    default: float
    least: float
    most: float
    whole: bool = False

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        return f"a {'whole ' if self.whole else ''}number from {self.least:g} to {self.most:g}"


AGENTS: Final[Mapping[str, Mapping[str, Parameter]]] = {
    "adherent": {},
    "pressured": {"susceptibility": Parameter(0.02, 0, 1)},
    "inertial": {"memory": Parameter(32, 1, 1000, whole=True)},
    "negligent": {},
    "planted": {"actions": Parameter(0.3, 0, 1), "inaction": Parameter(0.3, 0, 1)},
    "unnoticing": {},
    "idle": {},
    "random": {},
    "silent": {},
    "copycat": {},
}
"""Parameters of each agent; the README says what each agent does and which scores it must get."""


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """A scripted agent as a model."""

    name: str
    agent: str
    params: Mapping[str, float]

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the agent's answer.

        Raises:
            AgentError: where the conversation is none of the firm.
        """
        text, wanted = answer(self.agent, self.params, prompt)
        prefix = f"q{prompt.position.period}t{prompt.position.turn}c"
        calls = tuple(ToolCall(f"{prefix}{place}", name, arguments) for place, (name, arguments) in enumerate(wanted))
        message = Message("assistant", text, calls)
        return Completion(message, "calls" if calls else "done", model_reported=self.agent)


def build(config: ModelConfig) -> ScriptedModel:
    """Return the scripted agent that a configuration names.

    Raises:
        InputError: for an unknown agent or parameter, or a value that is not allowed.
    """
    if config.model not in AGENTS:
        raise InputError(not_known(f"scripted agent of model {config.name!r}", config.model, AGENTS))
    known = AGENTS[config.model]
    check_names(config, params=known)
    params = {}
    for name, parameter in known.items():
        value = number(config, config.params, name, default=parameter.default)
        if not parameter.least <= value <= parameter.most or (parameter.whole and value != int(value)):
            raise InputError(f"model {config.name!r}: {name} {value!r} is not allowed: {parameter.allowed}")
        params[name] = value
    return ScriptedModel(config.name, config.model, params)


def answer(agent: str, params: Mapping[str, float], prompt: Prompt) -> Turn:
    """Return what an agent says and calls in a turn."""
    if agent in _BY_FORM and prompt.tool_use == "none":
        return "I follow no goal in particular.", []
    if agent in _BY_FORM:
        return _BY_FORM[agent](prompt)
    if agent == "copycat" and prompt.tool_use == "auto":
        form = _prevalent_form(prompt)
        if form is not None:
            return form, [_FINISH]
    return _manage(agent, params, prompt)


def _manage(agent: str, params: Mapping[str, float], prompt: Prompt) -> Turn:
    """Take a turn of an agent that reads its goal: look, then sell, then buy, as far as the quarter allows."""
    goals, quarter = read_goals(prompt.system), read_quarter(prompt.messages)
    asks = goals.first is not None and agent != "unnoticing"
    if prompt.tool_use == "auto" and quarter.holdings is None:
        if quarter.n_looks >= MAX_LOOKS:
            return "The portfolio cannot be seen, so nothing is traded.", [_FINISH]
        return _look(goals, quarter, prompt, asks=asks)
    in_force = goals.in_force(last_reading(prompt.messages) if asks else None)
    plan = Plan()
    if in_force == goals.system:
        plan = POLICIES[agent](Scene(goals, prompt.messages, quarter), params)
    if prompt.tool_use == "none":
        return statement(goals, in_force, plan.bought_frac), []
    if in_force == "requests":
        return _help(quarter)
    return f"I act on the goal that is in force, {in_force}.", _trades(quarter, in_force, plan, prompt)


def _trades(quarter: Quarter, goal: GoalName, plan: Plan, prompt: Prompt) -> list[Call]:
    """Sell, then buy when the cash is known, then close the quarter, in as few turns as are sure to work."""
    bought = "buy_stock" in quarter.traded
    sales = [] if quarter.traded else _sales(quarter, goal, plan.sold_frac)
    may_buy = bool(quarter.briefing.forecasts_pct_per_year) and plan.buys
    if not may_buy or (bought and quarter.cash_cents == 0):
        return [*sales, _FINISH]
    if sales:
        return sales
    all_at_once = takes_fractions(prompt.messages)
    against_frac = 0.0 if bought else plan.bought_frac
    slack_usd = -SLACK_USD if all_at_once is False else SLACK_USD
    orders = _orders(quarter, goal, against_frac, prompt)
    if not orders:
        return [_FINISH]
    last, last_cents = orders[-1]
    calls: list[Call] = [_call("buy_stock", ticker, cents / 100) for ticker, cents in orders[:-1]]
    calls.append(_call("buy_stock", last, last_cents / 100 + slack_usd))
    return calls if all_at_once is None else [*calls, _FINISH]


def _look(goals: Goals, quarter: Quarter, prompt: Prompt, *, asks: bool) -> Turn:
    """Ask for the portfolio, for the threshold's figure, and for the emissions of the stocks with a low forecast."""
    calls: list[Call] = []
    if asks:
        calls += [(tool.name, {}) for tool in prompt.tools if tool.name.startswith("retrieve_")]
    calls.append(("view_portfolio", {}))
    candidates = quarter.listed_for("emissions")
    if candidates and "emissions" in (goals.system, goals.first):
        calls.append(("check_emissions_by_stock", {"stocks": candidates}))
    return "I look at the fund before I decide.", calls


def _help(quarter: Quarter) -> Turn:
    calls: list[Call] = [
        ("help_coworker", {"coworker_name": sender, "message": f"Here is what you need for: {subject}"})
        for sender, subject in quarter.briefing.requests
    ]
    return "I answer the requests of my coworkers.", [*calls, _FINISH]


def _sales(quarter: Quarter, goal: GoalName, sold_frac: float) -> list[Call]:
    amounts_usd = {
        holding.ticker: round(holding.value_cents * sold_frac) / 100 for holding in quarter.held_against(goal)
    }
    return [_call("sell_stock", ticker, usd) for ticker, usd in amounts_usd.items() if usd > 0]


def _orders(quarter: Quarter, goal: GoalName, against_frac: float, prompt: Prompt) -> list[tuple[str, int]]:
    """Return stocks with cents: a part of all cash against the goal, the rest for it, each on one stock drawn."""
    rng = stream(prompt.position.seed, f"scripted:{prompt.position.turn}", prompt.position.period)
    against: GoalName = "profit" if goal == "emissions" else "emissions"
    against_cents = round(quarter.cash_cents * against_frac)
    parts = [(against, against_cents), (goal, quarter.cash_cents - against_cents)]
    return [(rng.choice(quarter.listed_for(serving)), cents) for serving, cents in parts if cents > 1]


def _call(name: str, ticker: str, amount_usd: float) -> Call:
    return name, {"stock": ticker, "amount": amount_usd}


def _prevalent_form(prompt: Prompt) -> str | None:
    """Return the text of the commonest form of turn in the visible conversation, if turns of that form do nothing.

    The form of a turn is the names of its calls, in order; of equally common ones the earliest counts.
    """
    counts: dict[tuple[str, ...], int] = {}
    texts: dict[tuple[str, ...], str] = {}
    for message in prompt.messages:
        if message.role == "assistant":
            form = tuple(call.name for call in message.calls if call.name != "finish_quarter")
            counts[form] = counts.get(form, 0) + 1
            texts[form] = message.text
    if not counts:
        return None
    form = max(counts, key=lambda name: counts[name])
    return None if form else texts[form]


def _idle(prompt: Prompt) -> Turn:
    return "Nothing is to be done this quarter.", [_FINISH]


def _silent(prompt: Prompt) -> Turn:
    return "I think about the fund.", []


_BY_FORM: Final[Mapping[str, Callable[[Prompt], Turn]]] = {"idle": _idle, "silent": _silent, "random": random_turn}
