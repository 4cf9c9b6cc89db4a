"""Plots: what is drawn is what the table says, in colours that can be told apart."""

import colorsys
import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from analysis.figures import plot_by_length, plot_by_quarter
from analysis.palette import MODEL_STYLES, styles_of


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
