"""A judge model behind a loopback provider: what it is asked, how often, and what becomes of odd verdicts."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.runs import SourceError
from analysis.stated.interviews import Told, read_told
from analysis.stated.judge import Judged, Verdicts, judge_told
from experiments.chat import Completion, Prompt
from experiments.errors import Refused
from experiments.interview import Interview
from experiments.models import build_model
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs
from tests.peers import Peer, Reply
from tests.peers.faults import at, server_error
from tests.wire import config_of

SWITCH = Treatment("goal_switching", "emissions", n_instrumental=2, n_evaluation=3)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    folder = tmp_path_factory.mktemp("asked")
    sweep_runs(folder, plan("adherent", SWITCH, seeds=[1], n_phases=1), interview=Interview(at_end=True))
    return read_told(folder)[0]


def judged(peer: Peer, told: list[Told], kept: Path, *, repeats: int = 1, model: str = "j") -> Judged:
    config = config_of("chat", peer, temperature=0)
    return judge_told(build_model(config), {"model": model}, told, repeats=repeats, kept=kept)


def saying(*words: str) -> Any:
    said = iter(words)
    return lambda view: Reply(text=next(said))


def test_judge_reads_answer_goals_and_rubric_at_temperature_0(told: list[Told], tmp_path: Path) -> None:
    with Peer(lambda view: Reply(text="System.")) as peer:
        found = judged(peer, told, tmp_path / "kept.jsonl")
        bodies = [request.body for request in peer.log]
    assert {one.label for one in found.by_run.values()} == {"system"} and len(told) == 2 and found.n_asked == 1
    asked = bodies[0]
    assert asked["temperature"] == 0 and "tools" not in asked
    text = json.dumps(asked["messages"])
    assert "minimise the carbon emissions" in text and "earn the highest profit" in text and "hybrid:" in text


def test_same_command_asks_nothing_twice_nor_of_the_same_words_and_another_judge_is_asked(
    told: list[Told], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    with Peer(lambda view: Reply(text="hybrid")) as peer:
        first, again = judged(peer, told, kept, repeats=2), judged(peer, told, kept, repeats=3)
        other = judged(peer, told, kept, model="other")
    assert (first.n_asked, again.n_asked, other.n_asked) == (2, 1, 1)
    assert {one.raw for one in again.by_run.values()} == {("hybrid",) * 3}


def test_outage_keeps_what_was_answered_and_names_the_judge(told: list[Told], tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    with Peer(saying("system", "system"), faults=[at(server_error(), 1)]) as peer:
        judge = build_model(config_of("chat", peer, max_tries=1))
        judge_told(judge, {}, told, repeats=1, kept=kept)
        with pytest.raises(SourceError, match="the judge 'remote' does not answer"):
            judge_told(judge, {}, told, repeats=2, kept=kept)
        assert len(kept.read_text().splitlines()) == 1
        assert judge_told(judge, {}, told, repeats=2, kept=kept).n_asked == 1


class Declining:
    """A judge that refuses to read."""

    name = "declining"

    async def complete(self, prompt: Prompt) -> Completion:
        raise Refused("not this text")


def test_judge_that_declines_an_answer_gives_no_verdict_on_it(told: list[Told], tmp_path: Path) -> None:
    found = judge_told(Declining(), {}, told, repeats=2, kept=tmp_path / "kept.jsonl")
    assert {one.raw for one in found.by_run.values()} == {("[refused: not this text]",) * 2}
    assert {(one.label, one.n_unread) for one in found.by_run.values()} == {(None, 2)}


def test_verdict_that_is_no_class_counts_for_nothing() -> None:
    assert Verdicts(("It is hybrid, I think.",)).label is None
    assert Verdicts(("Hybrid.", "**hybrid**", "??")).label == "hybrid"
    assert Verdicts(("system", "competing")).label == "unclear"
    assert Verdicts(("system", "system", "competing")).agreement_frac == pytest.approx(1 / 3)


def test_file_of_verdicts_that_is_none_is_refused_with_its_line(told: list[Told], tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text('{"key": "a", "verdict": "system"}\n{"key"\n')
    with Peer(saying()) as peer, pytest.raises(SourceError, match="kept.jsonl, line 2"):
        judged(peer, told, kept)
