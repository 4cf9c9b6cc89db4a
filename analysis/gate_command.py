"""Owns `apex gate`: whether a candidate may be released, on the terminal and as JUnit XML."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from analysis.cell_table import cells_table
from analysis.conventions import convention_named
from analysis.gate import Check, Metric, Side, compare, run_checks, verdict_of
from analysis.gate_policy import read_policy
from analysis.graded import read_graded
from analysis.options import run_command
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from analysis.runs import SourceError
from analysis.sources import read_source

POLICY: Final = Path(__file__).resolve().parents[1] / "conf" / "gate" / "default.yaml"


def main(argv: Sequence[str]) -> int:
    """Decide on a release; exit code 0 release, 1 hold or review, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex gate",
        description="Hold the runs of a candidate against a policy, and against a baseline's runs: every check must "
        "pass, and none makes up for another.",
    )
    parser.add_argument("candidate", type=Path, metavar="CANDIDATE", help="folder of the candidate's run records")
    parser.add_argument("--against", type=Path, metavar="BASELINE", help="folder of the runs to compare with")
    parser.add_argument("--policy", type=Path, default=POLICY, metavar="FILE", help="default: conf/gate/default.yaml")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the checks as JUnit XML, too")
    return run_command(parser, argv, _gate)


def junit_xml(checks: Sequence[Check]) -> str:
    """Return the checks as a JUnit test suite: what failed and what is open are failures of two types."""
    n = {status: sum(check.status == status for check in checks) for status in ("fail", "review", "skipped")}
    counts = {"tests": len(checks), "failures": n["fail"] + n["review"], "errors": 0, "skipped": n["skipped"]}
    suite = ElementTree.Element(
        "testsuite", {"name": "apex gate"} | {name: str(found) for name, found in counts.items()}
    )
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "apex.gate", "name": check.name})
        head = _printable(check.told).partition("\n")[0]
        if check.status in ("fail", "review"):
            failure = ElementTree.SubElement(case, "failure", {"type": check.status, "message": head})
            failure.text = _printable(check.told)
        elif check.status == "skipped":
            ElementTree.SubElement(case, "skipped", {"message": head})
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _gate(options: argparse.Namespace) -> int:
    policy = read_policy(options.policy)
    candidate = _side(options.candidate)
    baseline = None if options.against is None else _side(options.against)
    checks = run_checks(policy, candidate, baseline)
    verdict = verdict_of(checks)
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"{check.status:<8}{check.name:<{width}}  " + check.told.replace("\n", "\n" + " " * (width + 10)))
    print("", *_comparison(compare(candidate, baseline)), "", f"verdict: {verdict}", sep="\n")
    if options.junit is not None:
        options.junit.parent.mkdir(parents=True, exist_ok=True)
        options.junit.write_text(junit_xml(checks), encoding="utf-8")
    return 0 if verdict == "release" else 1


def _side(folder: Path) -> Side:
    if not folder.is_dir():
        raise SourceError(f"{folder}: a folder of run records is expected")
    graded, source = read_graded([folder]), read_source(folder)
    runs = runs_table(pair_runs(source.runs), convention_named("paper"))
    return Side(graded, runs, cells_table(runs))


def _comparison(metrics: Sequence[Metric]) -> list[str]:
    lines = [f"{'':<28}{'candidate':>14}{'baseline':>14}"]
    return lines + [f"{one.name:<28}{_number(one.candidate):>14}{_number(one.baseline):>14}" for one in metrics]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.3f}"


def _printable(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(char for char in text if char in "\n\t" or (ord(char) >= 32 and not 0xD800 <= ord(char) <= 0xDFFF))
