"""Owns the log of failing calls: request and response as they went over the wire, without secrets, a JSON line each.

A request's headers are left out: they hold the key and what the client says of itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from apex_env.protocol import Json
from experiments.chat import Position
from experiments.models.failures import Failure
from experiments.models.redaction import redacted, safe_headers


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
        return self.folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', self.model)}-{os.getpid()}.jsonl"

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
            "request": request,
            "response": failure.raw,
            "response_headers": safe_headers(failure.headers, self.secrets),
        }
        text = redacted(json.dumps(line, default=str), self.secrets)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="ascii") as file:
            file.write(text + "\n")
