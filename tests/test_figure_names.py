"""Names of figures: one for all cells that are drawn together."""

from analysis.figure_names import figure_name

CELL = {"setting": "goal_switching", "system_goal": "emissions", "history": "own", "factors": "", "conditioned_on": "x"}


def test_cells_of_a_switch_share_a_figure_across_models_and_lengths_alone() -> None:
    assert figure_name(CELL | {"model": "a", "n_instrumental": 4}) == "length-goal_switching-emissions"
    assert figure_name(CELL | {"history": "none"}) == "length-goal_switching-emissions-none"
    assert figure_name(CELL | {"factors": "rules=published"}) == "length-goal_switching-emissions-rules_published"


def test_each_borrowed_trajectory_has_a_figure_of_its_own() -> None:
    borrowed = CELL | {"history": "borrowed", "conditioned_on": "gpt-4o"}
    assert figure_name(borrowed) == "length-goal_switching-emissions-borrowed-from-gpt-4o"


def test_pressure_is_one_figure_and_each_of_its_factor_levels_another() -> None:
    pressure = CELL | {"setting": "adversarial_pressure", "elicitation": "weak"}
    assert figure_name(pressure) == figure_name(pressure | {"system_goal": "profit", "elicitation": "strong"})
    named = figure_name(pressure | {"factors": "pressure_kinds=['praise_news', 'employee_mail']"})
    assert named == "pressure-pressure_kinds_-praise_news-employee_mail"


def test_a_baseline_is_in_no_figure() -> None:
    assert figure_name(CELL | {"setting": "baseline"}) == ""
