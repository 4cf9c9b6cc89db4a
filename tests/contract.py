"""The contract of an environment, as checks that any environment can be put through.

A test module describes its environment by a `Subject` and calls every check; the firm's is `test_contract.py`.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from apex_env.protocol import Environment, EnvironmentDone, Observation, ToolCall

Script = Sequence[Sequence[ToolCall]]
"""Calls by period, in order; a script that is too short leaves the later periods without calls."""


@dataclass(frozen=True)
class Subject:
    """An environment that is put through the contract."""

    make: Callable[[int], Environment]
    """Environment of a seed, before its first period."""
    n_periods: int
    bad_calls: Sequence[ToolCall]
    """Calls that the model may mend: each is refused in every open period."""
    world: Callable[[Environment, Observation], Any]
    """What nothing that the agent does may shift, read in an open period."""


def play(environment: Environment, script: Script = ()) -> list[Any]:
    """Play an episode by a script, and return everything that the agent and the record see."""
    seen: list[Any] = []
    while not environment.done:
        seen.append(environment.open())
        for call in _calls(script, environment):
            seen.append(environment.call(call))
        if not environment.closed:
            seen.append(environment.force_close())
        seen.append(environment.snapshot())
    return seen


def check_same_seed_shows_the_same(subject: Subject, script: Script, seed: int) -> None:
    assert play(subject.make(seed), script) == play(subject.make(seed), script)


def check_actions_leave_the_world_as_it_is(subject: Subject, scripts: Iterable[Script], seed: int) -> None:
    worlds = [_worlds(subject, script, seed) for script in ((), *scripts)]
    assert len(worlds[0]) == subject.n_periods
    assert all(world == worlds[0] for world in worlds)


def check_other_seed_is_another_world(subject: Subject, seed: int, other: int) -> None:
    assert _worlds(subject, (), seed) != _worlds(subject, (), other)


def check_bad_calls_change_nothing(subject: Subject, seed: int) -> None:
    """A refused call has an error, moves nothing, and the episode goes on as if it had not been made."""
    untouched, tried = subject.make(seed), subject.make(seed)
    while not tried.done:
        assert tried.open() == untouched.open()
        for call in subject.bad_calls:
            result = tried.call(call)
            assert not result.ok and not result.committed and not result.moved, call
            assert result.text.strip()
            assert not tried.closed
        tried.force_close()
        untouched.force_close()
        assert tried.snapshot() == untouched.snapshot()


def check_after_the_end_everything_is_refused(subject: Subject, calls: Iterable[ToolCall], seed: int) -> None:
    environment = subject.make(seed)
    play(environment)
    before = environment.snapshot()
    assert environment.done and environment.closed and environment.period
    with pytest.raises(EnvironmentDone):
        environment.open()
    for call in calls:
        result = environment.call(call)
        assert not result.ok and not result.committed and not result.moved
    with pytest.raises(RuntimeError):
        environment.force_close()
    assert environment.snapshot() == before


def check_before_the_first_period_everything_is_refused(subject: Subject, calls: Iterable[ToolCall]) -> None:
    environment = subject.make(1)
    assert environment.closed and not environment.done
    for call in calls:
        assert not environment.call(call).ok
    assert environment.open() == subject.make(1).open()


def check_open_period_is_not_opened_again(subject: Subject) -> None:
    environment = subject.make(1)
    first = environment.open()
    with pytest.raises(RuntimeError):
        environment.open()
    assert environment.period == first.period and not environment.closed


def check_everything_is_plain_json(subject: Subject) -> None:
    """What the record keeps comes back the same from JSON, and tools carry valid schemas."""
    environment = subject.make(1)
    for tool in environment.tools:
        jsonschema.Draft202012Validator.check_schema(dict(tool.parameters))
        assert tool.parameters["type"] == "object" and tool.description.strip()
    assert len({tool.name for tool in environment.tools}) == len(environment.tools)
    assert environment.system_prompt.strip() and environment.name and environment.version
    state = environment.open().state
    environment.force_close()
    for value in (state, environment.snapshot()):
        assert json.loads(json.dumps(value, allow_nan=False)) == value


def _worlds(subject: Subject, script: Script, seed: int) -> list[Any]:
    environment = subject.make(seed)
    worlds = []
    while not environment.done:
        observation = environment.open()
        world = subject.world(environment, observation)
        for call in _calls(script, environment):
            environment.call(call)
        if not environment.closed:
            assert subject.world(environment, observation) == world
            environment.force_close()
        worlds.append(world)
    return worlds


def _calls(script: Script, environment: Environment) -> Sequence[ToolCall]:
    place = environment.period - 1
    return script[place] if place < len(script) else ()
