"""No key is written anywhere: a canary in the environment and in a URL is searched for in all that commands leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.peers import Call, Peer, Reply, RequestView, Settings, faults
from tests.peers.faults import when

CANARY = "sk-canary-5f0c1d7e9b3a4826"
"""The key, as a provider would make it."""
URL_CANARY = "pw-canary-77aa12bc34de"
"""A password in a URL, formed like nothing in particular."""


def finishing(view: RequestView) -> Reply:
    return Reply(text="Done.", calls=(Call("finish_quarter", {}),))


@contextmanager
def served(**fields: object) -> Iterator[Peer]:
    with Peer(finishing, **fields) as peer:  # type: ignore[arg-type]
        yield peer


def command(name: str, *words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {"OPENAI_API_KEY": CANARY, "ANTHROPIC_API_KEY": CANARY, "APEX_CANARY_KEY": CANARY} | environment
    return subprocess.run(
        [sys.executable, "-m", "analysis.cli", name, *words],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | environment | {"HYDRA_FULL_ERROR": "1"},
    )


def words(peer: Peer, folder: Path, *more: str) -> list[str]:
    service = {"base_url": peer.openai_url, "api_key_env": "APEX_CANARY_KEY", "first_wait_s": 0.001, "max_tries": 2}
    named = [f"models.local.service.{key}={value}" for key, value in (service | {"log_api": "errors"}).items()]
    model = ["model=local", "models.local.name=m", "models.local.model=m", *named]
    return ["name=t", f"results_dir={folder}/results", "treatment=baseline", "treatment.n_evaluation=2", *model, *more]


def check_unwritten(folder: Path, *done: subprocess.CompletedProcess[str]) -> None:
    """Make sure that no file, name, output or error text holds a canary."""
    for process in done:
        for text in (process.stdout, process.stderr):
            assert CANARY not in text
            assert URL_CANARY not in text
    for path in folder.rglob("*"):
        assert "canary-" not in path.name
        if path.is_file():
            data = path.read_bytes()
            assert CANARY.encode() not in data, path
            assert URL_CANARY.encode() not in data, path


def test_key_of_runs_that_succeed_is_in_nothing_that_is_written(tmp_path: Path) -> None:
    with served() as peer:
        runs = command("run", *words(peer, tmp_path, "seeds=2"), folder=tmp_path)
        plan = command("plan", *words(peer, tmp_path, "seeds=3"), folder=tmp_path)
    assert runs.returncode == 0, runs.stderr
    assert {entry.key for entry in peer.log} == {CANARY}, "the key has not been used, so nothing is shown"
    status = command("status", f"{tmp_path}/results", "--json", folder=tmp_path)
    check_unwritten(tmp_path, runs, plan, status)
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"seed-001.jsonl", "config.yaml", "overrides.yaml", "hydra.yaml"} <= written


@pytest.mark.parametrize("fault", ["repeats the key", "server error", "drops"])
def test_key_of_calls_that_fail_is_in_no_record_log_or_error_text(fault: str, tmp_path: Path) -> None:
    rules = {
        "repeats the key": [],
        "server error": [when(faults.server_error(), lambda arrival: True)],
        "drops": [when(faults.drop_before(), lambda arrival: True)],
    }[fault]
    settings = Settings(api_keys=frozenset({"another"})) if fault == "repeats the key" else Settings()
    with served(faults=rules, settings=settings) as peer:
        done = command("run", *words(peer, tmp_path, "seeds=1"), folder=tmp_path)
    assert done.returncode == 1
    assert len(peer.log) >= 1
    check_unwritten(tmp_path, done)
    assert list((tmp_path / "results" / "t").rglob("_api/*")), "failing calls were to be logged"


def test_credential_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with served() as peer:
        url = peer.openai_url.replace("://", f"://user:{URL_CANARY}@")
        given = command(
            "run",
            *words(peer, tmp_path, "seeds=1", "models.local.service.base_url=${oc.env:APEX_URL}"),
            folder=tmp_path,
            APEX_URL=url,
        )
        direct = [
            command(name, *words(peer, tmp_path, "seeds=1", f"models.local.service.base_url={url}"), folder=tmp_path)
            for name in ("run", "plan")
        ]
    assert given.returncode == 2
    assert len(peer.log) == 0
    assert direct[0].returncode == 2
    check_unwritten(tmp_path, given, *direct)


AGENT = """
import os

def agent(prompt):
    raise ValueError("my key is " + os.environ["APEX_CANARY_KEY"])
"""


def test_key_in_the_exception_of_ones_own_agent_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "telltale.py").write_text(AGENT)
    done = command(
        "run",
        "name=t",
        f"results_dir={tmp_path}/results",
        "model=python",
        "target=telltale:agent",
        "treatment=baseline",
        "seeds=1",
        folder=tmp_path,
        PYTHONPATH=str(tmp_path),
    )
    assert done.returncode == 1
    check_unwritten(tmp_path, done)


def test_key_on_the_command_line_is_refused_by_every_command_that_takes_overrides(tmp_path: Path) -> None:
    with served() as peer:
        for name in ("run", "plan"):
            done = command(name, *words(peer, tmp_path, f"++models.local.service.api_key={CANARY}"), folder=tmp_path)
            assert done.returncode == 2
            check_unwritten(tmp_path, done)
