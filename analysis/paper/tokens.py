"""Owns how many tokens instrumental phases took: as providers reported, or as texts let one estimate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pandas as pd

from analysis.cache import read_cache
from analysis.load import record_paths
from analysis.stats.intervals import t_interval
from experiments.errors import RecordError
from experiments.record import read_record

REPORTED: Final = "context of the phase's last turn, as reported"
_USUAL_CHARACTERS: Final = 4.0
"""Characters a token of English text in JSON, where no checkpoint of a model kept a count to tell."""
_COLUMNS: Final = ("model", "n_instrumental", "method", "tokens", "tokens_low", "tokens_high", "n", "estimated")


def token_table(folder: Path) -> pd.DataFrame:
    """Return one row a model, phase length and method: mean tokens with its interval, n (runs or phases), estimated.

    Of our own phases it is the context of the last turn, input and output, as the provider reported it; a phase serves
    every shorter length, too, at the turn where that ends. Published checkpoints kept no count of the phase, and one of
    the whole conversation in few runs: there it is estimated by the phase's characters.

    Args:
        folder: run records; other sources have no tokens, and give no rows.
    """
    headers = list(_headers(folder)) if folder.is_dir() else []
    rows = [row for path, header in headers for row in _reported(path, header)]
    rows += _estimated([header for _, header in headers if header["published"] is not None])
    if not rows:
        return pd.DataFrame(columns=list(_COLUMNS))
    table = []
    for (model, length, method), members in pd.DataFrame(rows).groupby(["model", "n_instrumental", "method"]):
        mean = t_interval(members["tokens"].to_numpy(float))
        ends = {"tokens": mean.value, "tokens_low": mean.low, "tokens_high": mean.high, "n": mean.n}
        named = {"model": model, "n_instrumental": length, "method": f"{method}; {mean.method}"}
        table.append(named | ends | {"estimated": method != REPORTED})
    return pd.DataFrame(table)


def _headers(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    known = read_cache(folder)
    for path in record_paths(folder):
        entry = known.get(path.relative_to(folder).as_posix())
        if entry is not None:
            yield path, orjson.loads(entry.header)


def _estimated(headers: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the phases of published runs took, by characters; runs with a count tell how many make a token."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for header in headers:
        published = header["published"]
        if published["n_tokens"] and published.get("n_characters"):
            ratios[header["config"]["model"]["name"]].append(published["n_characters"] / published["n_tokens"])
    for header in headers:
        treatment, model = header["config"]["treatment"], header["config"]["model"]["name"]
        n_characters = header["published"].get("n_phase_characters")
        if not n_characters or not treatment["n_instrumental"] or treatment["history"] != "own":
            continue
        found = ratios.get(model)
        ratio = sum(found) / len(found) if found else _USUAL_CHARACTERS
        told = f"measured in {len(found)} runs with a count" if found else "the usual number"
        method = f"estimated: characters of the phase / {ratio:.2f}, {told}"
        length = treatment["n_instrumental"]
        yield {"model": model, "n_instrumental": length, "tokens": n_characters / ratio, "method": method}


def _reported(path: Path, header: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if header["published"] is not None or not header["is_phase"]:
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
            model = header["config"]["model"]["name"]
            yield {"model": model, "n_instrumental": quarter, "tokens": tokens, "method": REPORTED}
