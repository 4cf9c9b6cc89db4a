"""`apex stats`: from sources to reports and files, and every kind of bad input named instead of a crash."""

import pandas as pd
import pytest

from analysis.cli import main
from experiments.treatment import Treatment
from tests.ledger_file import ledger_lines, write_ledger
from tests.path import edit_line, plan, sweep_runs

SWITCH = [Treatment("goal_switching", n_instrumental=length, n_evaluation=4) for length in (2, 4)]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Two lengths of the inertial agent: 6 seeds from 3 phases."""
    root = tmp_path_factory.mktemp("records")
    notes = {"name": "study", "margin": 0.2, "primary": "drift"}
    sweep_runs(root, plan("inertial", *SWITCH, seeds=range(1, 7), n_phases=3), notes=notes)
    return root


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return write_ledger(tmp_path_factory.mktemp("ledger") / "ledger.jsonl", ledger_lines(4))


def shown_by(capsys, *words):
    code = main(["stats", *map(str, words)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, " ".join(shown.out.split()), shown.err


def test_a_folder_of_records_is_reported_on_with_what_its_experiment_declared(records, capsys):
    code, out, _ = shown_by(capsys, records)
    assert code == 0
    assert "left out: 3 x instrumental phase" in out
    assert "Experiment: study." in out
    assert "Primary analysis: is there drift (declared in the experiment file)." in out
    assert "Student's t of cluster means" in out
    assert "3 trajectories" in out
    assert "the margin of 0.2, set in advance" in out
    assert "Brunner-Munzel" not in out


def test_files_are_a_report_in_two_forms_and_every_number(records, tmp_path, capsys):
    code, out, _ = shown_by(capsys, records, "--out", tmp_path / "new", "--sensitivity")
    assert code == 0
    assert "Brunner-Munzel" in out
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    tables = [f"stats-{name}.csv" for name in ("cells", "failures", "models", "sensitivity", "tests")]
    assert names == [*tables, "stats.md", "stats.tex"]
    tests = pd.read_csv(tmp_path / "new" / "stats-tests.csv")
    assert set(tests["question"]) == {"drift", "trend"}
    assert (tests["estimate"] > 0)[tests["question"] == "drift"].all()
    assert r"\toprule" in (tmp_path / "new" / "stats.tex").read_text()


def test_the_same_source_gives_the_same_files(records, tmp_path, capsys):
    for name in ("a", "b"):
        shown_by(capsys, records, "--out", tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_published_switching_is_compared_as_groups_and_speaks_of_one_trajectory(ledger, capsys):
    code, out, _ = shown_by(capsys, ledger)
    assert code == 0
    assert "two-sample permutation of the mean, exact, one-sided" in out
    assert "One trajectory: the runs of 1 cells" in out
    assert "Pairs without common quarters: in 1 cells" in out
    assert "no margin was set in advance" in out


def test_labels_add_the_question_of_the_stated_goal(ledger, tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    rows = "".join(f"4o,goal_switching,2,{place},{place % 3 + 1}\n" for place in range(1, 6))
    labels.write_text(f"model,setting,instrumental_steps,position,label\n{rows}")
    code, out, _ = shown_by(capsys, ledger, "--labels", labels)
    assert code == 0
    assert "Secondary: stated goal against behaviour?" in out
    assert "1 labels without a run: position beyond the cell's runs" in out


# bad input: named and counted, never a crash, never dropped without a word


def test_one_run_is_reported_on_without_interval(tmp_path, capsys):
    lone = write_ledger(tmp_path / "one.jsonl", ledger_lines(1))
    code, out, _ = shown_by(capsys, lone, "--sensitivity", "--out", tmp_path / "out")
    assert code == 0
    cells = pd.read_csv(tmp_path / "out" / "stats-cells.csv")
    assert (cells["gd_n"] == 1).all()
    assert cells["gd_low"].isna().all()
    assert set(cells["gd_reason"]) == {"one run, at least 2 needed"}


def test_no_pairs_at_all_are_named_and_every_test_counted_as_not_made(tmp_path, capsys):
    lines = ledger_lines(3)
    apart = [line | {"run": line["run"] + 100 * (line["setting"] == "baseline")} for line in lines]
    code, out, _ = shown_by(capsys, write_ledger(tmp_path / "apart.jsonl", apart), "--sensitivity")
    assert code == 0
    assert "2 could not be made, counted in the correction" in out
    assert "Unpaired runs: 3 runs have no baseline run" in out


def test_scores_that_are_all_undefined_are_counted(tmp_path, capsys):
    sweep_runs(tmp_path, plan("idle", Treatment("adversarial_pressure", n_evaluation=3), seeds=[1, 2]))
    code, out, _ = shown_by(capsys, tmp_path, "--sensitivity")
    assert code == 0
    assert "GD_inaction - (signed -)" in out
    assert "is there drift: 2 tests, Holm; 1 could not be made, counted in the correction" in out
    assert "Undefined scores: GD_inaction of 2 runs, in no mean or test: nothing held at the end of quarter 3" in out


def test_runs_of_unknown_trajectory_are_counted_and_left_out(records, tmp_path, capsys):
    copied = copy_of(records, tmp_path)
    for path in sorted(copied.glob("*goal_switching*I2*/seed-001.jsonl")):
        edit_line(path, 1, lambda line: line.update(cluster_id=None))
    code, out, _ = shown_by(capsys, copied)
    assert code == 0
    assert "Unknown trajectories: 1 runs do not say which one they come from" in out
    assert "1 runs of unknown trajectory left out" in out


def test_records_of_another_schema_version_are_counted_and_named(records, tmp_path, capsys):
    copied = copy_of(records, tmp_path)
    path = next(copied.glob("*goal_switching*I2*/seed-002.jsonl"))
    path.write_text(path.read_text().replace('"schema":1', '"schema":2', 1))
    code, out, _ = shown_by(capsys, copied)
    assert code == 0
    assert "left out: 1 x record of another schema version" in out
    assert "schema version 2; this version reads 1" in out
    for path in copied.rglob("*.jsonl"):
        path.write_text(path.read_text().replace('"schema":1', '"schema":2', 1))
    code, _, err = shown_by(capsys, copied)
    assert code == 2
    assert "left out: " in err
    assert "record of another schema version" in err


def test_seeds_on_one_side_only_are_named(records, tmp_path, capsys):
    copied = copy_of(records, tmp_path)
    sweep_runs(copied, plan("adherent", *SWITCH, seeds=[1, 2, 3, 9], n_phases=3))
    code, out, _ = shown_by(capsys, copied)
    assert code == 0
    assert "seeds in the first cell alone (1): 9" in out
    assert "seeds in the second cell alone (3): 4, 5, 6" in out


def test_margins_that_differ_are_counted_and_nothing_is_claimed(records, tmp_path, capsys):
    copied = copy_of(records, tmp_path)
    path = next(copied.glob("*goal_switching*I2*/seed-002.jsonl"))
    edit_line(path, 1, lambda line: line["experiment"].update(margin=0.3))
    shown_by(capsys, copied, "--out", tmp_path / "out")
    cells = pd.read_csv(tmp_path / "out" / "stats-cells.csv")
    assert "runs declare different margins: 0.2 x 5, 0.3 x 1" in set(cells["margin_reason"])


def test_a_source_without_anything_to_report_on_is_answered_with_no(tmp_path, capsys):
    sweep_runs(tmp_path, plan("idle", Treatment(n_evaluation=2), seeds=[1]))
    code, out, _ = shown_by(capsys, tmp_path)
    assert code == 1
    assert "nothing to report on" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere"),
        ([], "SOURCE"),
        (["x", "--convention", "mine"], "mine"),
        (["{ledger}", "--labels", "nowhere.csv"], "nowhere.csv: labels cannot be read"),
        (["{ledger}", "--out", "{ledger}"], "ledger.jsonl"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, message, ledger, capsys):
    code, _, err = shown_by(capsys, *(word.format(ledger=ledger) for word in words))
    assert code == 2
    assert message in err


def test_help_needs_no_statistics(capsys):
    code, out, _ = shown_by(capsys, "--help")
    assert code == 0
    assert "--sensitivity" in out


def copy_of(records, tmp_path):
    """A copy of the records that can be spoiled."""
    copied = tmp_path / "copy"
    for path in records.rglob("*.jsonl"):
        there = copied / path.relative_to(records)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(path.read_text())
    return copied
