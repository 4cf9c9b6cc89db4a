"""`apex figures`: which figures there are, their files, and the scripted agents they are held against."""

import io

import matplotlib as mpl
import pandas as pd
import pytest

from analysis.cell_table import cells_table, curves_table
from analysis.cli import main
from analysis.conventions import CONVENTIONS
from analysis.draw import REFERENCE, draw_by_length, draw_pressure, reference_policies, save
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from tests.ledger_file import ledger_lines, write_ledger
from tests.policies import NEGLIGENT, played_pair, policies_by_length


def drawn_tables(setting, lengths=(2, 4)):
    """Tables of cells and curves of the negligent agent."""
    runs = [
        run
        for length in (lengths if setting != "adversarial_pressure" else (0,))
        for seed in (1, 2, 3)
        for run in played_pair(NEGLIGENT, setting, seed, n_instrumental=length)
    ]
    pairing = pair_runs(runs)
    return cells_table(runs_table(pairing, CONVENTIONS["paper"])), curves_table(pairing, CONVENTIONS["paper"])


def test_a_figure_of_phase_length_has_a_panel_a_score():
    cells, _ = drawn_tables("goal_switching")
    (drawn,) = draw_by_length(cells, "small print", reference_policies("paper"))
    assert drawn.name == "length-goal_switching-emissions"
    labels = [ax.get_ylabel() for ax in drawn.figure.axes]
    assert ["actions" in labels[0], "inaction" in labels[1], "kept" in labels[2]] == [True, True, True]
    assert set(drawn.table["n_instrumental"]) == {2, 4}
    assert [text.get_text() for text in drawn.figure.texts] == ["small print; n = 3"]
    assert drawn.reference is not None
    assert set(drawn.reference["model"]) == {"adherent", "negligent"}


def test_each_history_and_direction_has_a_figure_of_its_own():
    cells, _ = drawn_tables("goal_switching")
    changes = [{}, {"history": "none"}, {"system_goal": "profit"}, {"factors": "a=b"}]
    others = pd.concat([cells.assign(**change) for change in changes])
    names = [drawn.name for drawn in draw_by_length(others, "")]
    assert sorted(names) == [
        "length-goal_switching-emissions",
        "length-goal_switching-emissions-a_b",
        "length-goal_switching-emissions-none",
        "length-goal_switching-profit",
    ]


def test_a_figure_of_pressure_has_a_panel_a_direction_and_elicitation():
    _, curves = drawn_tables("adversarial_pressure")
    four = pd.concat(
        curves.assign(system_goal=goal, elicitation=prompt)
        for goal in ("emissions", "profit")
        for prompt in ("weak", "strong")
    )
    (drawn,) = draw_pressure(four, "")
    assert [ax.get_title(loc="left") for ax in drawn.figure.axes] == [
        f"System goal {goal}, {prompt} elicitation" for goal in ("profit", "emissions") for prompt in ("weak", "strong")
    ]
    assert list(draw_pressure(curves.iloc[:0], "")) == []


def test_a_saved_figure_is_the_same_file_every_time_with_its_table_beside(tmp_path):
    cells, _ = drawn_tables("goal_switching")
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        with mpl.rc_context({"svg.hashsalt": "apex"}):
            (drawn,) = draw_by_length(cells, "")
            paths = save(drawn, folder)
        assert [path.suffix for path in paths] == [".csv", ".png", ".pdf", ".svg"]
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes(), path.name
    table = pd.read_csv(folders[0] / "length-goal_switching-emissions.csv")
    assert table["gd_inaction"].tolist() == drawn.table["gd_inaction"].tolist()


def test_apex_figures_writes_every_format(tmp_path, capsys):
    lines = [*ledger_lines(2), *ledger_lines(2, n_instrumental=4)[::2]]
    ledger = write_ledger(tmp_path / "ledger.jsonl.gz", lines)
    assert main(["figures", str(ledger), "--out", str(tmp_path / "figures")]) == 0
    assert "length-goal_switching-emissions.png" in capsys.readouterr().out
    endings = sorted(path.suffix for path in (tmp_path / "figures").iterdir())
    # Beside each of the two figures its table, and beside the one of lengths the runs and agents that are drawn.
    assert endings == sorted([".csv", ".pdf", ".png", ".svg"] * 2 + [".csv"] * 2)
    points = pd.read_csv(tmp_path / "figures" / "length-goal_switching-emissions-runs.csv")
    assert len(points) == 4
    assert (tmp_path / "figures" / "free_of_divergence-goal_switching-emissions.csv").is_file()
    assert (tmp_path / "figures" / "length-goal_switching-emissions.png").read_bytes().startswith(b"\x89PNG")


def test_apex_figures_says_where_there_is_nothing_to_draw(tmp_path, capsys):
    ledger = write_ledger(tmp_path / "ledger.jsonl", ledger_lines(1)[1:])
    assert main(["figures", str(ledger), "--out", str(tmp_path / "figures")]) == 1
    assert "nothing to draw" in capsys.readouterr().out
    assert main(["figures", str(ledger)]) == 2
    assert "--out" in capsys.readouterr().err


def test_the_published_figures_are_drawn_with_all_their_panels(arike2025, tmp_path):
    out = tmp_path / "figures"
    assert main(["figures", str(arike2025 / "ledger.jsonl.gz"), "--convention", "reference", "--out", str(out)]) == 0
    assert sorted(path.stem for path in out.glob("*.png")) == [
        "free_of_divergence-combined-emissions-repeated_token",
        "free_of_divergence-goal_switching-emissions",
        "length-combined-emissions-repeated_token",
        "length-goal_switching-emissions",
        "pressure",
    ]
    pressure = pd.read_csv(out / "pressure.csv")
    assert len(pressure) == 2 * 2 * 4 * 30
    lengths = pd.read_csv(out / "length-goal_switching-emissions.csv")
    assert len(lengths) == 4 * 6
    row = lengths.query("model == 'gpt-4o-mini' and n_instrumental == 16").iloc[0]
    assert row["gd_actions"] == pytest.approx(0.752922, abs=1e-6)


# the committed numbers of the scripted agents


def test_scores_of_the_scripted_agents_are_those_committed():
    written = io.StringIO()
    policies_by_length().to_csv(written, index=False)
    assert written.getvalue() == REFERENCE.read_text()


def test_scores_of_the_scripted_agents_are_at_hand_in_every_convention(tmp_path):
    for convention in CONVENTIONS:
        assert len(reference_policies(convention)) == 2 * 2 * 6
    assert reference_policies("paper", tmp_path / "missing.csv") is None


def test_psi_of_one_policy_rises_with_the_phase_though_it_keeps_the_same_share():
    table = reference_policies("paper").query("model == 'negligent' and system_goal == 'emissions'")
    assert table["gd_inaction"].is_monotonic_increasing
    assert table["gd_inaction"].to_list() == pytest.approx([0.23, 0.38, 0.56, 0.73, 0.87, 0.95], abs=0.035)
    assert set(table["retained_frac"]) == {1.0}


def test_runs_are_drawn_as_points_where_a_cell_has_few_and_each_is_in_the_table_beside():
    runs = [run for seed in (1, 2, 3) for run in played_pair(NEGLIGENT, "goal_switching", seed, n_instrumental=2)]
    table = runs_table(pair_runs(runs), CONVENTIONS["paper"])
    (drawn,) = draw_by_length(cells_table(table), "", runs=table)
    points = [point.get_offsets()[:, 1].tolist() for point in drawn.figure.axes[1].collections[-1:]]
    assert drawn.runs is not None
    assert points == [drawn.runs["gd_inaction"].tolist()]
    many = cells_table(table).assign(n_scored=21)
    (without,) = draw_by_length(many, "", runs=table)
    assert without.runs is not None
    assert without.runs.empty


def test_borrowed_trajectories_and_levels_of_a_factor_under_pressure_have_figures_of_their_own():
    cells, _ = drawn_tables("goal_switching", lengths=(2,))
    borrowed = [cells.assign(history="borrowed", conditioned_on=parent) for parent in ("a", "b")]
    names = [drawn.name for drawn in draw_by_length(pd.concat(borrowed), "")]
    assert names == [f"length-goal_switching-emissions-borrowed-from-{parent}" for parent in ("a", "b")]
    _, curves = drawn_tables("adversarial_pressure")
    levels = pd.concat([curves, curves.assign(factors="pressure_kinds=['praise_news']")])
    assert [drawn.name for drawn in draw_pressure(levels, "")] == ["pressure", "pressure-pressure_kinds_-praise_news"]
