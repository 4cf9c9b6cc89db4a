"""Figures: what is drawn is what the table says; files, colours, and the scripted agents they are held against."""

import colorsys
import io
import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from analysis.cell_table import cells_table, curves_table
from analysis.cli import main
from analysis.conventions import CONVENTIONS
from analysis.draw import REFERENCE, draw_by_length, draw_pressure, reference_policies, save
from analysis.figures import plot_by_length, plot_by_quarter
from analysis.pairing import pair_runs
from analysis.palette import MODEL_STYLES, styles_of
from analysis.run_table import runs_table
from tests.ledger_file import ledger_lines, write_ledger
from tests.policies import NEGLIGENT, played_pair, policies_by_length


def length_rows(**columns):
    """Cells of two models and two lengths."""
    rows = pd.DataFrame(
        {
            "model": ["gpt-4o", "gpt-4o", "claude-3.5-haiku", "claude-3.5-haiku"],
            "n_instrumental": [2, 8, 8, 2],
            "gd_actions": [0.1, 0.5, 0.4, 0.0],
            "gd_actions_low": [0.0, 0.4, np.nan, np.nan],
            "gd_actions_high": [0.3, 0.7, np.nan, np.nan],
            "convention": "paper",
            "pairing": "seed",
        }
    )
    return rows.assign(**columns)


def quarter_rows(**columns):
    """A curve of one model over three quarters."""
    rows = {
        "model": "gpt-4o",
        "quarter": [1, 2, 3],
        "gd_actions": [0.1, 0.2, 0.4],
        "gd_actions_low": [0.0, 0.1, 0.2],
        "gd_actions_high": [0.3, 0.4, 0.6],
        "convention": "paper",
        "pairing": "seed",
    }
    return pd.DataFrame(rows).assign(**columns)


def reference_rows(**columns):
    rows = itertools.product(("adherent", "negligent"), (2, 8))
    table = pd.DataFrame(rows, columns=["model", "n_instrumental"])
    return table.assign(gd_actions=[0, 0, 0.2, 0.5], convention="paper", pairing="seed").assign(**columns)


def lines_of(ax):
    """Values of each labelled line, by label."""
    found = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    return {label: getattr(drawn, "lines", [drawn])[0] for label, drawn in found.items()}


def test_a_line_a_model_shows_the_column_in_order_of_length():
    ax = plot_by_length(length_rows())
    drawn = lines_of(ax)
    assert list(drawn) == ["GPT-4o", "Claude 3.5 Haiku"]
    assert drawn["GPT-4o"].get_ydata().tolist() == [0.1, 0.5]
    assert drawn["Claude 3.5 Haiku"].get_ydata().tolist() == [0.0, 0.4]
    assert drawn["GPT-4o"].get_xdata() == pytest.approx([2, 8], rel=0.05)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "8"]


def test_an_interval_is_drawn_where_there_is_one():
    ax = plot_by_length(length_rows())
    with_arms, without = ax.containers
    assert [segment[:, 1].tolist() for segment in with_arms.lines[2][0].get_segments()] == [[0.0, 0.3], [0.4, 0.7]]
    assert not without.has_yerr


def test_the_band_of_the_scripted_agents_lies_between_their_curves():
    ax = plot_by_length(length_rows(), reference=reference_rows())
    assert lines_of(ax)["never sells (scripted)"].get_ydata().tolist() == [0.2, 0.5]
    (band,) = [drawn for drawn in ax.collections if drawn.get_zorder() == 0.5]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 0.5)


def test_a_figure_and_what_is_drawn_over_it_share_a_convention():
    with pytest.raises(ValueError, match="one convention is needed, not 2: paper, reference"):
        plot_by_length(length_rows(), reference=reference_rows(convention="reference"))
    with pytest.raises(ValueError, match="one convention"):
        plot_by_length(length_rows(convention=["paper", "paper", "reference", "paper"]))
    with pytest.raises(ValueError, match="one convention"):
        plot_by_quarter(quarter_rows(convention=["paper", "holdings", "paper"]))


def test_two_cells_at_one_place_are_refused():
    with pytest.raises(ValueError, match="more than one row for 'gpt-4o' and one phase length"):
        plot_by_length(length_rows(n_instrumental=[2, 2, 8, 2]))
    with pytest.raises(ValueError, match="more than one row for 'gpt-4o' and one quarter"):
        plot_by_quarter(quarter_rows(quarter=[1, 2, 2]))


def test_a_curve_is_drawn_with_its_band():
    ax = plot_by_quarter(quarter_rows())
    assert lines_of(ax)["GPT-4o"].get_ydata().tolist() == [0.1, 0.2, 0.4]
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert {0.0, 0.1, 0.2, 0.3, 0.4, 0.6} <= set(heights.round(6))


def test_plots_draw_on_the_axes_they_are_given_and_leave_the_table_alone():
    given = mpl.figure.Figure().add_subplot()
    table = length_rows()
    before = table.copy()
    assert plot_by_length(table, given) is given
    pd.testing.assert_frame_equal(table, before)


# palette


def test_a_model_keeps_its_colour_whatever_it_is_drawn_with():
    alone = styles_of(["some-model"])["some-model"]
    assert styles_of(["gpt-4o", "some-model", "adherent"])["some-model"] == alone
    assert styles_of(["gpt-4o"])["gpt-4o"] == MODEL_STYLES["gpt-4o"]
    assert styles_of(["x", "some-model"]) == styles_of(["some-model", "x"])


def test_models_of_a_figure_have_different_colours():
    styles = styles_of([*MODEL_STYLES, *(f"model-{n}" for n in range(8))])
    assert len({style.colour for style in styles.values()}) == len(styles)


def deuteranope(colour):
    """The colour as seen without green cones (Vienot, Brettel and Mollon 1999), in linear light."""
    red, green, blue = (((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(colour))
    mixed = 0.29275 * red + 0.70725 * green
    return mixed, mixed, -0.02234 * red + 0.02234 * green + blue


@pytest.mark.parametrize("seen", [to_rgb, deuteranope], ids=["all cones", "without green cones"])
def test_the_colours_of_the_paper_s_models_can_be_told_apart(seen):
    colours = [seen(MODEL_STYLES[name].colour) for name in list(MODEL_STYLES)[:4]]
    for one, other in itertools.combinations(colours, 2):
        assert np.abs(np.subtract(one, other)).max() > 0.1


def test_the_two_families_have_two_hues():
    hues = [colorsys.rgb_to_hsv(*to_rgb(MODEL_STYLES[name].colour))[0] for name in list(MODEL_STYLES)[:4]]
    assert abs(hues[0] - hues[1]) < 0.05 < abs(hues[0] - hues[2])
    assert abs(hues[2] - hues[3]) < 0.1


# draw


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
    assert "length-goal_switching-emissions: " in capsys.readouterr().out
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
