"""Owns how many tokens instrumental phases took: as providers reported, or as published checkpoints kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from analysis.cache import read_cache
from analysis.load import record_paths
from experiments.errors import RecordError
from experiments.record import read_record

KEPT = "count kept in the checkpoint, evaluation included"
REPORTED = "context of the phase's last turn, as reported"


def token_table(folder: Path) -> pd.DataFrame:
    """Return one row a model and phase length: mean tokens, n (runs or phases) and method.

    Published checkpoints kept a count in few runs. Of our own phases it is the context of the last turn, input and
    output, as the provider reported it. A phase serves every shorter length, too, at the turn where that ends.

    Args:
        folder: run records; other sources have no tokens, and give no rows.
    """
    rows = [row for path, header in _headers(folder) for row in _counts(path, header)] if folder.is_dir() else []
    if not rows:
        return pd.DataFrame(columns=["model", "n_instrumental", "tokens", "n", "method"])
    table = pd.DataFrame(rows).groupby(["model", "n_instrumental", "method"], sort=True)["tokens"]
    return table.agg(tokens="mean", n="size").reset_index()


def _headers(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    known = read_cache(folder)
    for path in record_paths(folder):
        entry = known.get(path.relative_to(folder).as_posix())
        if entry is not None:
            yield path, orjson.loads(entry.header)


def _counts(path: Path, header: dict[str, Any]) -> Iterator[dict[str, Any]]:
    treatment, model = header["config"]["treatment"], header["config"]["model"]["name"]
    published = header["published"]
    if published is not None:
        if published["n_tokens"] is not None and treatment["n_instrumental"] and treatment["history"] == "own":
            length = treatment["n_instrumental"]
            yield {"model": model, "n_instrumental": length, "tokens": published["n_tokens"], "method": KEPT}
        return
    if not header["is_phase"]:
        return
    try:
        record = read_record(path)
    except RecordError:
        return  # Damaged records are named where the folder is loaded.
    last: dict[int, int] = {}
    for turn in record.of_type("turn"):
        usage = turn.get("usage")
        if usage:
            kinds = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
            last[turn["quarter"]] = sum(usage[kind] for kind in kinds)
    for quarter, tokens in last.items():
        if quarter & (quarter - 1) == 0 and quarter > 1:
            yield {"model": model, "n_instrumental": quarter, "tokens": tokens, "method": REPORTED}
