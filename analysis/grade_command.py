"""Owns `apex grade`: the grade of every run of some folders, as text, JSON Lines or CSV."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from analysis.claim_rules import claims_in
from analysis.claim_table import CLAIM_COLUMNS, claim_rows
from analysis.claims import Proposer, audit_claims
from analysis.grade import QUADRANTS, RunGrade, matrix
from analysis.graded import Graded, is_graded, read_graded
from analysis.grader_model import QUESTIONS
from analysis.grader_run import model_from_file, propose_for
from analysis.handoffs import check_quarters
from analysis.judge_run import judge_runs, judged_table, read_labels, told_calibration
from analysis.load import record_paths
from analysis.options import run_command
from analysis.record_form import reading
from analysis.runs import SourceError
from analysis.workflow import BadPattern, Pattern, check_pattern
from experiments.errors import RecordError
from experiments.record import Record, read_record


def main(argv: Sequence[str]) -> int:
    """Grade runs; exit code 0 none broke a hard rule, 1 one did, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex grade",
        description="Grade runs by outcome and trajectory: hard violations with their evidence, recovery from faults, "
        "work against the cell's median, and what stays uncertain.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="records, or folders of them")
    parser.add_argument("--format", choices=("text", "jsonl", "csv"), default="text", help="default: text")
    parser.add_argument("--claims", action="store_true", help="list claims and undisclosed effects instead, as CSV")
    parser.add_argument(
        "--proposer",
        type=Path,
        metavar="FILE",
        help="model that proposes the claims, such as conf/model/gpt_4o_mini.yaml",
    )
    parser.add_argument("--judge", type=Path, metavar="FILE", help="model that answers --question on every run, as CSV")
    parser.add_argument("--question", choices=QUESTIONS, default="necessary", help="default: necessary")
    parser.add_argument("--labels", type=Path, metavar="CSV", help="people's answers: run_id, question, answer")
    parser.add_argument(
        "--workflow", type=Path, metavar="FILE", help="YAML pattern that the handoffs of every closed quarter must fit"
    )
    return run_command(parser, argv, _grade)


def _grade(options: argparse.Namespace) -> int:
    workflow = None if options.workflow is None else _read_workflow(options.workflow)
    if options.claims:
        return _list_claims(options.paths, options.proposer)
    if options.proposer is not None:
        raise SourceError("--proposer goes with --claims: grades are by rules alone")
    graded = read_graded(options.paths)
    grades = graded.grades
    if options.judge is not None:
        return _judge(options, graded)
    if options.format == "jsonl":
        for one in grades:
            print(json.dumps(one.to_json(), allow_nan=False))
    elif options.format == "csv":
        _table(grades).to_csv(sys.stdout, index=False)
    else:
        print(*_report(graded), sep="\n")
    print(*graded.problems, sep="\n", end="\n" if graded.problems else "", file=sys.stderr)
    if graded.problems:
        return 2
    departures = [] if workflow is None else [*_departures(options.paths, workflow)]
    print(*departures, sep="\n", end="\n" if departures else "", file=sys.stderr)
    return 1 if departures or not all(one.safe for one in grades) else 0


def _report(graded: Graded) -> Iterator[str]:
    grades = graded.grades
    yield matrix(grades).to_string(index=False)
    for one in grades:
        if one.safe and not one.uncertain:
            continue
        yield f"\n{one.run_id}: {one.quadrant.replace('_', ' ')}, outcome {one.outcome}"
        for violation in one.hard_violations:
            yield f"  {violation.rule} {' '.join(violation.event_ids)}: {violation.evidence}"
        yield from (f"  uncertain: {check}" for check in one.uncertain)
    unsafe = sum(not one.safe for one in grades)
    told = ", ".join(f"{sum(one.quadrant == name for one in grades)} {name.replace('_', ' ')}" for name in QUADRANTS)
    yield f"\n{len(grades)} runs, {graded.n_phases} phases passed over: {told}; {unsafe} broke a hard rule"


def _table(grades: Sequence[RunGrade]) -> pd.DataFrame:
    def flat(one: RunGrade) -> dict[str, Any]:
        row = one.to_json()
        broken = row["hard_violations"]
        return row | {
            "hard_violations": " ".join(f"{hit['rule']}:{'+'.join(hit['event_ids'])}" for hit in broken),
            "n_hard_violations": len(broken),
            "uncertain": "; ".join(row["uncertain"]),
        }

    return pd.DataFrame([flat(one) for one in grades])


def _list_claims(paths: Sequence[Path], proposer: Path | None) -> int:
    records = [*_records(paths)]
    propose: Proposer = claims_in
    if proposer is not None:
        propose = proposals = propose_for(model_from_file(proposer), records)
        print(f"{proposals.n_rejected} proposals are not borne out by the text", file=sys.stderr)
    rows = list[dict[str, Any]]()
    for record in records:
        with reading(record.path):
            rows += claim_rows(audit_claims(record, propose))
    pd.DataFrame(rows, columns=list(CLAIM_COLUMNS)).to_csv(sys.stdout, index=False)
    return 1 if any(row["standing"] in ("phantom", "misstated", "undisclosed") for row in rows) else 0


def _judge(options: argparse.Namespace, graded: Graded) -> int:
    """Judge what was graded; the exit code is that of the hard checks, which a judge cannot change."""
    if graded.problems:
        raise SourceError("; ".join(graded.problems))
    labels = None if options.labels is None else read_labels(options.labels)
    ids = {one.run_id for one in graded.grades}
    records = [record for record in _records(options.paths) if record.header["run_id"] in ids]
    judged = judge_runs(model_from_file(options.judge), records, options.question, labels)
    judged_table(graded.grades, judged).to_csv(sys.stdout, index=False)
    print(told_calibration(judged), file=sys.stderr)
    return 0 if all(one.safe for one in graded.grades) else 1


def _departures(paths: Sequence[Path], workflow: Pattern) -> Iterator[str]:
    for record in _records(paths):
        with reading(record.path):
            found = check_quarters(record, workflow)
        for quarter, findings in found.items():
            for finding in findings:
                yield f"{record.header['run_id']}, quarter {quarter}: {finding.code}: {finding.message}"


def _records(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield every record of a run, phases left out.

    Raises:
        SourceError: naming the first one that is none.
    """
    for path in paths:
        for file in [path] if path.is_file() else record_paths(path):
            try:
                record = read_record(file)
            except RecordError as error:
                raise SourceError(str(error)) from error
            with reading(file):
                graded = is_graded(record)
            if graded:
                yield record


def _read_workflow(path: Path) -> Pattern:
    try:
        pattern = yaml.safe_load(path.read_text(encoding="utf-8"))
        check_pattern(pattern)
    except (UnicodeDecodeError, yaml.YAMLError, BadPattern) as error:
        raise SourceError(f"{path}: {error}") from error
    return pattern
