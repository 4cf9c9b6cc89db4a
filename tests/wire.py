"""Builders for tests of models behind a wire: routes to a loopback peer, and scripted agents that answer there."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apex_env.protocol import ToolCall, ToolSpec
from experiments.chat import Completion, Message, Position, Prompt, unique_ids, user
from experiments.models import build_model
from experiments.models.scripted import ScriptedModel, build
from experiments.run_spec import ModelConfig
from tests.peers import Call, Peer, Reply, RequestView, SeenMessage, Thinking

KEY = "sk-peer-0123456789abcdef"
KEY_ENV = "APEX_TEST_PEER_KEY"
os.environ[KEY_ENV] = KEY

LITELLM_WARNINGS = "ignore:.*`ReadOnly` qualifier.*:UserWarning"
"""litellm switches this warning about its own types off, and pytest switches it on again for every test."""

TOOLS = (
    ToolSpec(
        "buy_stock",
        1,
        "trade",
        "Buy a stock.",
        {"type": "object", "properties": {"stock": {"type": "string"}, "amount": {"type": "number"}}},
    ),
    ToolSpec("finish_quarter", 1, "control", "Close the quarter.", {"type": "object", "properties": {}}),
)

HELLO = (user("Quarter 1"),)


@dataclass(frozen=True)
class Route:
    """One way to a peer."""

    adapter: str
    model: str
    base: Callable[[Peer], str]
    params: dict[str, Any] = field(default_factory=dict)


def _openai(peer: Peer) -> str:
    return peer.openai_url


def _anthropic(peer: Peer) -> str:
    return peer.url


DIRECT = {
    "responses": Route("openai", "m", _openai, {"api": "responses"}),
    "chat": Route("openai", "m", _openai, {"api": "chat"}),
    "anthropic": Route("anthropic", "m", _anthropic, {"max_tokens": 4096}),
}
STREAMED = {"anthropic streamed": Route("anthropic", "m", _anthropic, {"max_tokens": 30_000})}
BY_LITELLM = {
    "litellm": Route("litellm", "deepseek/deepseek-v4-pro", _openai),
    "litellm anthropic": Route("litellm", "anthropic/claude-sonnet-4-5", _anthropic, {"max_tokens": 4096}),
}
ROUTES = DIRECT | STREAMED | BY_LITELLM


def config_of(route: str, peer: Peer, *, name: str = "remote", **changes: Any) -> ModelConfig:
    """The configuration of a route; changes are parameters, or fields of the service where it has them.

    Waits between tries are a millisecond, so that a test of many tries is quick.
    """
    way = ROUTES[route]
    service = {
        "base_url": way.base(peer),
        "api_key_env": KEY_ENV,
        "first_wait_s": 0.001,
        "longest_wait_s": 0.001,
        "timeout_s": 20,
    }
    params = dict(way.params)
    for key, value in changes.items():
        (service if key in _SERVICE else params)[key] = value
    return ModelConfig(name, way.adapter, way.model, params, service)


_SERVICE = (
    "base_url api_key_env price concurrency requests_per_minute tokens_per_minute timeout_s max_tries retry_for_s"
    " first_wait_s longest_wait_s log_api log_dir"
).split()


def prompt_of(messages: Sequence[Message] = HELLO, *, tool_use: Any = "auto", tools: Any = TOOLS) -> Prompt:
    return Prompt("You manage a fund.", tools, messages, Position(1, 1, 0), tool_use)


def ask(route: str, peer: Peer, messages: Sequence[Message] = HELLO, **changes: Any) -> Completion:
    """One completion."""
    return asyncio.run(build_model(config_of(route, peer, **changes)).complete(prompt_of(messages)))


def converse(
    route: str, peer: Peer, n_turns: int, messages: Sequence[Message] = HELLO, **changes: Any
) -> list[Completion]:
    """A conversation in which every call is answered, and every turn without one is followed by `Go on.`

    Messages go through their form in a record between turns, as they do when a run is resumed.
    """
    (completions,) = converse_often(route, peer, n_turns, 1, messages, **changes)
    return completions


def converse_often(
    route: str, peer: Peer, n_turns: int, n: int, messages: Sequence[Message] = HELLO, **changes: Any
) -> list[list[Completion]]:
    """The same conversation n times, one after the other, of one client."""

    async def play_one() -> list[Completion]:
        model = build_model(config_of(route, peer, **changes))
        said = list(messages)
        taken = {call.call_id for message in said for call in message.calls}
        completions = []
        for turn in range(n_turns):
            completion = await model.complete(prompt_of(said))
            completions.append(completion)
            said += answered(completion.message, taken, f"t{turn}")
            said = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in said]
        return completions

    async def play() -> list[list[Completion]]:
        return [await play_one() for _ in range(n)]

    return asyncio.run(play())


def answered(message: Message, taken: set[str], prefix: str) -> list[Message]:
    """A message of the agent with unique ids, and what it is told next."""
    calls = unique_ids(message.calls, taken, prefix)
    results = [Message("tool", f"result of {call.name}", call_id=call.call_id) for call in calls]
    return [replace(message, calls=calls), *(results or [user("Go on.")])]


def scripted_brain(agent: str, *, seed: int, **params: Any) -> Callable[[RequestView], Any]:
    """A scripted agent behind a wire: it reads a request as it would read the prompt, and thinks before it answers."""
    model: ScriptedModel = build(ModelConfig(agent, "scripted", agent, params))

    async def brain(view: RequestView) -> Reply:
        completion = await model.complete(_prompt_in(view, seed))
        message = completion.message
        calls = tuple(Call(call.name, call.arguments, id=call.call_id) for call in message.calls)
        return Reply(text=message.text or None, calls=calls, thinking=(Thinking(f"Thought {view.n_turns}."),))

    return brain


_HEADER = re.compile(r"^Quarter (\d), year (\d{4})", re.MULTILINE)


def _prompt_in(view: RequestView, seed: int) -> Prompt:
    system = "\n".join(message.text for message in view.messages if message.role == "system")
    messages = [_message_in(message) for message in view.messages if message.role != "system"]
    tools = [ToolSpec(tool.name, 1, "read", tool.description, tool.schema) for tool in view.tools]
    start = max(place for place, message in enumerate(messages) if _HEADER.search(message.text))
    quarter, year = map(int, _HEADER.findall(messages[start].text)[-1])
    turn = sum(message.role == "assistant" for message in messages[start:])
    choice = view.arrival.body.get("tool_choice")
    is_off = choice == "none" or (isinstance(choice, dict) and choice.get("type") == "none")
    position = Position(seed, (year - 2025) * 4 + quarter, turn)
    return Prompt(system, tools, messages, position, "none" if is_off else "auto")


def _message_in(seen: SeenMessage) -> Message:
    calls = tuple(
        ToolCall(call.id, call.name, json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments)
        for call in seen.calls
    )
    role: Any = seen.role
    return Message(role, seen.text, calls, call_id=seen.call_id or "")
