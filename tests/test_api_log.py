"""The log of failing calls."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.chat import Position
from experiments.models.api_log import ApiLog
from experiments.models.failures import Failure
from experiments.models.redaction import MASK

FAILURE = Failure(
    429, "slow down canary-1", raw='{"error": "canary-1"}', headers={"retry-after": "2", "set-cookie": "abc=1"}
)


def test_line_holds_request_and_response_without_secrets(tmp_path: Path) -> None:
    log = ApiLog(tmp_path / "_api", "some/model", ["canary-1"])
    log.write({"model": "m", "messages": ["\ud800 canary-1"]}, FAILURE, Position(3, 4, 5))
    log.write({}, FAILURE, Position(3, 4, 6))
    assert log.path.parent == tmp_path / "_api" and log.path.name.startswith("some_model-")
    text = log.path.read_text(encoding="utf-8")
    assert "canary-1" not in text
    first, second = (json.loads(line) for line in text.splitlines())
    assert (first["seed"], first["period"], first["turn"], first["status"], first["kind"]) == (3, 4, 5, 429, "passing")
    assert first["request"]["messages"] == [f"\ud800 {MASK}"]
    assert first["response"] == f'{{"error": "{MASK}"}}'
    assert first["response_headers"] == {"retry-after": "2", "set-cookie": MASK}
    assert second["turn"] == 6
