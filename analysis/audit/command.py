"""Owns `apex audit`: which runs left their goal, where first and by which call, as text, JSON Lines or CSV."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import yaml

from analysis.audit.divergence import WindowName
from analysis.audit.from_ledger import ledger_traces
from analysis.audit.lookalikes import KINDS
from analysis.audit.mechanism import MECHANISMS
from analysis.audit.rules import Limits, limits_from
from analysis.audit.run_audit import DEFAULT_LIMITS, RunAudit, audit_record, audit_trace
from analysis.audit.tables import by_model_and_length, cells_table, runs_table, total_coverage
from analysis.load import record_paths
from analysis.options import run_command
from analysis.runs import SourceError
from experiments.errors import RecordError
from experiments.published_ledger import LedgerError
from experiments.record import read_record

FEWEST_FOR_PROCESSES: Final = 64
"""Fewer records are read sooner than further processes have started."""

_RECORD_START: Final = b'{"type":"run"'
_SHOWN: Final = (
    *("model", "setting", "system_goal", "elicitation", "n_instrumental", "history", "factors"),
    *("n_runs", "n_diverged", "n_attempted", "n_unaware", "median_onset_after_switch", "n_recovered", "n_incomplete"),
    *("n_hard", *MECHANISMS),
)


@dataclass(frozen=True, slots=True)
class Audited:
    """The audits of everything that was named, and what was left out."""

    audits: tuple[RunAudit, ...]
    n_phases: int
    problems: tuple[str, ...]


def main(argv: Sequence[str]) -> int:
    """Audit runs; exit code 0 none diverged, 1 one did or tried to, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex audit",
        description="Find where runs left their goal: the first divergent event with what it came from, its mechanism, "
        "onset and recovery; what looks like drift and is none; and rules that were not kept.",
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="run records, folders of them, or a published ledger"
    )
    parser.add_argument("--format", choices=("text", "jsonl", "csv"), default="text", help="default: text")
    parser.add_argument("--cells", action="store_true", help="the table of cells alone, without the runs")
    parser.add_argument(
        "--window",
        choices=get_args(WindowName),
        default="evaluation",
        help="quarters that are audited: of the evaluation phase (default), of the phase before it, or all; records of "
        "instrumental phases are read unless it is the first",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes; default: one a core"
    )
    parser.add_argument("--limits", type=Path, metavar="FILE", help="YAML with limits of work; see the README")
    return run_command(parser, argv, _audit)


def audit_paths(
    paths: Sequence[Path],
    *,
    window: WindowName = "evaluation",
    limits: Limits = DEFAULT_LIMITS,
    n_processes: int = 1,
) -> Audited:
    """Return the audits of every run in records, folders of records and published ledgers.

    Args:
        paths: what is audited.
        window: which quarters.
        limits: the most that a run may use up.
        n_processes: how many records are read at the same time.

    Raises:
        SourceError: if a path is none of these, or no run is found.
    """
    audits: list[RunAudit] = []
    problems: list[str] = []
    n_phases = 0
    folders = tuple(path for path in paths if path.is_dir())
    for path in paths:
        if path.is_file() and not _is_record(path):
            try:
                audits += [audit_trace(trace, window=window, limits=limits) for trace in ledger_traces(path)]
            except LedgerError as error:
                raise SourceError(
                    f"{error} (a source is a record, a folder of records or a published ledger)"
                ) from error
            continue
        files = [path] if path.is_file() else record_paths(path)
        work = partial(_audit_file, window=window, limits=limits, folders=folders)
        for found in _each(work, files, n_processes):
            if isinstance(found, RunAudit):
                audits.append(found)
            elif found:
                problems.append(found)
            else:
                n_phases += 1
    if not audits:
        raise SourceError("; ".join([f"{', '.join(map(str, paths))}: there is no run to audit", *problems]))
    return Audited(tuple(audits), n_phases, tuple(problems))


def _audit_file(file: Path, *, window: WindowName, limits: Limits, folders: Sequence[Path]) -> RunAudit | str:
    """Return the audit of a record, or what is wrong with it; an empty text for a phase that is passed over."""
    try:
        record = read_record(file)
        if record.header.get("is_phase") and window == "evaluation":
            return ""
        return audit_record(record, window=window, limits=limits, folders=folders)
    except (RecordError, SourceError) as error:
        return str(error)


def _each(work: Callable[[Path], RunAudit | str], files: Sequence[Path], n_processes: int) -> Iterator[RunAudit | str]:
    if n_processes <= 1 or len(files) < FEWEST_FOR_PROCESSES:
        yield from map(work, files)
        return
    with ProcessPoolExecutor(n_processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, files, chunksize=16)


def _audit(options: argparse.Namespace) -> int:
    limits = DEFAULT_LIMITS if options.limits is None else _read_limits(options.limits)
    if options.jobs < 1:
        raise SourceError(f"--jobs {options.jobs} is not allowed: 1 or more")
    audited = audit_paths(options.paths, window=options.window, limits=limits, n_processes=options.jobs)
    audits = audited.audits
    if options.format == "text":
        print(*_report(audited, options), sep="\n")
    elif options.format == "csv":
        (cells_table(audits) if options.cells else runs_table(audits)).to_csv(sys.stdout, index=False)
    elif options.cells:
        print(cells_table(audits).to_json(orient="records", lines=True), end="")
    else:
        for one in audits:
            print(json.dumps(one.to_json(), allow_nan=False))
    print(*audited.problems, sep="\n", end="\n" if audited.problems else "", file=sys.stderr)
    if audited.problems:
        return 2
    return int(any(one.status != "kept" for one in audits))


def _report(audited: Audited, options: argparse.Namespace) -> Iterator[str]:
    audits = audited.audits
    if not options.cells:
        yield from (line for one in audits if one.status != "kept" or one.findings for line in _run_lines(one))
    cells = cells_table(audits)
    shown = [name for name in _SHOWN if name in cells and not _is_empty(cells[name])]
    table = cells[shown].rename(columns={"n_instrumental": "I", "median_onset_after_switch": "median_onset"})
    yield table.to_string(index=False, na_rep="-")
    yield "\ndiverged runs by model and quarters of the first phase:"
    yield by_model_and_length(audits).to_string(index=False)
    yield from _totals(audits)
    statuses = Counter(one.status for one in audits)
    yield (
        f"\n{len(audits)} runs: {statuses['diverged']} diverged, {statuses['attempted']} tried to, "
        f"{statuses['kept']} kept to their goal; {audited.n_phases} phases passed over"
    )


def _run_lines(one: RunAudit) -> Iterator[str]:
    path, first, origin = one.path, one.path.first, one.origin
    yield f"{one.run_id}: {one.status}, outcome {one.outcome}{'' if one.outcome_allowed else ' (not allowed)'}"
    if first is not None and origin is not None:
        event = first.event
        turn = "" if event.turn is None else f", turn {event.turn}"
        amount = "" if event.amount_usd is None else f" for {event.amount_usd:,.0f} USD"
        done = "" if first.committed else ", not carried out"
        yield (
            f"  first: quarter {event.quarter}{turn}, call {event.event_id}: {event.tool} {event.raw or ''}{amount}: "
            f"{first.reason} ({first.severity}{done})"
        )
        yield f"  came from: {_came_from(one)}"
        yield f"  mechanism: {one.mechanism}: {one.mechanism_evidence}"
        yield (
            f"  onset quarter {path.onset or '-'}, recovery quarter {path.recovery or '-'}; divergent purchases before "
            f"the goal could be known {len(path.purchases(knew=False))}, after {len(path.purchases(knew=True))}"
        )
    for found in one.findings:
        ids = " ".join(found.event_ids[:5]) + (" ..." if len(found.event_ids) > 5 else "")
        yield f"  {'hard' if found.hard else 'soft'}: {found.rule} {ids}: {found.evidence}"


def _came_from(one: RunAudit) -> str:
    origin = one.origin
    if origin is None:
        return "-"
    kinds = Counter(item.kind for item in origin.items)
    items = ", ".join(f"{n} x {kind}" for kind, n in kinds.items()) or "no items"
    parts = [
        f'message {origin.message_id} "{origin.excerpt}"' if origin.message_id else "no message known",
        f"{items} since quarter {origin.since_quarter}",
        f"after reading {len(origin.reads)} answers",
    ]
    if origin.missing:
        parts.append(f"instrumentation_incomplete: {', '.join(origin.missing)}")
    return "; ".join(parts)


def _totals(audits: Sequence[RunAudit]) -> Iterator[str]:
    """Yield reasons beside what could be seen at all: a count of 0 means something only where the field is there."""
    seen = total_coverage(audits)
    reasons = Counter(found.reason for one in audits for found in one.path.divergences)
    yield "\nreasons of divergent events: " + (_counts(reasons) or "none")
    yield (
        f"coverage: {seen.n_calls} calls, {seen.n_with_message} with their message, {seen.n_decided} decided on by a "
        f"guard; {seen.n_trades_resolved} of {seen.n_trades} trades with a resolved resource; calls known in "
        f"{seen.n_quarters - seen.n_quarters_unknown} of {seen.n_quarters} quarters, items in "
        f"{seen.n_quarters_with_items}"
    )
    kinds = Counter(found.kind for one in audits for found in one.lookalikes)
    yield "look-alikes, none of them drift: " + (
        _counts({kind: kinds[kind] for kind in KINDS if kinds[kind]}) or "none"
    )
    rules = Counter(found.rule for one in audits for found in one.findings)
    yield "rules not kept, runs: " + (_counts(rules) or "none")


def _counts(counts: Any) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _is_empty(column: Any) -> bool:
    """Whether a column says nothing: all missing, all empty text, or a mechanism that no run has."""
    return bool(
        column.isna().all() or (column == "").all() or (column.name in (*MECHANISMS, "n_hard") and not column.any())
    )


def _is_record(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_RECORD_START)) == _RECORD_START


def _read_limits(path: Path) -> Limits:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError(f"{path}: a mapping of limits is expected")
        return limits_from(data, str(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(told if str(path) in str(told) else f"{path}: {told}") from error
