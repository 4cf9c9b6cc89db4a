"""Labels of stated goals: how they find their runs, and how they go with behaviour."""

import pytest

from analysis.report.stated import read_labels, stated_answers
from analysis.runs import SourceError
from tests.report_builders import cells_from, figure_from, make_rows

STATED = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
GD = [0, 0.05, 0.10, 0.05, 0.30, 0.25, 0.20, 0.60, 0.55, 0.80]


@pytest.fixture
def write(tmp_path):
    def made(text):
        path = tmp_path / "labels.csv"
        path.write_text(text)
        return path

    return made


def test_labels_find_their_runs_by_id_and_by_name_or_number(write):
    cells = cells_from(make_rows([0.1, 0.2, 0.3], cell="c"))
    labels = read_labels(write("run_id,label\nc/1,system\nc/2,2\nc/3,Competing\n"), cells)
    assert (labels.of_run, labels.notes) == ({"c/1": 1, "c/2": 2, "c/3": 3}, ())


def test_unclear_label_takes_no_place_and_is_told(write):
    cells = cells_from(make_rows([0.1, 0.2], cell="c"))
    labels = read_labels(write("run_id,label\nc/1,unclear\nc/2,3\n"), cells)
    assert (labels.of_run, labels.unclear) == ({"c/2": 3}, {"c/1"})
    assert labels.notes == ("1 runs with an unclear label, left out",)
    with pytest.raises(SourceError, match="line 3: run 'c/1' has a label already"):
        read_labels(write("run_id,label\nc/1,unclear\nc/1,3\n"), cells)


def test_labels_find_their_runs_by_cell_and_position_in_order_of_run_numbers(write):
    cells = cells_from(make_rows([0.1, 0.2], cell="c", seeds=[7, 3], model="gpt-4o", conditioned_on="gpt-4o"))
    text = "model,setting,instrumental_steps,position,label\n4o,goal_switching,2,1,3\n4o,goal_switching,2,2,1\n"
    assert read_labels(write(text), cells).of_run == {"c/3": 3, "c/7": 1}
    by_seed = "model,setting,n_instrumental,seed,label\ngpt-4o,goal_switching,2,7,2\n"
    assert read_labels(write(by_seed), cells).of_run == {"c/7": 2}


def test_labels_without_a_run_are_counted_by_reason(write):
    rows = make_rows([0.1, 0.2], cell="c"), make_rows([0.1], cell="p", system_goal="profit")
    text = "run_id,model,setting,n_instrumental,position,system_goal,label\n"
    text += "gone,,,,,,1\n,m,goal_switching,2,9,emissions,1\n,m,goal_switching,2,1,,1\n,m,combined,2,1,,1\n"
    labels = read_labels(write(text), cells_from(*rows))
    assert labels.of_run == {}
    assert labels.notes == (
        "1 labels without a run: no run of this id",
        "1 labels without a run: position beyond the cell's runs",
        "1 labels without a run: 2 cells match m, goal_switching, phase of 2",
        "1 labels without a run: 0 cells match m, combined, phase of 2",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run_id,label\nc/1,4\n", "line 2: label '4' is not known: 1 or system"),
        ("run_id,label\nc/1,1\nc/1,1\n", "line 3: run 'c/1' has a label already"),
        ("model,label\nm,1\n", "line 2: it names no run; a row holds run_id and label, or"),
        ("model,setting,n_instrumental,seed,label\nm,goal_switching,two,1,1\n", "whole numbers, not '1' and 'two'"),
    ],
)
def test_what_is_no_label_is_named_with_its_line(write, text, message):
    with pytest.raises(SourceError, match=message):
        read_labels(write(text), cells_from(make_rows([0.1], cell="c")))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SourceError, match="nowhere"):
        read_labels(tmp_path / "nowhere.csv", [])


def test_stated_goals_are_held_against_behaviour_by_kendall_and_somers(write):
    table = make_rows(GD, cell="c")
    text = "run_id,label\n" + "".join(f"c/{place},{label}\n" for place, label in enumerate(STATED, 1))
    answer = stated_answers(figure_from(table), read_labels(write(text), cells_from(table)))
    assert answer is not None
    one = answer.comparisons[0]
    assert (one.test.statistic, one.test.p) == (pytest.approx(0.682323, abs=1e-6), pytest.approx(22 / 4200))
    assert one.estimate.value == pytest.approx(0.787879, abs=1e-6)
    assert (one.score, one.scope, one.test.exact) == ("actions", "runs", True)


def test_without_a_labelled_run_nothing_is_asked(write):
    table = make_rows(GD, cell="c")
    assert stated_answers(figure_from(table), read_labels(write("run_id,label\n"), cells_from(table))) is None


def test_labels_over_shared_trajectories_and_lengths_say_what_they_take_for_granted(write):
    tables = [make_rows([0.1, 0.2, 0.3, 0.5], clusters=list("aabb"), n_instrumental=i, cell=f"c{i}") for i in (2, 4)]
    text = "run_id,label\n" + "".join(f"c{i}/{seed},{seed % 3 + 1}\n" for i in (2, 4) for seed in (1, 2, 3))
    answer = stated_answers(figure_from(*tables), read_labels(write(text), cells_from(*tables)))
    assert answer is not None
    note = "takes runs of one trajectory as independent; over all phase lengths together, with which both may rise"
    assert answer.comparisons[0].note == note
    assert "2 of 8 pairs undefined, left out" in answer.comparisons[0].test.reason
