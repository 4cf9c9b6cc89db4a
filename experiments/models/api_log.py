"""Owns the log of failing calls: request and response as they went over the wire, without secrets, a JSON line each."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from apex_env.protocol import Json
from experiments.chat import Position
from experiments.models.failures import Failure
from experiments.models.redaction import redacted


@dataclass(frozen=True, slots=True)
class ApiLog:
    """Where the failing calls of a model are written."""

    folder: Path
    model: str
    """Label of the model, which names the file."""
    secrets: Collection[str]

    @property
    def path(self) -> Path:
        """The file; each process has its own."""
        return self.folder / f"{self.model}-{os.getpid()}.jsonl"

    def write(self, request: Json, failure: Failure, position: Position) -> None:
        """Append one failing call.

        Raises:
            OSError: if the place cannot be written.
        """
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "model": self.model,
            "seed": position.seed,
            "period": position.period,
            "turn": position.turn,
            "status": failure.status,
            "kind": failure.kind,
            "error": failure.text,
            "retry_after_s": failure.retry_after_s,
            "request": request,
            "response": failure.raw,
        }
        text = redacted(json.dumps(line, default=str), self.secrets)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="ascii") as file:
            file.write(text + "\n")
