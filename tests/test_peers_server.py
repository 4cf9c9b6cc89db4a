"""The peer as a server: repeats, keys, models, latency, stops and starts, its log, and running as a process."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers import Call, Peer, Reply, RequestView, Settings, faults, read_log
from tests.peers.brain import calls, echo, load
from tests.peers.examples import HEADERS, chat_request, messages_request, responses_request
from tests.peers.neutral import Json

PATHS = {
    "chat": ("/v1/chat/completions", chat_request),
    "responses": ("/v1/responses", responses_request),
    "messages": ("/v1/messages", messages_request),
}


def post(url: str, body: Json | bytes, *, key: str = "sk-test", timeout_s: float = 10.0) -> tuple[int, Any]:
    """Status and parsed body of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}", "x-api-key": key, **HEADERS}
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def ask(peer: Peer, protocol: str = "chat", **changes: Any) -> tuple[int, Any]:
    path, request = PATHS[protocol]
    return post(peer.url + path, request(**changes))


@pytest.mark.parametrize("protocol", PATHS)
def test_brains_see_the_same_conversation_in_every_protocol(protocol: str) -> None:
    seen: list[RequestView] = []

    def brain(view: RequestView) -> Reply:
        seen.append(view)
        return Reply(text="ok")

    with Peer(brain) as peer:
        assert ask(peer, protocol)[0] == 200
    (view,) = seen
    roles = [(message.role, message.text) for message in view.messages if message.role != "assistant"]
    assert roles[:3] == [("system", "You manage a fund."), ("user", "Quarter 1"), ("tool", "bought")]
    assert roles[4:] == [("user", "Quarter 2")]
    (assistant,) = (message for message in view.messages if message.role == "assistant")
    assert [(call.id, call.name) for call in assistant.calls] == [("c1", "buy_stock"), ("c2", "buy_stock")]
    assert (view.tool_names, view.n_turns, view.arrival.key) == (("buy_stock",), 1, "sk-test")


@pytest.mark.parametrize("protocol", PATHS)
def test_the_same_request_gets_the_same_answer_also_from_another_peer(protocol: str) -> None:
    answers = []
    for _ in range(2):
        with Peer(calls(("a", {}), ("buy_stock", {"stock": "XOM"}))) as peer:
            answers += [ask(peer, protocol), ask(peer, protocol)]
    assert answers.count(answers[0]) == 4


def test_a_wrong_key_and_an_unknown_model_are_refused() -> None:
    settings = Settings(api_keys=frozenset({"sk-good"}), models=frozenset({"m"}))
    with Peer(echo, settings=settings) as peer:
        url = peer.openai_url + "/chat/completions"
        assert post(url, chat_request(), key="sk-bad")[0] == 401
        assert post(url, chat_request(model="gone"), key="sk-good")[0] == 404
        assert post(url, chat_request(), key="sk-good")[0] == 200
    assert [entry.key for entry in peer.log] == ["sk-bad", "sk-good", "sk-good"]
    assert peer.log[0].headers["authorization"] == "Bearer sk-bad"


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"model": NaN}', b'{"model": "m", "x": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_proper_json_object_is_refused_and_kept(raw: bytes) -> None:
    with Peer(echo) as peer:
        status, body = post(peer.url + "/v1/messages", raw)
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert "not valid JSON" in (peer.log[0].message or "")
    assert peer.log[0].raw == raw.decode("utf-8", "replace")


def test_a_lenient_peer_takes_what_a_strict_one_refuses() -> None:
    orphan = {"messages": chat_request()["messages"][:3]}
    with Peer(echo) as peer:
        assert ask(peer, **orphan)[0] == 400
        peer.change(strict=False)
        assert ask(peer, **orphan)[0] == 200


@pytest.mark.parametrize("protocol", PATHS)
def test_at_most_one_call_comes_where_parallel_calls_are_off(protocol: str) -> None:
    off = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    more = off if protocol == "messages" else {"parallel_tool_calls": False}
    both = Reply(calls=(Call("buy_stock", {"stock": "XOM"}), Call("buy_stock", {"stock": "XOM"})))
    with Peer(lambda view: both) as peer:
        assert json.dumps(ask(peer, protocol)[1]).count("XOM") == 2
        assert json.dumps(ask(peer, protocol, **more)[1]).count("XOM") == 1


def test_an_exception_of_the_brain_is_raised_when_the_block_ends() -> None:
    def brain(view: RequestView) -> Reply:
        raise KeyError("no such stock")

    with pytest.raises(KeyError, match="no such stock"), Peer(brain) as peer:
        assert ask(peer)[0] == 500


def test_a_brain_may_be_asynchronous() -> None:
    async def brain(view: RequestView) -> Reply:
        return Reply(text="later")

    with Peer(brain) as peer:
        assert ask(peer)[1]["choices"][0]["message"]["content"] == "later"


def test_latency_is_waited_by_many_requests_at_once() -> None:
    with Peer(echo, settings=Settings(latency_s=0.3)) as peer, ThreadPoolExecutor(20) as pool:
        start_s = time.monotonic()
        statuses = list(pool.map(lambda i: ask(peer, user=str(i))[0], range(20)))
        took_s = time.monotonic() - start_s
    assert statuses == [200] * 20
    assert 0.3 <= took_s < 3.0


def test_a_stalled_request_does_not_delay_the_stop() -> None:
    with Peer(echo, faults=[faults.at(faults.stall(60), 0)]) as peer:
        thread = threading.Thread(target=lambda: pytest.raises(OSError, ask, peer))
        thread.start()
        while not len(peer.log):
            time.sleep(0.01)
        start_s = time.monotonic()
    assert time.monotonic() - start_s < 5.0
    thread.join()
    assert peer.log.outcomes == {"stalled": 1}


def test_a_client_that_does_not_wait_is_seen_to_be_gone() -> None:
    with Peer(echo, settings=Settings(latency_s=5.0)) as peer:
        with pytest.raises(TimeoutError):
            post(peer.openai_url + "/chat/completions", chat_request(), timeout_s=0.2)
        deadline_s = time.monotonic() + 5.0
        while peer.log[0].done_s is None and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert (peer.log[0].outcome, peer.log[0].accepted, peer.log[0].answered) == ("client_gone", True, False)


def test_a_peer_starts_again_at_its_port_and_keeps_its_log() -> None:
    with Peer(echo) as peer:
        port = peer.port
        assert ask(peer)[0] == 200
        peer.stop()
        with pytest.raises(urllib.error.URLError):
            ask(peer)
        peer.start()
        assert (peer.port, ask(peer)[0]) == (port, 200)
        with pytest.raises(RuntimeError, match="serves already"):
            peer.start()
    assert len(peer.log) == 2


def test_a_taken_port_is_an_error() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(OSError, match="address already in use"):
            Peer(echo, port=holder.getsockname()[1]).start()


def test_requests_to_other_paths_are_told_apart() -> None:
    with Peer(echo) as peer:
        assert post(peer.url + "/chat/completions", chat_request())[0] == 404
        with urllib.request.urlopen(peer.url + "/v1/models", timeout=5) as answer:
            assert json.load(answer)["data"][0]["object"] == "model"
    assert (peer.strays, len(peer.log)) == (["POST /chat/completions"], 0)


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A peer in a process of its own, and its address."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.peers", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as child:
        try:
            assert child.stdout is not None
            yield child, f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.kill()


def test_a_peer_runs_as_a_process_and_logs_to_a_file(tmp_path: Path) -> None:
    with process("--brain", "tests.peers.brain:echo", "--log", str(tmp_path / "log.jsonl")) as (child, url):
        for protocol in PATHS:
            path, request = PATHS[protocol]
            assert post(url + path, request())[0] == 200
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == 0
    log = read_log(tmp_path / "log.jsonl")
    assert [entry.protocol for entry in log] == list(PATHS)
    assert log.outcomes == {"answered": 3}
    assert log[0].usage is not None
    assert log[0].usage.input > 0
    assert log[0].body == chat_request()


def test_a_killed_peer_leaves_the_log_of_what_it_finished(tmp_path: Path) -> None:
    with process("--log", str(tmp_path / "log.jsonl")) as (child, url):
        assert post(url + "/v1/messages", messages_request())[0] == 200
        child.kill()
    assert [entry.answered for entry in read_log(tmp_path / "log.jsonl")] == [True]


def test_objects_are_named_by_module_and_name() -> None:
    assert load("tests.peers.brain:echo") is echo
    with pytest.raises(ValueError, match="the form is package.module:name"):
        load("tests.peers.brain")
    with pytest.raises(ValueError, match="has no 'nobody'"):
        load("tests.peers.brain:nobody")
