"""What the log of a peer tells: counters, repeats, and how much of a conversation its requests keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.peers import Entry, PeerLog, Usage, read_log
from tests.peers.anthropic_messages import WIRE as MESSAGES
from tests.peers.examples import chat_request, messages_request, responses_request
from tests.peers.openai_chat import WIRE as CHAT
from tests.peers.openai_responses import WIRE as RESPONSES


def entry(**values: Any) -> Entry:
    defaults: dict[str, Any] = {
        "index": 0,
        "attempt": 0,
        "protocol": "chat",
        "digest": "d",
        "model": "m",
        "key": "k",
        "headers": {},
        "body": {},
        "raw": "",
        "prompt": ("head",),
        "arrived_s": 0.0,
    }
    return Entry(**{**defaults, **values})


def log(*prompts: str, **values: Any) -> PeerLog:
    """Requests whose conversation is a word, a letter a piece."""
    return PeerLog(entries=[entry(index=i, prompt=tuple(prompt), **values) for i, prompt in enumerate(prompts)])


def test_outcomes_faults_and_rejections_are_counted() -> None:
    entries = [
        entry(outcome="answered", answered=True),
        entry(outcome="error", fault="429"),
        entry(outcome="error", fault="429"),
        entry(outcome="rejected", message="no"),
    ]
    found = PeerLog(entries=entries)
    assert found.outcomes == {"answered": 1, "error": 2, "rejected": 1}
    assert found.faults == {"429": 2}
    assert found.rejections == ["no"]


def test_a_request_after_its_whole_answer_is_told_from_a_retry() -> None:
    answered = {"outcome": "answered", "answered": True}
    entries = [
        entry(digest="a", arrived_s=1.0, done_s=2.0, outcome="dropped_after", accepted=True),
        entry(digest="a", arrived_s=3.0, done_s=4.0, **answered),
        entry(digest="b", arrived_s=3.5, done_s=3.6, **answered),
        entry(digest="a", arrived_s=5.0, done_s=6.0, **answered),
        entry(digest="a", arrived_s=3.9, done_s=4.5, **answered),
    ]
    found = PeerLog(entries=entries)
    assert found.asked_after_answer() == [entries[3]]
    assert found.answered_twice() == ["a"]


@pytest.mark.parametrize(
    ("prompts", "share"),
    [
        (["a", "ab", "abcd"], 1.0),
        (["abc", "abd", "abde"], 0.5),
        (["abc", "abc", "abcd"], 1.0),
        (["ab", "xy", "abc", "xyz"], 1.0),
        (["abc", "a"], 0.0),
        (["a"], None),
        ([], None),
    ],
)
def test_the_share_of_requests_that_keep_the_conversation(prompts: list[str], share: float | None) -> None:
    assert log(*prompts).prefix_share() == share


def test_conversations_that_begin_alike_are_told_apart_by_what_is_asked_for() -> None:
    entries = [
        entry(prompt=tuple(prompt), headers={"x-run": run})
        for run, prompt in (("1", "ab"), ("2", "ax"), ("1", "abc"), ("2", "axy"))
    ]
    # Taken for one conversation, the third request alone keeps nothing of the one before it, nor do the others.
    assert PeerLog(entries=entries).prefix_share() == 0.0
    assert PeerLog(entries=entries).prefix_share(lambda each: each.headers["x-run"]) == 1.0


def test_pieces_are_blocks_and_cache_marks_do_not_count() -> None:
    plain, marked = messages_request(), messages_request()
    marked["messages"][2]["content"][2]["cache_control"] = {"type": "ephemeral"}
    marked["system"] = [{"type": "text", "text": marked["system"], "cache_control": {"type": "ephemeral"}}]
    assert MESSAGES.pieces(plain) == MESSAGES.pieces(marked)
    # The first message belongs to the head; three blocks of the assistant and three of the user follow.
    assert len(MESSAGES.pieces(plain)) == 7


def test_the_head_holds_all_up_to_the_first_user_message() -> None:
    assert len(CHAT.pieces(chat_request())) == 1 + 4
    assert len(RESPONSES.pieces(responses_request())) == 1 + 6


def test_a_log_comes_back_from_its_file(tmp_path: Path) -> None:
    written = PeerLog(path=tmp_path / "log.jsonl")
    for i in (1, 0):
        written.append(entry(index=i, prompt=("a", "b"), usage=Usage(fresh=i), message="low \ud800"))
        written.finish(written[-1], 9.0)
    assert read_log(tmp_path / "log.jsonl").entries == list(reversed(written.entries))
