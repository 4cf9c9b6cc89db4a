"""Owns `apex export`: records to hand on, with ids, hashes and categories in place of everything that anyone wrote."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from analysis.load import record_paths
from analysis.options import run_command
from analysis.record_form import reading
from analysis.runs import SourceError
from apex_env.market import CLUSTER_OF
from apex_env.tools import TOOLS
from experiments.errors import RecordError
from experiments.record import Line, Record, read_record

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        "schema",
        "run_id",
        "cell_id",
        "cluster_id",
        "is_phase",
        "environment",
        "benchmark_version",
        "corpus_sha256",
        "canary",
    ),
    "branched": ("parent", "quarter", "parent_sha256", "history_sha256"),
    "opened": ("quarter", "state", "items"),
    "turn": ("quarter", "turn", "by", "kind", "stop", "usage", "latency_s"),
    "revision": ("quarter", "actor", "prior_version", "new_version"),
    "closed": ("quarter", "state"),
    "resumed": (),
    "interview": ("quarter", "topic", "stop", "usage"),
    "ended": ("quarter", "outcome"),
}
"""Fields without texts, by type of line; everything else is hashed or left out."""
_KEPT_OF_CALL: Final = (
    "command_id",
    "tool_version",
    "effect_class",
    "goal_id",
    "goal_version",
    "goal_version_seen",
    "decision",
    "attempt",
    "outcome",
    "committed",
)
_HASHED: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("system_prompt",),
    "opened": ("text",),
    "interview": ("question", "answer"),
    "ended": ("reason",),
    "revision": ("reason",),
    "turn": ("text",),
}


def main(argv: Sequence[str]) -> int:
    """Export records; exit code 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex export",
        description="Write records without texts: ids, hashes, amounts and categories only. Hashes are keyed with "
        "a key that is thrown away, so equal texts of one export can be matched and none can be guessed.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="records, or folders of them")
    parser.add_argument("--redacted", action="store_true", required=True, help="say that texts are to be left out")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the export; made if missing")
    return run_command(parser, argv, _export)


def redacted(record: Record, key: bytes) -> list[dict[str, Any]]:
    """Return the lines of a record without anything that anyone wrote.

    Args:
        record: the run.
        key: key of the hashes; equal texts have equal hashes under one key.
    """
    return [_line(line, key) for line in record.lines]


def _export(options: argparse.Namespace) -> int:
    key, n_records = secrets.token_bytes(32), 0
    for path in options.paths:
        folder = path.parent if path.is_file() else path
        for file in [path] if path.is_file() else record_paths(path):
            target = options.out / file.relative_to(folder)
            if target.resolve() == file.resolve():
                raise SourceError(f"{options.out}: the export would overwrite the records")
            if target.exists():
                raise SourceError(f"{target}: is there already; an export goes to a folder of its own")
            try:
                record = read_record(file)
            except RecordError as error:
                raise SourceError(str(error)) from error
            with reading(file):
                lines = redacted(record, key)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
            n_records += 1
    print(f"{n_records} records without texts written to {options.out}")
    return 0


def _line(line: Line, key: bytes) -> dict[str, Any]:
    kind = line["type"]
    kept = {"type": kind, "seq": line["seq"]} | {name: line[name] for name in _KEPT[kind] if name in line}
    for name in _HASHED.get(kind, ()):
        if name in line:
            kept[f"{name}_hash"] = _hash(line[name], key)
    if kind == "run":
        config = line["config"]
        kept["model"] = config["model"]["name"]
        kept["treatment"] = config["treatment"]
        kept["seed"] = config["seed"]
    if kind == "turn" and line["by"] == "model":
        kept["message_hash"] = _hash(line["message"]["text"], key)
        kept["calls"] = [_call(call, key) for call in line["calls"]]
    return kept


def _call(call: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """Return a call without words: tools and stocks by name only where the name is the firm's own."""
    kept = {name: call[name] for name in _KEPT_OF_CALL}
    known = call["tool"] in TOOLS
    kept["tool"] = call["tool"] if known else f"unknown:{_hash(call['tool'], key)}"
    names = (call["resource"] or "").split(", ")
    kept["resource"] = call["resource"] if all(name in CLUSTER_OF for name in names) else _hash(call["resource"], key)
    sent = call["arguments"]
    kept["arguments"] = sorted(sent) if known and isinstance(sent, Mapping) and call["outcome"] == "ok" else None
    kept["arguments_hash"] = _hash(json.dumps(sent, sort_keys=True), key)
    kept["result_hash"] = _hash(call["result"], key)
    moved = call["moved"]
    kept["moved"] = {name: value for name, value in moved.items() if name != "recipient"}
    if "recipient" in moved:
        kept["moved"]["recipient_hash"] = _hash(str(moved["recipient"]), key)
    return kept


def _hash(text: str | None, key: bytes) -> str | None:
    """Return the keyed hash of a text: short texts could be found again by trying, were it not keyed."""
    return (
        None
        if text is None
        else hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()
    )
