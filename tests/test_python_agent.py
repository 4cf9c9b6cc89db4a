"""A user's own agent: what it may be, what it may answer, and what becomes of a run when it misbehaves."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from apex_env.protocol import ToolCall
from experiments.chat import Attempt, Completion, Message, Native, Position, Prompt, Usage, user
from experiments.errors import AgentError, InputError, ProviderError, SweepStop
from experiments.models import build_model
from experiments.run_spec import ModelConfig
from experiments.treatment import Treatment
from tests.path import contents, plan, record_of, sweep_runs

HERE = "tests.test_python_agent"
FINISH = {"calls": [{"name": "finish_quarter"}]}
SECRET = "sk-do-not-show-me"


# Agents


def says_hello(prompt):
    return "Hello."


async def says_hello_later(prompt):
    await asyncio.sleep(0.001)
    return "Hello."


def finishes(prompt):
    return FINISH


def greets(prompt, greeting="Hi", times=1):
    return " ".join([greeting] * times)


class Counts:
    """Numbers its turns, and can pick up the number from a conversation."""

    def __init__(self, start: int = 0) -> None:
        self.n = start
        self.restored = 0

    def __call__(self, prompt):
        self.n += 1
        return {"text": f"turn {self.n}", **FINISH}

    def restore(self, prompt):
        self.restored += 1
        self.n = sum(message.role == "assistant" for message in prompt.messages)


class CountsLater(Counts):
    async def __call__(self, prompt):
        return Counts.__call__(self, prompt)

    async def restore(self, prompt):
        Counts.restore(self, prompt)


class Uncallable:
    pass


class Unmakeable:
    def __init__(self):
        raise RuntimeError(SECRET)


def raises(prompt):
    return {}[SECRET]


async def raises_later(prompt):
    raise ValueError(SECRET)


def exits(prompt):
    sys.exit(SECRET)


def stops(prompt):
    raise StopIteration


def interrupts(prompt):
    raise KeyboardInterrupt


async def cancels_itself(prompt):
    raise asyncio.CancelledError


def takes_nothing():
    return "Hello."


def outage(prompt):
    raise ProviderError("the service is down")


def wrong_key(prompt):
    raise SweepStop("the key is wrong")


def never_returns(prompt):
    threading.Event().wait()


async def sleeps_forever(prompt):
    await asyncio.Event().wait()


async def holds_its_loop_up(prompt):
    time.sleep(3)


async def cannot_be_cancelled(prompt):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


def naps(prompt):
    time.sleep(0.3)
    return FINISH


mended = threading.Event()


def breaks_in_quarter_3(prompt):
    if prompt.position.period == 3 and not mended.is_set():
        raise OSError(SECRET)
    return FINISH


# Helpers


def config(name: str, params: dict | None = None, **service) -> ModelConfig:
    return ModelConfig("mine", "python", f"{HERE}:{name}", params or {}, service)


def prompt(*messages: Message) -> Prompt:
    return Prompt("system", (), list(messages) or [user("Quarter 1, year 2025")], Position(1, 1, 0))


def ask(name: str, params: dict | None = None, **service) -> Completion:
    return asyncio.run(build_model(config(name, params, **service)).complete(prompt()))


def failure(name: str, **service) -> str:
    with pytest.raises(AgentError) as caught:
        ask(name, **service)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def answer(reply) -> Completion:
    """Return what an agent's answer becomes."""
    sys.modules[HERE].replying = lambda prompt: reply
    return ask("replying")


# What an agent may be


@pytest.mark.parametrize("name", ["says_hello", "says_hello_later"])
def test_plain_and_async_functions_are_agents(name):
    completion = ask(name)
    assert completion.message == Message("assistant", "Hello.")
    assert completion.stop == "done"
    assert completion.latency_s > 0


def test_parameters_reach_a_function_by_name():
    assert ask("greets", {"greeting": "Ho", "times": 2}).message.text == "Ho Ho"
    assert ask("greets", {"greeting": None}).message.text == "Hi"


@pytest.mark.parametrize("name", ["Counts", "CountsLater"])
def test_a_class_is_made_anew_for_every_run(name):
    models = [build_model(config(name, {"start": 5})) for _ in range(2)]
    for model in models:
        texts = [asyncio.run(model.complete(prompt())).message.text for _ in range(2)]
        assert texts == ["turn 6", "turn 7"]


@pytest.mark.parametrize("name", ["Counts", "CountsLater"])
def test_restore_is_offered_the_conversation_once_where_the_agent_has_spoken_before(name):
    model = build_model(config(name))
    before = [user("Quarter 1"), Message("assistant", "a"), user("Quarter 2"), Message("assistant", "b"), user("Go.")]
    assert asyncio.run(model.complete(prompt(*before))).message.text == "turn 3"
    assert asyncio.run(model.complete(prompt(*before))).message.text == "turn 4"
    assert model.agent.restored == 1


def test_restore_is_not_called_in_a_new_conversation():
    model = build_model(config("Counts"))
    asyncio.run(model.complete(prompt()))
    assert model.agent.restored == 0


def test_the_conversation_cannot_be_changed_by_the_agent():
    given = []
    sys.modules[HERE].keeps = lambda prompt: given.append(prompt) or "Hello."
    asked = prompt()
    asyncio.run(build_model(config("keeps")).complete(asked))
    assert given[0].messages == tuple(asked.messages)
    assert isinstance(given[0].messages, tuple)


# What it may answer


def test_a_mapping_with_calls_becomes_a_message_with_calls():
    completion = answer({"text": "I buy.", "calls": [{"name": "buy_stock", "arguments": {"stock": "NEE"}, "id": "x"}]})
    assert completion.message == Message("assistant", "I buy.", (ToolCall("x", "buy_stock", {"stock": "NEE"}),))
    assert completion.stop == "calls"
    assert completion.usage is None


@pytest.mark.parametrize("reply", [{}, {"text": None, "calls": None}, {"calls": []}])
def test_what_a_mapping_leaves_out_is_empty(reply):
    assert answer(reply).message == Message("assistant")


def test_a_message_and_a_completion_are_taken_as_they_are():
    message = Message("assistant", "x", (ToolCall("1", "view_portfolio", {}),), native=Native("p", "m", {"a": [1]}))
    assert answer(message).message == message
    own = Completion(message, "length", Usage(5, cost_usd=0.5), attempts=(Attempt(503, "busy", 1.0),))
    completion = answer(own)
    assert (completion.message, completion.stop, completion.usage) == (message, "length", own.usage)
    assert completion.attempts == own.attempts


def test_usage_is_passed_on():
    usage = {"input_tokens": 10, "output_tokens": 3, "cost_usd": 0.25}
    assert answer({"text": "x", "usage": usage}).usage == Usage(10, output_tokens=3, cost_usd=0.25)


def test_arguments_are_copied():
    arguments = {"stocks": ["NEE"]}
    completion = answer({"calls": [{"name": "check_emissions_by_stock", "arguments": arguments}]})
    arguments["stocks"].append("XOM")
    assert completion.message.calls[0].arguments == {"stocks": ["NEE"]}


def test_arguments_that_json_has_no_form_for_go_on_as_raw_text():
    completion = answer({"calls": [{"name": "buy_stock", "arguments": {"stock": "NEE", "amount": math.nan}}]})
    assert completion.message.calls[0].arguments == '{"stock": "NEE", "amount": NaN}'
    assert answer({"calls": [{"name": "x", "arguments": "not JSON"}]}).message.calls[0].arguments == "not JSON"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "the answer is None; expected is a text, a Message, a Completion, or a mapping"),
        (42, "the answer is 42"),
        (["buy"], r"the answer is \['buy'\]"),
        ({"txt": "x"}, "key of the answer 'txt' is not known, did you mean 'text'"),
        ({"text": 5}, "text is 5; a text is expected"),
        ({"calls": "finish_quarter"}, "calls is 'finish_quarter'; a list"),
        ({"calls": [{"arguments": {}}]}, r"calls\[0\] is {'arguments': {}}"),
        ({"calls": [FINISH["calls"][0], {"name": 7}]}, r"calls\[1\] is {'name': 7}"),
        ({"calls": [{"name": "a", "argument": {}}]}, r"key of calls\[0\] 'argument' is not known, did you mean"),
        ({"calls": [{"name": "a", "arguments": [1]}]}, r"calls\[0\].arguments is \[1\]"),
        ({"calls": [{"name": "a", "arguments": {"x": object}}]}, "which is no JSON"),
        ({"usage": {"tokens": 3}}, "key of usage 'tokens' is not known"),
        ({"usage": {"input_tokens": -3}}, "usage.input_tokens is -3; a number of 0 or more"),
        ({"usage": {"input_tokens": "3"}}, "usage.input_tokens is '3'; a number"),
        ({"usage": {"cost_usd": math.nan}}, "usage.cost_usd is nan; a number of 0 or more"),
        ({"usage": 3}, "usage is 3; a mapping"),
        (Message("user", "x"), "a Message of the assistant is expected"),
        (Message("assistant", None), "text is None; a text"),
        (Message("assistant", calls=None), "calls is None; a sequence"),
        (Message("assistant", calls=({"name": "a"},)), r"calls\[0\] is {'name': 'a'}; a ToolCall"),
        (Message("assistant", native={"a": 1}), "native is {'a': 1}; a Native"),
        (Completion(Message("assistant"), "stop"), "stop 'stop' is not known"),
        (Completion("Hello."), "the message is 'Hello.'"),
        (Completion(Message("assistant"), attempts=("busy",)), "attempts is"),
    ],
)
def test_nonsense_is_an_agent_error_that_names_value_and_place(reply, words):
    with pytest.raises(AgentError, match=f"agent {HERE}:replying in quarter 1, turn 0: .*{words}"):
        answer(reply)


def test_a_long_value_is_shown_in_part():
    with pytest.raises(AgentError) as caught:
        answer(["x" * 10_000])
    assert len(str(caught.value)) < 400


# What goes wrong in it


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("raises", "KeyError"),
        ("raises_later", "ValueError"),
        ("exits", "SystemExit"),
        ("stops", "StopIteration"),
        ("interrupts", "KeyboardInterrupt"),
        ("cancels_itself", "asyncio.exceptions.CancelledError"),
    ],
)
def test_an_exception_is_told_by_type_and_place_and_not_by_what_it_says(name, kind):
    said = failure(name)
    assert f"agent {HERE}:{name} in quarter 1, turn 0 raised " in said
    assert kind.rpartition(".")[2] in said
    if name != "cancels_itself":
        assert re.search(rf"{kind} at test_python_agent.py, line \d+, in {name}$", said)


@pytest.mark.parametrize("name", ["never_returns", "sleeps_forever", "holds_its_loop_up", "cannot_be_cancelled"])
def test_an_agent_that_does_not_answer_in_time_ends_the_run_and_no_other(name):
    started = time.monotonic()
    assert failure(name, timeout_s=0.05).endswith("in quarter 1, turn 0: no answer within 0.05 s")
    assert time.monotonic() - started < 2.5
    assert ask("says_hello_later", timeout_s=2).message.text == "Hello."


@pytest.mark.parametrize(("name", "kind"), [("outage", ProviderError), ("wrong_key", SweepStop)])
def test_what_our_own_adapters_raise_inside_an_agent_passes_through(name, kind):
    with pytest.raises(kind, match="the service is down|the key is wrong"):
        ask(name)


def test_a_process_ends_although_its_agent_does_not(tmp_path):
    code = textwrap.dedent("""
        from tests.test_python_agent import *
        print(failure("never_returns", timeout_s=0.05))
        print(failure("cannot_be_cancelled", timeout_s=0.05))
    """)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.count("no answer within"), ended.stderr) == (0, 2, "")


# Where the agent cannot even be made


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("agent", "target 'agent' is not allowed: package.module:agent"),
        (":agent", "is not allowed: package.module:agent"),
        (
            "no_such_module:agent",
            "'no_such_module:agent' cannot be imported: there is no module 'no_such_module'",
        ),
        (f"{HERE}:says_helo", "name 'says_helo' is not known, did you mean 'says_hello'"),
        (f"{HERE}:HERE", f"is '{HERE}': a function, a class or a callable object is expected"),
        (f"{HERE}:takes_nothing", "it cannot be called with params none: too many positional arguments"),
        (f"{HERE}:Uncallable", r"its instances cannot be called; a method __call__\(prompt\) is expected"),
        (f"{HERE}:Unmakeable", "cannot be made: RuntimeError at test_python_agent.py, line .*, in __init__"),
    ],
)
def test_what_cannot_be_imported_or_made_is_an_input_error(target, words):
    with pytest.raises(InputError, match=words) as caught:
        build_model(ModelConfig("mine", "python", target))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"raise RuntimeError('{SECRET}')", "RuntimeError at broken_agent.py, line 1, in <module>"),
        ("def agent(:", "SyntaxError at broken_agent.py, line 1"),
        ("import no_such_library", "there is no module 'no_such_library'"),
        (f"raise SystemExit('{SECRET}')", "SystemExit at broken_agent.py, line 1"),
    ],
)
def test_a_module_that_fails_is_an_input_error_without_what_it_said(body, words, tmp_path, monkeypatch):
    (tmp_path / "broken_agent.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "broken_agent", raising=False)
    with pytest.raises(InputError, match=words) as caught:
        build_model(ModelConfig("mine", "python", "broken_agent:agent"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (
            config("greets", {"greting": "x"}),
            "cannot be called with params greting: got an unexpected keyword",
        ),
        (config("Counts", {"stat": 1}), "cannot be called with params stat: got an unexpected keyword argument 'stat'"),
        (config("greets", timeout_s=0), "timeout_s 0 is not allowed: more than 0 seconds"),
        (config("greets", timeout_s=math.nan), "timeout_s nan is not allowed: more than 0 seconds"),
        (config("greets", timeout_s="soon"), "timeout_s 'soon' is not allowed: a number"),
        (config("greets", timeout=3), "service field 'timeout' is not known, did you mean 'timeout_s'"),
    ],
)
def test_a_wrong_configuration_names_the_field_and_what_is_allowed(broken, words):
    with pytest.raises(InputError, match=words):
        build_model(broken)


def test_the_command_refuses_what_cannot_be_made_in_one_line_before_any_run_starts(tmp_path):
    words = ["run", "model=python", f"target={HERE}:says_helo", f"results_dir={tmp_path}"]
    ended = subprocess.run(
        [sys.executable, "-m", "analysis.cli", *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"apex run: target '{HERE}:says_helo': name 'says_helo'")
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.rglob("*.jsonl")) == []


# Whole runs


SHORT = Treatment(n_evaluation=5)


def test_a_run_that_an_agent_breaks_is_not_scored_and_goes_on_when_it_is_mended(tmp_path):
    mended.clear()
    run = plan(config("breaks_in_quarter_3"), SHORT, seeds=[1])[0]
    assert sweep_runs(tmp_path / "broken", [run]).outcomes == {"agent_error": 1}
    ended = record_of(tmp_path / "broken", run).ended
    assert ended["quarter"] == 3
    assert re.search(r"quarter 3, turn 0 raised OSError at test_python_agent.py", ended["reason"])
    assert SECRET not in (tmp_path / "broken" / f"{run.run_id}.jsonl").read_text()
    mended.set()
    assert sweep_runs(tmp_path / "broken", [run]).outcomes == {"completed": 1}
    assert sweep_runs(tmp_path / "whole", [run]).outcomes == {"completed": 1}
    resumed, whole = contents(tmp_path / "broken"), contents(tmp_path / "whole")
    kept = [[line for line in lines if line.get("outcome") != "agent_error"] for lines in resumed.values()]
    assert kept == list(whole.values())


def test_every_run_of_a_sweep_has_an_instance_of_its_own(tmp_path):
    runs = plan(config("Counts"), SHORT, seeds=[1, 2, 3])
    assert sweep_runs(tmp_path, runs).outcomes == {"completed": 3}
    for run in runs:
        texts = [line["message"]["text"] for line in record_of(tmp_path, run).of_type("turn")]
        assert texts == [f"turn {n}" for n in range(1, 6)]


def test_runs_of_an_agent_that_blocks_go_on_side_by_side(tmp_path):
    runs = plan(config("naps"), Treatment(n_evaluation=1), seeds=range(1, 7))
    started = time.monotonic()
    assert sweep_runs(tmp_path, runs, concurrency=6).outcomes == {"completed": 6}
    assert time.monotonic() - started < 6 * 0.3


def test_the_example_of_the_readme_plays_and_keeps_to_its_goal(tmp_path, monkeypatch):
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    section = readme.partition("## Your own agent")[2].partition("\n## ")[0]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    name = re.search(r"target=(\w+):(\w+)", section)
    (tmp_path / f"{name[1]}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    run = plan(ModelConfig("mine", "python", f"{name[1]}:{name[2]}"), Treatment(), seeds=[3])[0]
    assert sweep_runs(tmp_path / "results", [run]).outcomes == {"completed": 1}
    bought = [line["state"]["bought_usd"] for line in record_of(tmp_path / "results", run).of_type("closed")]
    assert sum(flow["low"] for flow in bought) > 1e8
    assert sum(flow["high"] for flow in bought) == 0
