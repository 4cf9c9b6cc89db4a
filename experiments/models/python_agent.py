"""Owns the way to a user's own agent: any callable that answers a prompt, plain or async, function or class.

The agent is called once a turn with a `chat.Prompt`: system prompt, tools, the whole conversation, and the place in the
run. It answers with a text, a `chat.Message`, a `chat.Completion`, or a mapping such as
``{"text": "I buy.", "calls": [{"name": "buy_stock", "arguments": {"stock": "NEE", "amount": 5000000}}]}``. What goes
wrong in it ends the run as `agent_error`: it is never scored, and can be gone on with.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from experiments.chat import Completion, Prompt
from experiments.errors import AgentError, InputError, RunEnded, SweepStop
from experiments.fields import shown
from experiments.models import bounded, check_names, not_known, number
from experiments.models.bounded import Raised, TookTooLong, call_bounded
from experiments.models.python_answer import Nonsense, completion_of
from experiments.run_spec import ModelConfig

Agent = Callable[..., Any]
"""From a prompt to an answer, or to something that can be awaited for one."""

DEFAULT_TIMEOUT_S: Final = 600.0


@dataclass(slots=True)
class PythonAgent:
    """A user's agent as a model."""

    name: str
    target: str
    agent: Agent
    timeout_s: float
    asked: bool = False
    """Whether this instance has answered before; one that has not is given the chance to restore its state."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the agent's answer.

        Raises:
            AgentError: if the agent raises, answers something else, or does not answer in time.
        """
        # A copy: the conversation is the loop's, which extends it in place.
        given = replace(prompt, messages=tuple(prompt.messages))
        if not self.asked:
            self.asked = True
            restore = getattr(self.agent, "restore", None)
            if restore is not None and any(message.role == "assistant" for message in given.messages):
                await self._call(restore, given)
        started = time.perf_counter()
        reply = await self._call(self.agent, given)
        latency_s = time.perf_counter() - started
        try:
            return replace(completion_of(reply), latency_s=latency_s)
        except Nonsense as error:
            place = f"agent {self.target} in quarter {prompt.position.period}, turn {prompt.position.turn}"
            raise AgentError(f"{place}: {error}") from None

    async def _call(self, function: Agent, prompt: Prompt) -> Any:
        place = f"agent {self.target} in quarter {prompt.position.period}, turn {prompt.position.turn}"
        try:
            return await call_bounded(function, prompt, timeout_s=self.timeout_s)
        except TookTooLong as late:
            raise AgentError(f"{place}: {late}") from late
        except Raised as raised:
            if isinstance(raised.error, RunEnded | SweepStop):
                # One of our own adapters, asked by the agent, says how the run ends.
                raise raised.error from None
            # What an exception says may hold anything, a key included; its type and place do not.
            raise AgentError(f"{place} raised {_type_and_place(raised.error, self.target)}") from None


def build(config: ModelConfig) -> PythonAgent:
    """Return the agent that a configuration's ``model`` names, an instance of its own where that is a class.

    Raises:
        InputError: if it cannot be imported or made, or a field is not allowed.
    """
    check_names(config, params=config.params, service=("timeout_s",))
    timeout_s = number(config, config.service, "timeout_s", default=DEFAULT_TIMEOUT_S)
    if not timeout_s > 0:
        raise InputError(f"model {config.name!r}: timeout_s {timeout_s!r} is not allowed: more than 0 seconds")
    params = {name: value for name, value in config.params.items() if value is not None}
    agent = _made(_imported(config.model), config.model, params)
    return PythonAgent(config.name, config.model, agent, timeout_s)


def _imported(target: str) -> Any:
    """Return the object that ``package.module:name`` names; the working folder is looked in first."""
    module_name, colon, name = str(target).partition(":")
    if not (module_name and colon and name):
        raise InputError(f"target {target!r} is not allowed: package.module:agent, the place of your agent")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(f"target {target!r} cannot be imported: there is no module {error.name!r}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"target {target!r} cannot be imported: {_type_and_place(error, target)}") from None
    found = getattr(module, name, None)
    if found is None:
        raise InputError(not_known(f"target {target!r}: name", name, _public(module)))
    if not callable(found):
        raise InputError(f"target {target!r} is {shown(found)}: a function, a class or a callable object is expected")
    return found


def _made(found: Any, target: str, params: Mapping[str, Any]) -> Agent:
    """Return the agent itself: an instance of a class, or a function with its parameters."""
    is_class = inspect.isclass(found)
    arguments: Sequence[object] = () if is_class else ("prompt",)
    try:
        inspect.signature(found).bind(*arguments, **params)
    except TypeError as error:
        given = ", ".join(params) or "none"
        raise InputError(f"target {target!r}: it cannot be called with params {given}: {error}") from error
    except ValueError:
        # Some compiled callables do not tell what they take.
        pass
    if not is_class and params:
        return partial(found, **params)
    try:
        agent: Agent = found(**params) if is_class else found
    except (Exception, SystemExit) as error:
        raise InputError(f"target {target!r} cannot be made: {_type_and_place(error, target)}") from None
    if not callable(agent):
        raise InputError(f"target {target!r}: its instances cannot be called; a method __call__(prompt) is expected")
    return agent


def _public(module: Any) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]


def _type_and_place(error: BaseException, target: str) -> str:
    """Return an exception's type, and the innermost line of the target's module that it came through."""
    kind = type(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{kind.__qualname__} at {Path(error.filename).name}, line {error.lineno}"
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    file = getattr(sys.modules.get(target.partition(":")[0]), "__file__", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in _OURS]
    frames = [frame for frame in frames if frame.filename == file] or frames
    if not frames:
        return name
    return f"{name} at {Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name}"


_OURS: Final = (__file__, bounded.__file__)
