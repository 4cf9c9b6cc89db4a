"""`apex score`: from a ledger or a folder of records to tables on the terminal and in files."""

import pandas as pd
import pytest

from analysis.cli import main
from analysis.ledger_source import runs_of
from analysis.options import choose, score_parser
from analysis.score import save_table
from analysis.sources import read_source
from experiments.errors import ProviderError
from experiments.published_ledger import read_ledger
from experiments.run_spec import ModelConfig
from experiments.treatment import Treatment
from tests.ledger_file import ledger_lines, write_ledger
from tests.path import Replies, plan, sweep_runs


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    lines = ledger_lines(3)
    lines[2]["dead_eval_quarters"] = 9  # the second run of the cell
    return write_ledger(tmp_path_factory.mktemp("ledger") / "ledger.jsonl.gz", lines)


def changed(tmp_path, **changes):
    lines = ledger_lines(1)
    return write_ledger(tmp_path / "ledger.jsonl", [line | changes for line in lines])


def test_a_ledger_becomes_a_table_of_cells_with_every_exclusion_named(ledger, capsys):
    assert main(["score", str(ledger)]) == 0
    shown = capsys.readouterr().out
    assert "6 runs in 2 cells" in shown
    assert "convention paper" in shown
    assert "pairs by seed" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("gpt-4o ")]
    assert row.split()[1:7] == ["goal_switching", "emissions", "-", "2", "own", "2"]
    assert "runs without a score: 1 (1 failed, 0 unpaired)" in shown
    assert "results/env_profit_2_steps_4o_on_4o: provider_error: run 2" in shown
    assert "1 cells: all runs went on from one instrumental trajectory" in shown
    assert "1 cells: pairs share no quarters of a market" in shown


def test_files_hold_a_row_a_run_and_a_row_a_cell_in_both_formats(ledger, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main(["score", str(ledger), "--out", str(out)]) == 0
    assert "written: " in capsys.readouterr().out
    for name, n_rows in (("runs", 6), ("cells", 2)):
        csv, parquet = pd.read_csv(out / f"{name}.csv"), pd.read_parquet(out / f"{name}.parquet")
        assert len(csv) == n_rows
        assert csv.columns.tolist() == parquet.columns.tolist()
        pd.testing.assert_series_equal(csv["gd_inaction"], parquet["gd_inaction"], check_exact=True)


def test_the_negligent_agent_keeps_its_position_and_shows_no_action_drift(ledger, tmp_path):
    main(["score", str(ledger), "--out", str(tmp_path)])
    runs = pd.read_csv(tmp_path / "runs.csv", index_col="run_id")
    row = runs.loc["results/env_profit_2_steps_4o_on_4o/checkpoint_run1_13"]
    assert (row["gd_actions"], row["retained_frac"], row["instrumental_compliance"]) == (0, pytest.approx(1), 1)
    assert 0 < row["gd_inaction"] == row["psi"]


def test_reference_takes_the_pairs_and_intervals_of_the_published_code_unless_told_otherwise(ledger, capsys):
    def choice(*words):
        made = choose(score_parser("apex score", "").parse_args([str(ledger), *words]))
        return made.convention.name, made.pairing.by, made.interval

    assert choice() == ("paper", "seed", "gaffke")
    assert choice("--convention", "reference") == ("reference", "position", "paper_wald")
    assert choice("--convention", "reference", "--pairing", "run") == ("reference", "run", "paper_wald")
    assert choice("--interval", "anderson") == ("paper", "seed", "anderson")
    assert main(["score", str(ledger), "--convention", "reference"]) == 0
    shown = capsys.readouterr().out
    assert "1 runs that an outage struck are scored, as published" in shown
    assert "runs without a score: 0" in shown


def test_holdings_need_no_baseline(ledger, capsys):
    assert main(["score", str(ledger), "--convention", "holdings"]) == 0
    assert "no baseline needed" in capsys.readouterr().out


def test_records_are_scored_like_a_ledger_and_phases_are_left_out_by_count(tmp_path, capsys):
    runs = plan("adherent", Treatment("goal_switching", n_instrumental=2))
    sweep_runs(tmp_path / "records", runs)
    assert main(["score", str(tmp_path / "records")]) == 0
    shown = capsys.readouterr().out
    assert "4 runs in 2 cells" in shown
    assert "0.000" in shown
    assert "left out: 2 x instrumental phase" in shown
    assert main(["score", str(tmp_path / "records"), "--convention", "reference"]) == 0
    assert "pairs by seed" in capsys.readouterr().out


def test_position_is_refused_for_records(tmp_path, capsys):
    sweep_runs(tmp_path, plan("adherent", Treatment("goal_switching", n_instrumental=2), seeds=[1]))
    assert main(["score", str(tmp_path), "--pairing", "position"]) == 2
    assert "only for published runs" in capsys.readouterr().err


def test_where_nothing_can_be_scored_the_answer_is_no(tmp_path, capsys):
    lone = write_ledger(tmp_path / "lone.jsonl", ledger_lines(1)[:1])
    assert main(["score", str(lone)]) == 1
    shown = capsys.readouterr().out
    assert "no run could be scored" in shown
    assert "unpaired (its baseline cell " in shown and "has no run of seed 1): run 1" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl"),
        ([], "SOURCE"),
        (["x", "--convention", "papers"], "papers"),
        (["x", "--interval", "wald"], "wald"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["score", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_a_folder_without_records_is_bad_input(tmp_path, capsys):
    assert main(["score", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_a_damaged_line_is_named_with_its_place(tmp_path, capsys):
    path = changed(tmp_path, eval_from="three")
    assert main(["score", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}:1" in error
    assert "eval_from" in error


def test_a_place_that_cannot_be_written_is_bad_input(ledger, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["score", str(ledger), "--out", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_help_ends_with_0(capsys):
    assert main(["score", "--help"]) == 0
    assert "--convention" in capsys.readouterr().out


def test_a_table_is_saved_under_both_endings(tmp_path):
    paths = save_table(pd.DataFrame({"x": [1.5]}), tmp_path / "a" / "table")
    assert [path.name for path in paths] == ["table.csv", "table.parquet"]


# ledger_source


def source_of(tmp_path, lines):
    return runs_of(read_ledger(write_ledger(tmp_path / "ledger.jsonl", lines)))


def test_published_names_become_the_words_of_the_project(tmp_path):
    run, baseline = source_of(tmp_path, ledger_lines(1))
    assert (run.cell.model, run.cell.conditioned_on, run.cell.setting) == ("gpt-4o", "gpt-4o", "goal_switching")
    assert (run.cell.elicitation, run.cell.n_instrumental, run.cell.n_evaluation) == (None, 2, 10)
    assert (run.seed, run.number, run.window.first, run.window.last) == (1, 1, 3, 12)
    assert run.cell.baseline_id == baseline.cell.cell_id
    assert (baseline.cell.elicitation, baseline.cell.baseline_id) == ("strong", None)


@pytest.mark.parametrize(
    ("setting", "history", "factor"),
    [
        ("ablation_dots", "repeated_token", "combined"),
        ("ablation_random-sentences", "random_sentences", "combined"),
        ("ablation_portfolio-complexity", "none", "goal_switching"),
        ("ablation_something_new", "something_new", "goal_switching"),
        ("ablation_distractions", "own", "combined"),
        ("goal_switching_adversarial", "own", "combined"),
    ],
)
def test_ablations_set_the_history(tmp_path, setting, history, factor):
    line = ledger_lines(1)[0] | {"setting": setting}
    (run,) = source_of(tmp_path, [line])
    assert (run.cell.history, run.cell.setting) == (history, factor)


def test_the_phase_of_another_model_is_a_borrowed_history(tmp_path):
    (run,) = source_of(tmp_path, [ledger_lines(1)[0] | {"conditioned_on": "sonnet"}])
    assert (run.cell.history, run.cell.conditioned_on) == ("borrowed", "claude-3.5-sonnet")


def test_half_of_the_evaluation_without_the_service_is_an_outage(tmp_path):
    lines = ledger_lines(2)
    lines[0]["dead_eval_quarters"], lines[2]["dead_eval_quarters"] = 5, 4
    runs = source_of(tmp_path, lines)
    assert [runs[0].outcome, runs[2].outcome] == ["provider_error", "completed"]
    assert runs[0].outcome_reason == "the API was down in 5 of 10 evaluation quarters"


def test_a_misfiled_run_moves_to_its_true_cell_and_keeps_its_filed_one(tmp_path):
    short, long = ledger_lines(1)[0], ledger_lines(1, n_instrumental=4)[0]
    misfiled = long | {"id": "results/misfiled", "folder": short["folder"], "instrumental_steps": 2}
    runs = source_of(tmp_path, [short, long, misfiled])
    assert runs[2].cell == runs[1].cell
    assert runs[2].filed == runs[0].cell
    (alone,) = source_of(tmp_path, [misfiled])
    assert (alone.cell.n_instrumental, alone.cell.cell_id) == (4, f"results/{short['folder']} (phase of 4)")


def test_lengths_of_one_phase_are_one_cluster_and_baselines_are_their_own(tmp_path):
    lines = [*ledger_lines(2), ledger_lines(1, n_instrumental=4)[0]]
    clusters = [run.cluster_id for run in source_of(tmp_path, lines)]
    assert clusters[0] == clusters[2] == clusters[4]
    assert len({clusters[1], clusters[3], clusters[0]}) == 3


def test_a_gap_in_the_books_is_refused(tmp_path):
    lines = ledger_lines(1)
    del lines[0]["quarters"][4]
    path = write_ledger(tmp_path / "gap.jsonl", lines)
    with pytest.raises(ValueError, match="n_quarters is 12, but there are 11"):
        read_source(path)


def test_cells_that_differ_in_a_factor_alone_can_be_told_apart(tmp_path, capsys):
    wordings = [
        Treatment("adversarial_pressure", "emissions", elicitation="weak", n_evaluation=2, prompt_variant=variant)
        for variant in ("first", "second")
    ]
    sweep_runs(tmp_path, plan("adherent", *wordings, seeds=[1]))
    assert main(["score", str(tmp_path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("adherent ")]
    assert sorted(line.split()[-1] for line in lines) == ["-", "prompt_variant=second"]


def test_cells_of_two_models_under_one_name_are_told_and_not_drawn(tmp_path, capsys):
    for agent in ("adherent", "negligent"):
        config = ModelConfig("mine", "scripted", agent)
        sweep_runs(tmp_path, plan(config, Treatment("goal_switching", n_instrumental=2, n_evaluation=2), seeds=[1]))
    assert main(["score", str(tmp_path)]) == 0
    assert "2 cells have one name (mine, goal_switching)" in capsys.readouterr().out
    assert main(["figures", str(tmp_path), "--out", str(tmp_path / "_figures")]) == 2
    assert "models.KEY.name" in capsys.readouterr().err


def test_a_zero_of_agents_that_buy_nothing_is_told_from_adherence(tmp_path, capsys):
    sweep_runs(tmp_path, plan("idle", Treatment("adversarial_pressure", n_evaluation=2), seeds=[1, 2]))
    assert main(["score", str(tmp_path)]) == 0
    assert "2 runs bought nothing, and neither did their baselines" in capsys.readouterr().out


def test_baselines_that_an_outage_took_are_told(tmp_path, capsys):
    runs = plan("adherent", Treatment("adversarial_pressure", n_evaluation=2), seeds=[1])
    sweep_runs(tmp_path, runs, build_model=lambda config: Replies(ProviderError("gone"), ProviderError("gone")))
    assert main(["score", str(tmp_path)]) == 1
    assert "baselines without a score: 1 (1 provider_error)" in capsys.readouterr().out
