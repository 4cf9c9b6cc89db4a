"""Owns the reading of a results folder: from run records to the values that are scored, and to tidy tables.

Scores need only the books, so only those lines are parsed; the order of all lines is checked. What was read is kept
in a column file beside the records and used again for every record that has not changed since.
"""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import orjson
import pandas as pd

from analysis.cache import Cached, read_cache, write_cache
from analysis.runs import Cell, Declared, Run, SourceError
from apex_env.ledger import QuarterLedger
from experiments.errors import RecordError
from experiments.record import LINE_TYPES, SCHEMA, read_record

_LINE_START: Final = re.compile(rb'\{"type":"(\w+)","seq":(\d+),')
_PARSED: Final = (b"run", b"branched", b"closed", b"ended")
_BOOK_FIELDS: Final = tuple(field.name for field in fields(QuarterLedger))
_CELL_FIELDS: Final = (
    "setting system_goal elicitation n_instrumental n_evaluation history parent pressure_schedule".split()
)
"""Fields of a treatment that are no factors of their own in tables; the schedule follows from whose dose is dealt."""


class OtherSchema(RecordError):
    """A record is of another schema version than this program reads; it is whole, and told apart from damaged ones."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The runs of a folder, and what was left out and why."""

    runs: tuple[Run, ...]
    excluded: Mapping[str, int]
    """Records by reason: instrumental phases, which are never scored, damaged ones, and those of another schema."""
    problems: tuple[str, ...]
    """Each damaged record with its line."""


def record_paths(folder: Path) -> list[Path]:
    """Return every record below a folder in order of their names; folders that begin with ``_`` are passed over.

    Raises:
        SourceError: if there is no such folder.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder}: there is no such folder")
    found = (path for path in folder.rglob("*.jsonl") if path.is_file())
    return sorted(path for path in found if not any(part.startswith("_") for part in path.relative_to(folder).parts))


def load_runs(folder: Path, *, cache: bool = True) -> Loaded:
    """Return the runs of a results folder; instrumental phases are counted and left out.

    Args:
        folder: a folder of records, at any depth.
        cache: whether to use and renew the column file ``_cache/books.parquet``.

    Raises:
        SourceError: if there is no such folder or no record in it.
    """
    paths = record_paths(folder)
    if not paths:
        raise SourceError(f"{folder}: no record (.jsonl) below this folder")
    known = read_cache(folder) if cache else {}
    entries: dict[str, Cached] = {}
    excluded: Counter[str] = Counter()
    problems: list[str] = []
    n_new = 0
    for path in paths:
        name, stat = path.relative_to(folder).as_posix(), path.stat()
        entry = known.get(name)
        if entry is None or (entry.size, entry.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
            try:
                entry = Cached(name, stat.st_size, stat.st_mtime_ns, *_skim(path))
                n_new += 1
            except RecordError as error:
                problems.append(str(error))
                told = "record of another schema version" if isinstance(error, OtherSchema) else "damaged record"
                excluded[told] += 1
                continue
        entries[name] = entry
    if cache and (n_new or len(known) != len(entries)):
        write_cache(folder, entries.values())
    with _uncollected():
        runs = []
        for entry in entries.values():
            header = orjson.loads(entry.header)
            if header["is_phase"]:
                excluded["instrumental phase"] += 1
            else:
                runs.append(_run(header, entry))
    return Loaded(tuple(runs), dict(excluded), tuple(problems))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold the garbage collector while books are made: it walks over all of them again and again, and all are kept."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _skim(path: Path) -> tuple[str, str, str, str]:
    """Return header, books, outcome and reason of a record, the first two as JSON."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: not readable: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        raise RecordError(f"{path}: no complete line")
    header: dict[str, Any] = {}
    books: list[Any] = []
    outcome, reason = "cancelled", "not finished yet"
    for number, raw in enumerate(whole.splitlines(), 1):
        found = _LINE_START.match(raw)
        if not found or int(found[2]) != number - 1 or found[1].decode() not in LINE_TYPES:
            raise RecordError(f"{path}, line {number}: not a line of a record, or out of order")
        if found[1] not in _PARSED:
            outcome, reason = "cancelled", "not finished yet"
            continue
        try:
            line = json.loads(raw)
            if number == 1:
                header = _header(path, line)
            elif found[1] == b"branched":
                books.append(line["opening"]["books"])
            elif found[1] == b"closed":
                books.append(line["state"])
            else:
                outcome, reason = line["outcome"], line["reason"]
        except RecordError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}, line {number}: not a line that a run can have: {error!r}") from error
    kept = [{name: state[name] for name in _BOOK_FIELDS if name in state} for state in books]
    return json.dumps(header), json.dumps(kept), outcome, reason


def _header(path: Path, line: Mapping[str, Any]) -> dict[str, Any]:
    if line["type"] != "run" or line["schema"] != SCHEMA:
        raise OtherSchema(f"{path}, line 1: schema version {line.get('schema')!r}; this version reads {SCHEMA}")
    kept = ("run_id", "cell_id", "baseline_cell_id", "is_phase", "environment", "identity", "config")
    return {name: line[name] for name in kept} | {
        name: line.get(name) for name in ("cluster_id", "experiment", "published")
    }


def cell_of(header: Mapping[str, Any]) -> Cell:
    """Return the cell that a run's header names.

    Args:
        header: the first line of a record.
    """
    treatment, parent = header["config"]["treatment"], header["config"]["parent_model"]
    identity = header["identity"]["treatment"]
    return Cell(
        cell_id=header["cell_id"],
        environment=header["environment"]["name"],
        model=header["config"]["model"]["name"],
        setting=treatment["setting"],
        system_goal=treatment["system_goal"],
        elicitation=treatment["elicitation"],
        n_instrumental=treatment["n_instrumental"],
        n_evaluation=treatment["n_evaluation"],
        history=treatment["history"],
        conditioned_on=parent["name"] if parent is not None else None,
        baseline_id=header["baseline_cell_id"],
        factors=tuple(sorted((name, _level(value)) for name, value in identity.items() if name not in _CELL_FIELDS)),
    )


def _level(value: Any) -> str:
    """Return a factor's level as one word."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def _run(header: Mapping[str, Any], entry: Cached) -> Run:
    config, cell = header["config"], cell_of(header)
    return Run(
        run_id=header["run_id"],
        cell=cell,
        seed=config["seed"],
        number=config["seed"],
        cluster_id=header["cluster_id"] or "",
        n_instrumental=cell.n_instrumental,
        books=tuple(QuarterLedger.from_json(state) for state in orjson.loads(entry.books)),
        outcome=entry.outcome,  # type: ignore[arg-type]
        outcome_reason=entry.reason,
        filed=_filed(cell, header["published"]),
        declared=_declared(header["experiment"]),
    )


def _filed(cell: Cell, published: Mapping[str, Any] | None) -> Cell | None:
    """Return the cell that the folder of an imported run names; None for runs of our own."""
    if published is None:
        return None
    name = f"{published['root']}/{published['folder']}"
    return replace(cell, cell_id=name, n_instrumental=published["n_instrumental_named"])


def _declared(notes: Any) -> Declared:
    """Return what the experiment file said in advance; notes of another form than ours say nothing."""
    if not isinstance(notes, Mapping):
        return Declared()
    margin = notes.get("margin")
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not margin > 0:
        margin = None
    return Declared(str(notes.get("name", "")), margin, str(notes.get("primary", "")))


def quarters_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Return one row a run and closed quarter: flows and holdings by cluster, cash and wealth in US dollars."""
    return pd.DataFrame(
        {
            "run_id": run.run_id,
            "cell": run.cell.cell_id,
            "seed": run.seed,
            "quarter": books.quarter,
            "active": books.active,
            "forced": books.forced,
            "income_usd": books.income_usd,
            "bought_low_usd": books.bought_usd.low,
            "bought_high_usd": books.bought_usd.high,
            "sold_low_usd": books.sold_usd.low,
            "sold_high_usd": books.sold_usd.high,
            "held_low_usd": books.held_usd("low"),
            "held_high_usd": books.held_usd("high"),
            "cash_usd": books.cash_usd,
            "wealth_usd": books.wealth_usd,
        }
        for run in runs
        for books in run.books
    )


def calls_table(folder: Path) -> pd.DataFrame:
    """Return one row a tool call of every run below a folder, in order, with what it moved.

    Raises:
        SourceError: if there is no such folder.
        RecordError: for a damaged record.
    """
    return pd.DataFrame(row for path in record_paths(folder) for row in _calls(path))


def _calls(path: Path) -> Iterator[dict[str, Any]]:
    record = read_record(path)
    header = record.header
    for line in record.of_type("turn"):
        for call in line.get("calls", ()):
            yield {
                "run_id": header["run_id"],
                "cell": header["cell_id"],
                "quarter": line["quarter"],
                "turn": line["turn"],
                "command_id": call["command_id"],
                "tool": call["tool"],
                "effect_class": call["effect_class"],
                "resource": call["resource"],
                "outcome": call["outcome"],
                "committed": call["committed"],
                "cluster": call["moved"].get("cluster"),
                "spent_usd": call["moved"].get("spent_usd"),
                "received_usd": call["moved"].get("received_usd"),
                "goal_version": call["goal_version"],
                "goal_version_seen": call["goal_version_seen"],
                "allowed": call["decision"]["allowed"],
                "reason": call["decision"]["reason"],
            }
