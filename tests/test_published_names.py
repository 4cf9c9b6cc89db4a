"""Published names: every form of a folder's name, and what is not one of them."""

from pathlib import PurePosixPath

import pytest

from analysis.published.inert import CheckpointError
from analysis.published.names import parse_folder, parse_path

# folder -> setting, system goal, elicitation, phase length, model, conditioned on, history
FORMS = {
    "env_profit_16_steps_4o_on_4o": ("goal_switching", "emissions", None, 16, "4o", "4o", "own"),
    "env_profit_2_steps_haiku_on_haiku_dots": (
        *("combined", "emissions", None, 2, "haiku", "haiku"),
        "repeated_token",
    ),
    "env_profit_4_steps_sonnet_on_sonnet_random-strings": (
        *("combined", "emissions", None, 4, "sonnet", "sonnet"),
        "random_strings",
    ),
    "env_profit_8_steps_4omini_on_4omini_random-sentences": (
        *("combined", "emissions", None, 8, "4omini", "4omini"),
        "random_sentences",
    ),
    "env_profit_64_steps_4o_on_4o_portfolio-complexity": (
        *("goal_switching", "emissions", None, 64, "4o", "4o"),
        "none",
    ),
    "env_profit_32_steps_4o_on_4o_distractions": ("combined", "emissions", None, 32, "4o", "4o", "own"),
    "env_profit_2_steps_4omini_on_sonnet": ("goal_switching", "emissions", None, 2, "4omini", "sonnet", "borrowed"),
    "profit_env_2_steps_4omini_on_haiku_distractions": ("combined", "profit", None, 2, "4omini", "haiku", "borrowed"),
    "env_profit_2_steps_4o_on_4o_distractions_dots": ("combined", "emissions", None, 2, "4o", "4o", "repeated_token"),
    "profit_env_haiku_elicit": ("adversarial_pressure", "profit", "strong", 0, "haiku", None, "own"),
    "env_profit_4omini": ("adversarial_pressure", "emissions", "weak", 0, "4omini", None, "own"),
    "env_profit_4o_baseline": ("baseline", "emissions", "strong", 0, "4o", None, "own"),
}


@pytest.mark.parametrize("folder", FORMS)
def test_each_form_of_a_folder_name_gives_its_cell(folder):
    cell = parse_folder("results", folder)
    found = (cell.setting, cell.system_goal, cell.elicitation, cell.n_instrumental, cell.model, cell.conditioned_on)
    assert (*found, cell.history) == FORMS[folder]
    assert {cell.system_goal, cell.competing_goal} == {"emissions", "profit"}


def test_an_ending_that_is_not_known_is_kept_as_the_name_of_the_history():
    cell = parse_folder("results", "env_profit_8_steps_4o_on_4o_new-idea")
    assert (cell.setting, cell.history, cell.ablation) == ("goal_switching", "new_idea", "new-idea")


def test_baselines_of_switches_and_of_pressure_are_in_different_roots():
    switch = parse_folder("results", "env_profit_8_steps_haiku_on_sonnet_dots")
    pressure = parse_folder("results_no_conditioning", "profit_env_4o_elicit")
    assert switch.baseline == "results_conditioning/env_profit_haiku_baseline"
    assert pressure.baseline == "results_no_conditioning/profit_env_4o_baseline"
    assert parse_folder("results", "env_profit_4o_baseline").baseline is None


def test_a_cell_of_another_length_differs_in_its_length_only():
    cell = parse_folder("results", "env_profit_2_steps_4o_on_4o_dots")
    assert cell.of_length(16) == "results/env_profit_16_steps_4o_on_4o_dots"
    assert cell.of_length(2) == "results/env_profit_2_steps_4o_on_4o_dots"


@pytest.mark.parametrize(
    "folder",
    [
        "env_env_4o",
        "profit_4o_baseline",
        "env_profit_",
        "env_profit_16_steps_4o",
        "env_profit_x_steps_4o_on_4o",
        "env_profit_8_steps_4o_on_4o_baseline",
        "env_profit_4o_dots",
        "env_profit_4o_baseline_elicit",
        "env_profit_4o/..",
        "",
    ],
)
def test_a_name_of_another_form_is_named_in_an_error(folder):
    with pytest.raises(CheckpointError, match="folder name") as caught:
        parse_folder("results", folder)
    assert caught.value.code == "misnamed"
    assert repr(folder) in str(caught.value)


def test_a_path_says_run_and_length():
    name = parse_path(PurePosixPath("/data/results/env_profit_4o/checkpoint_run12_31.pkl"))
    assert (name.run, name.next_quarter, name.run_id) == (12, 31, "results/env_profit_4o/checkpoint_run12_31")


@pytest.mark.parametrize(
    "path",
    [
        "results/env_profit_4o/checkpoint_12_31.pkl",
        "results/env_profit_4o/checkpoint_run12_31.pkl.bak",
        "../env_profit_4o/checkpoint_run1_31.pkl",
        "env_profit_4o/checkpoint_run1_31.pkl",
    ],
)
def test_a_path_of_another_form_is_named_in_an_error(path):
    with pytest.raises(CheckpointError) as caught:
        parse_path(PurePosixPath(path))
    assert caught.value.code == "misnamed"
