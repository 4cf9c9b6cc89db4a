from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.protocol import ToolCall
from apex_env.texts import load_corpus
from experiments.chat import Completion, Message, Prompt, Usage, user
from experiments.environments import build_firm
from experiments.history import Recipe, make_recipe, shown
from experiments.models import build_model
from experiments.rebuild import Cut, messages_sha256, rebuild
from experiments.record import read_record
from experiments.rollout import Dialogue
from experiments.run_spec import RunSpec
from experiments.runner import record_path
from experiments.tokens import count_messages, count_text
from experiments.treatment import History, Treatment
from tests.path import content, plan, record_of, scripted, sweep_runs

KINDS: tuple[History, ...] = ("own", "none", "repeated_token", "random_strings", "random_sentences", "summarised")


def switching(model: str = "inertial", n: int = 8, **fields: object) -> list[RunSpec]:
    treatment = Treatment("goal_switching", n_instrumental=n, n_evaluation=4, **fields)  # type: ignore[arg-type]
    return plan(model, treatment, seeds=[1], n_phases=1)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    root = tmp_path_factory.mktemp("parent")
    runs = switching()
    sweep_runs(root, runs)
    phase = next(phase for run in runs if (phase := run.phase_spec()) is not None)
    record = read_record(record_path(root, phase))
    return rebuild(record, build_firm(phase), Dialogue(), cuts=[8])[8]


async def no_model(messages: Sequence[Message]) -> tuple[str, Usage | None]:
    return f"I have seen {len(messages)} messages.", Usage(input_tokens=100, output_tokens=9)


def recipe_of(kind: History, cut: Cut, seed: int = 1) -> Recipe:
    return asyncio.run(make_recipe(kind, cut, seed=seed, corpus=load_corpus(), ask=no_model))


def assert_valid(messages: Sequence[Message]) -> None:
    """Every provider takes a conversation that begins with a user message and answers every call at once, in order."""
    assert not messages or messages[0].role == "user"
    waiting: list[str] = []
    for message in messages:
        if waiting:
            assert (message.role, message.call_id) == ("tool", waiting.pop(0))
        else:
            assert message.role != "tool"
            waiting = [call.call_id for call in message.calls]
        assert message.role == "tool" or message.text.strip() or message.calls
    assert not waiting


@pytest.mark.parametrize("kind", KINDS)
def test_shown_history_is_a_valid_conversation_and_the_same_bytes_each_time(kind: History, cut: Cut) -> None:
    recipe = recipe_of(kind, cut)
    messages = shown(recipe, cut.messages)
    assert_valid(messages)
    assert messages_sha256(messages) == messages_sha256(shown(recipe_of(kind, cut), cut.messages))


def test_repeated_token_is_one_user_message_within_one_per_cent_of_what_it_replaces(cut: Cut) -> None:
    recipe = recipe_of("repeated_token", cut)
    (message,) = shown(recipe, cut.messages)
    assert message.role == "user"
    assert abs(count_text(message.text) - count_messages(cut.messages)) <= 0.01 * count_messages(cut.messages)
    assert recipe["target_tokens"] == count_messages(cut.messages)


@pytest.mark.parametrize("n_tokens", [12, 700, 40_000])
def test_random_strings_are_one_user_message_within_one_string_of_what_it_replaces(n_tokens: int, cut: Cut) -> None:
    from dataclasses import replace

    first = count_text(cut.messages[0].text)
    recipe = recipe_of("random_strings", replace(cut, reported=(first, n_tokens)))
    (message,) = shown(recipe, cut.messages)
    assert message.role == "user"
    strings = message.text.split(" ")
    assert len(strings) == recipe["n"]
    assert all(string.isalpha() and 3 <= len(string) <= 12 for string in strings)
    assert abs(count_text(message.text) - n_tokens) <= max(count_text(f" {string}") for string in strings)


def test_replaced_turns_keep_the_user_messages_and_the_length_within_one_sentence(cut: Cut) -> None:
    recipe = recipe_of("random_sentences", cut)
    messages = shown(recipe, cut.messages)
    kept = [message for message in messages if message.role == "user"]
    assert kept == [message for message in cut.messages if message.role == "user"]
    assert {message.role for message in messages} == {"user", "assistant"}
    assert not any(message.calls for message in messages)
    assert abs(count_messages(messages) - count_messages(cut.messages)) <= count_text(recipe["sentence"] + " ")


turns = st.lists(st.tuples(st.text("ab ", max_size=400), st.booleans()), min_size=1, max_size=12)


@given(turns, st.integers(1, 50))
def test_any_conversation_keeps_its_length_within_one_sentence_if_its_turns_have_room(
    said: list[tuple[str, bool]], seed: int
) -> None:
    messages: list[Message] = []
    for place, (text, calls) in enumerate(said):
        sent = (ToolCall(f"c{place}", "view_portfolio", {}),) if calls else ()
        messages += [user(f"Quarter {place + 1}"), Message("assistant", text, sent)]
        messages += [Message("tool", text, call_id=call.call_id) for call in sent]
    there = Cut("run", 1, "", tuple(messages), None)  # type: ignore[arg-type]
    recipe = recipe_of("random_sentences", there, seed)
    assert_valid(shown(recipe, there.messages))
    one = count_text(recipe["sentence"] + " ")
    n, target = count_messages(shown(recipe, there.messages)), count_messages(messages)
    assert n >= target - one
    assert n <= target + one or set(recipe["counts"]) == {1}


def test_usage_that_the_provider_reported_is_the_target_where_there_is_any(cut: Cut) -> None:
    from dataclasses import replace

    first = 1000 + count_text(cut.messages[0].text)
    recipe = recipe_of("repeated_token", replace(cut, reported=(first, 5000)))
    assert recipe["target_tokens"] == 4000
    assert recipe["target_basis"] == "usage reported by the provider"
    assert recipe["shown_tokens"] == pytest.approx(4000, rel=0.01)


def test_random_texts_differ_between_seeds(cut: Cut) -> None:
    assert len({recipe_of("random_strings", cut, seed)["text"] for seed in range(1, 6)}) == 5
    sentences = {recipe_of("random_sentences", cut, seed)["sentence"] for seed in range(1, 20)}
    assert len(sentences) > 5
    assert sentences <= set(load_corpus().history["sentences"].splitlines())


def test_summary_is_asked_of_the_model_once_and_stored(cut: Cut) -> None:
    recipe = recipe_of("summarised", cut)
    (message,) = shown(recipe, ())
    assert f"I have seen {len(cut.messages) + 1} messages." in message.text
    assert recipe["usage"] == {"context_tokens": 100, "output_tokens": 9}


def test_conversation_of_several_calls_in_a_turn_is_replaced_as_one_block() -> None:
    calls = (ToolCall("a", "view_portfolio", {}), ToolCall("b", "nothing", "{broken"))
    messages = (user("Quarter 1"), Message("assistant", "", calls), Message("tool", "x", call_id="a"))
    messages += (Message("tool", "y", call_id="b"), Message("assistant", "done"), user("Quarter 2"))
    replaced = shown({"kind": "random_sentences", "sentence": "Hm.", "counts": [2]}, messages)
    assert replaced == (user("Quarter 1"), Message("assistant", "Hm. Hm."), user("Quarter 2"))


@pytest.mark.parametrize("kind", KINDS)
def test_run_with_a_shown_history_goes_on_after_a_cut_to_the_same_record(kind: History, tmp_path: Path) -> None:
    runs = switching(n=4, history=kind)
    for folder in ("whole", "cut"):
        assert sweep_runs(tmp_path / folder, runs).complete
    child = next(run for run in runs if run.treatment.switches)
    path = record_path(tmp_path / "cut", child)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    assert sweep_runs(tmp_path / "cut", runs).complete
    assert content(path) == content(record_path(tmp_path / "whole", child))


def test_state_of_the_firm_goes_on_exactly_whatever_is_shown(tmp_path: Path) -> None:
    for kind in KINDS:
        sweep_runs(tmp_path, switching(n=4, history=kind))
    branched = [
        record_of(tmp_path, run).branched
        for kind in KINDS
        for run in switching(n=4, history=kind)
        if run.treatment.switches
    ]
    assert len({str(line["opening"]) for line in branched if line}) == 1
    assert len({line["history_sha256"] for line in branched if line}) == len(KINDS)


def bought_frac_of_competing(root: Path, runs: Sequence[RunSpec]) -> float:
    child = next(run for run in runs if run.treatment.switches)
    closed = [line["state"]["bought_usd"] for line in record_of(root, child).of_type("closed")]
    high, low = sum(line["high"] for line in closed), sum(line["low"] for line in closed)
    return float(high / (high + low))


def test_inertial_agent_drifts_on_its_own_history_alone(tmp_path: Path) -> None:
    drift = {}
    for kind in ("own", "none", "repeated_token", "random_strings"):
        runs = switching(n=8, history=kind)
        sweep_runs(tmp_path, runs)
        drift[kind] = bought_frac_of_competing(tmp_path, runs)
    assert drift["own"] > 0.1
    assert drift["none"] == drift["repeated_token"] == drift["random_strings"] == 0


def test_agent_that_copies_form_is_moved_by_replaced_turns_alone(tmp_path: Path) -> None:
    def n_calls(kind: History) -> int:
        runs = switching("copycat", n=8, history=kind)
        sweep_runs(tmp_path, runs)
        child = next(run for run in runs if run.treatment.switches)
        return sum(
            call["tool"] == "buy_stock"
            for line in record_of(tmp_path, child).of_type("turn")
            for call in line.get("calls", ())
        )

    assert n_calls("random_sentences") == 0
    assert n_calls("own") > 0 and n_calls("none") > 0 and n_calls("repeated_token") > 0


def test_emptied_portfolio_keeps_the_history_and_says_so(tmp_path: Path) -> None:
    runs = switching(n=4, portfolio="emptied")
    sweep_runs(tmp_path, runs)
    record = record_of(tmp_path, next(run for run in runs if run.treatment.switches))
    assert record.branched is not None
    assert record.branched["opening"]["books"]["holdings_usd"] == {}
    assert record.branched["recipe"] == {"kind": "own"}
    assert ["desk_emptied", "note"] in next(record.of_type("opened"))["items"]


def test_borrowed_history_is_the_other_models_conversation_and_books(tmp_path: Path) -> None:
    parents = {"inertial": scripted("inertial")}
    treatment = Treatment("goal_switching", n_instrumental=4, n_evaluation=3, history="borrowed", parent="inertial")
    from experiments.grid import plan_runs

    runs = plan_runs([scripted("adherent")], [treatment], seeds=[1], n_phases=1, parents=parents)
    assert sweep_runs(tmp_path, runs).complete
    record = record_of(tmp_path, next(run for run in runs if run.treatment.switches))
    assert record.branched is not None
    assert "inertial-phase" in record.branched["parent"]
    assert record.branched["recipe"] == {"kind": "borrowed"}


@pytest.mark.parametrize(
    ("before", "goal", "setting"),
    [("reversed", "profit", "baseline"), ("pressured", "emissions", "adversarial_pressure")],
)
def test_phase_that_is_no_part_of_a_two_phase_prompt(before: str, goal: str, setting: str, tmp_path: Path) -> None:
    runs = switching("adherent", n=4, before=before)
    assert sweep_runs(tmp_path, runs).complete
    child = next(run for run in runs if run.treatment.switches)
    phase = child.phase_spec()
    assert phase is not None
    scenarios = [read_record(record_path(tmp_path, run)).header["scenario"] for run in (phase, child)]
    assert (scenarios[0]["system_goal"], scenarios[0]["setting"]) == (goal, setting)
    assert (scenarios[1]["system_goal"], scenarios[1]["elicitation"]) == ("emissions", "strong")
    record = record_of(tmp_path, child)
    assert [line["quarter"] for line in record.of_type("closed")] == [5, 6, 7, 8]
    assert record.branched is not None and record.branched["opening"]["books"]["quarter"] == 4


class Small:
    """An agent that is never asked."""

    name = "small"

    async def complete(self, prompt: Prompt) -> Completion:
        if prompt.position.period > 4 or prompt.tool_use == "none":
            raise AssertionError("asked although the history does not fit")
        return await build_model(scripted("adherent")).complete(prompt)


@pytest.mark.parametrize("kind", ["own", "summarised", "random_sentences", "repeated_token", "random_strings"])
def test_history_that_the_context_cannot_hold_is_refused_before_the_first_call(kind: History, tmp_path: Path) -> None:
    from dataclasses import replace

    small = replace(scripted("adherent"), service={"context_tokens": 500})
    treatment = Treatment("goal_switching", n_instrumental=4, n_evaluation=3, history=kind)
    runs = [run for run in plan(small, treatment, seeds=[1], n_phases=1) if run.treatment.switches]
    report = sweep_runs(tmp_path, runs, build_model=lambda _: Small())
    assert report.outcomes == {"context_limit": 1}
    ended = record_of(tmp_path, runs[0]).ended
    assert ended is not None and "takes 500" in ended["reason"]
