"""Stored payloads: answers in the form in which each service sends them."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "payloads"


def payload(name: str) -> Any:
    """A payload by the name of its file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
