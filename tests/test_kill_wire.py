"""Sweeps over the wire whose process is killed: equal records afterwards, and no answer on disk is asked for again."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from apex_env.protocol import ToolCall, ToolSpec
from experiments.chat import Message, Position, Prompt, user
from experiments.models import build_model
from experiments.models.provider import RemoteModel
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig
from tests.path import contents
from tests.peer_process import PeerProcess, peer_process, run_command, start
from tests.peers import Entry
from tests.peers.tokens import canonical
from tests.test_kill import n_bytes

GRID = [
    "name=wire",
    "treatment=none",
    "grid.setting=[adversarial_pressure,combined]",
    "grid.n_instrumental=[2,4]",
    "treatment.n_evaluation=4",
    "n_phases=2",
    "concurrency=4",
]


def sweep(peer: PeerProcess, route: str, root: Path, n_seeds: int) -> list[str]:
    return run_command(peer, route, *GRID, f"seeds={n_seeds}", f"results_dir={root}")


def kill_again_and_again(command: list[str], root: Path, n_kills: int, *, longest_s: float) -> int:
    """Start a sweep and kill it at a random moment after it went on, again and again; return how often it was alive."""
    rng, n_alive = random.Random(n_kills), 0
    for _ in range(n_kills):
        process = start(command)
        begun = n_bytes(root)
        while process.poll() is None and n_bytes(root) == begun:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, longest_s))
        n_alive += process.poll() is None
        process.kill()
        process.wait()
    return n_alive


def requests_on_disk(root: Path) -> dict[str, list[float]]:
    """When the answer to each request was written, by the request's digest, as the records tell it."""
    records = {record.header["run_id"]: record for record in map(read_record, sorted(root.rglob("*.jsonl")))}
    written: dict[str, list[float]] = defaultdict(list)
    for record in records.values():
        model = build_model(ModelConfig(**record.header["config"]["model"]))
        assert isinstance(model, RemoteModel)
        tools = [ToolSpec(**tool) for tool in record.header["tools"]]
        for line, messages in conversations(record, records):
            prompt = Prompt(record.header["system_prompt"], tools, messages, Position(1, 1, 0))
            body = json.loads(json.dumps(model.wire.request(prompt)))
            asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
            digest = blake2b(canonical(asked), digest_size=16).hexdigest()
            written[digest].append(datetime.fromisoformat(line["time"]).timestamp())
    return written


def conversations(record: Record, records: dict[str, Record]) -> Iterator[tuple[Any, list[Message]]]:
    """Iterate over the model's turns, each with all that had been said before it."""
    messages: list[Message] = []
    for line in record.lines:
        if line["type"] == "branched":
            messages = said(records[line["parent"]], up_to=line["quarter"])
        if line["type"] == "turn" and line["by"] == "model":
            yield line, messages
        messages = messages + said_in(line)


def said(record: Record, *, up_to: int) -> list[Message]:
    lines = [line for line in record.lines if line.get("quarter", 0) <= up_to]
    return [message for line in lines for message in said_in(line)]


def said_in(line: Any) -> list[Message]:
    if line["type"] == "opened" or (line["type"] == "turn" and line["by"] == "harness"):
        return [user(line["text"])]
    if line["type"] != "turn":
        return []
    sent = Message.from_json(line["message"])
    calls = tuple(ToolCall(call["id"], call["tool"], call["arguments"]) for call in line["calls"])
    results = [Message("tool", call["result"], call_id=call["id"]) for call in line["calls"]]
    return [Message("assistant", sent.text, calls, native=sent.native), *results]


def asked_though_on_disk(entries: Sequence[Entry], written: dict[str, list[float]]) -> list[Entry]:
    """Requests that came when every answer that the records hold for them was written already."""
    return [entry for entry in entries if all(moment < entry.arrived_s for moment in written.get(entry.digest, [0.0]))]


def check_after_kills(tmp_path: Path, route: str, *, n_kills: int, n_seeds: int, longest_s: float) -> tuple[int, int]:
    """Kill a sweep again and again, finish it, and hold it against an undisturbed one.

    Returns how often it was alive when it was killed, and how many requests were asked again because their answer had
    not reached the disk.
    """
    with peer_process(tmp_path) as peer:
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        assert start(sweep(peer, route, whole, n_seeds)).wait(timeout=600) == 0
        began_s = time.time()
        n_alive = kill_again_and_again(sweep(peer, route, killed, n_seeds), killed, n_kills, longest_s=longest_s)
        assert start(sweep(peer, route, killed, n_seeds)).wait(timeout=600) == 0
        entries = peer.entries(since_s=began_s)
    assert contents(killed) == contents(whole)
    written = requests_on_disk(killed)
    assert {entry.digest for entry in entries if entry.answered} == set(written)
    assert asked_though_on_disk(entries, written) == []
    n_turns = sum(map(len, written.values()))
    assert sum(entry.accepted for entry in entries) - n_turns <= 4 * n_kills, "at most the running turns are lost"
    return n_alive, len(entries) - n_turns


def test_sweep_over_the_wire_that_is_killed_ends_with_equal_records(tmp_path: Path) -> None:
    n_alive, _ = check_after_kills(tmp_path, "anthropic", n_kills=2, n_seeds=2, longest_s=0.3)
    assert n_alive >= 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("route", "n_kills"), [("chat", 18), ("responses", 16), ("anthropic", 16)])
def test_sweep_over_the_wire_killed_at_fifty_moments_ends_with_equal_records(
    route: str, n_kills: int, tmp_path: Path
) -> None:
    n_alive, n_asked_again = check_after_kills(tmp_path, route, n_kills=n_kills, n_seeds=24, longest_s=0.6)
    assert n_alive >= n_kills - 2
    assert n_asked_again > 0, "no answer was lost, so the kills did not hit a running turn"


def test_request_whose_answer_was_on_disk_would_be_found(tmp_path: Path) -> None:
    with peer_process(tmp_path) as peer:
        root = tmp_path / "whole"
        assert start(sweep(peer, "chat", root, 1)).wait(timeout=120) == 0
        written = requests_on_disk(root)
        entries = peer.entries()
        assert asked_though_on_disk(entries, written) == []
        path = min(root.rglob("phases/*/*.jsonl"))
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-4]))
        assert start(sweep(peer, "chat", root, 1)).wait(timeout=120) == 0
        assert asked_though_on_disk(peer.entries()[len(entries) :], written) != []
