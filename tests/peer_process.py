"""A peer as a process of its own, and sweeps against it as processes that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.peers import Entry, read_log
from tests.wire import KEY, KEY_ENV


@dataclass(frozen=True)
class PeerProcess:
    """A peer that listens."""

    port: int
    log_path: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def entries(self, *, since_s: float = 0.0) -> list[Entry]:
        """Requests that came after a moment, in the order of arrival."""
        return [entry for entry in read_log(self.log_path) if entry.arrived_s >= since_s]


@contextmanager
def peer_process(folder: Path, *, brain: str = "inertial", settings: str = "STEADY") -> Iterator[PeerProcess]:
    """Serve a brain of `tests.wire_brains` for as long as the block runs."""
    log_path = folder / "peer.jsonl"
    log_path.touch()
    command = [sys.executable, "-m", "tests.peers", "--brain", f"tests.wire_brains:{brain}"]
    command += ["--settings", f"tests.wire_brains:{settings}", "--log", str(log_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield PeerProcess(int(process.stdout.readline()), log_path)
    finally:
        process.terminate()
        process.communicate(timeout=30)


ROUTES = {
    "chat": ("local", "/v1", {"model": "m"}),
    "responses": ("gpt_4o_mini", "/v1", {}),
    "anthropic": ("claude_haiku_5_5", "", {}),
}
"""Configuration of a model, path of its API, and fields to set."""


def run_command(peer: PeerProcess, route: str, *words: str) -> list[str]:
    """Return the command of a sweep that asks a peer."""
    model, path, fields = ROUTES[route]
    service = {"base_url": peer.url + path, "api_key_env": KEY_ENV, "first_wait_s": 0.01, "longest_wait_s": 0.05}
    overrides = {f"models.{model}.{name}": value for name, value in ({"name": "remote"} | fields).items()}
    overrides |= {f"models.{model}.service.{name}": value for name, value in service.items()}
    # The header of a record holds the service fields; this one would differ between folders.
    named = [f"models.{model}.service.log_dir=null", *(f"{name}={value}" for name, value in overrides.items())]
    return [sys.executable, "-m", "analysis.cli", "run", f"model={model}", *named, *words]


def start(command: list[str], **environment: str) -> subprocess.Popen[bytes]:
    """Start a sweep in a process group of its own."""
    return subprocess.Popen(
        command,
        env=os.environ | {KEY_ENV: KEY} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
