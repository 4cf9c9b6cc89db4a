"""Whether the record that a run branched from is on disk, and what the audit says where it is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.audit.command import audit_paths
from analysis.audit.parents import ABSENT, CHANGED, UNNAMED, missing_parent
from analysis.audit.run_audit import RunAudit
from experiments.record import Record
from experiments.treatment import Treatment
from tests.path import edit_line, plan, record_of, sweep_runs

SWITCH = Treatment("goal_switching", n_instrumental=2, n_evaluation=3)


def branched(root: Path) -> tuple[Record, Path]:
    """The record of a run that went on from a phase and never switched back, and the phase's place."""
    runs = plan("unnoticing", SWITCH, seeds=[1])
    sweep_runs(root, runs)
    child = next(record for run in runs if (record := record_of(root, run)).branched is not None)
    assert child.branched is not None
    return child, root / f"{child.branched['parent']}.jsonl"


def audit_of(root: Path, child: Record) -> RunAudit:
    return next(one for one in audit_paths([root]).audits if one.run_id == child.header["run_id"])


def _moved(phase: Path) -> None:
    phase.rename(phase.with_suffix(".gone"))


def _edited(phase: Path) -> None:
    edit_line(phase, 2, lambda line: line.update(text="another briefing"))


@pytest.mark.parametrize(("change", "missing"), [(_moved, ABSENT), (_edited, CHANGED)])
def test_parent_that_is_gone_or_changed_leaves_the_instrumentation_incomplete(
    tmp_path: Path, change: Callable[[Path], None], missing: str
) -> None:
    child, phase = branched(tmp_path)
    whole = audit_of(tmp_path, child)
    assert whole.status == "diverged" and not whole.instrumentation_incomplete
    change(phase)
    found = audit_of(tmp_path, child)
    assert missing_parent(child) == missing
    assert found.instrumentation_incomplete and found.origin is not None and found.origin.missing == (missing,)


def test_parent_that_went_on_for_longer_is_still_what_it_was_at_the_branch(tmp_path: Path) -> None:
    runs = plan("unnoticing", SWITCH, seeds=[1])
    sweep_runs(tmp_path, runs)
    sweep_runs(tmp_path, plan("unnoticing", Treatment("goal_switching", n_instrumental=4, n_evaluation=3), seeds=[1]))
    children = [record for run in runs if (record := record_of(tmp_path, run)).branched is not None]
    assert children and all(missing_parent(child) is None for child in children)


def test_borrowed_parent_is_found_in_another_folder_that_is_named(tmp_path: Path) -> None:
    child, phase = branched(tmp_path / "own")
    elsewhere = tmp_path / "lent" / phase.relative_to(tmp_path / "own")
    elsewhere.parent.mkdir(parents=True)
    phase.rename(elsewhere)
    assert missing_parent(child) == ABSENT
    assert missing_parent(child, [tmp_path / "lent"]) is None


def test_run_of_its_own_lacks_no_parent_and_an_unnamed_one_cannot_be_there(tmp_path: Path) -> None:
    child, _ = branched(tmp_path)
    lines = tuple(dict(line) | ({"parent": None} if line["type"] == "branched" else {}) for line in child.lines)
    assert missing_parent(Record(child.path, lines)) == UNNAMED
    assert missing_parent(Record(child.path, (child.lines[0], *child.lines[2:]))) is None
