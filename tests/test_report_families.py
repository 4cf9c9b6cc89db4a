"""Families of tests: which comparisons each question makes of a figure, and their correction."""

import math
from typing import Any

import pytest

from analysis.report.families import Answers, answers_of, cell_label, figures_of
from analysis.report.primary import primary_of
from tests.report_builders import cells_from, make_rows

PRESSURE: dict[str, Any] = {"setting": "adversarial_pressure", "n_instrumental": 0}


def asked(*tables: Any, figure: str) -> dict[str, Answers]:
    """Answers of one figure, by question."""
    (found,) = [one for one in figures_of(cells_from(*tables)) if one.name == figure]
    return {answer.question: answer for answer in answers_of(found)}


def labels(answers: Answers) -> list[str]:
    return [one.key for one in answers.comparisons]


def pressure_rows(model: str, goal: str, prompt: str, d: list[float]) -> Any:
    names = {"model": model, "system_goal": goal, "elicitation": prompt, "cell": f"{model}-{goal}-{prompt}"}
    return make_rows(d, **PRESSURE, **names, baseline_cell=f"{model}-{goal}-{prompt}-baseline")


def plain_rows(model: str, goal: str, prompt: str) -> Any:
    names = {"model": model, "system_goal": goal, "elicitation": prompt, "cell": f"{model}-{goal}-{prompt}-baseline"}
    rows = make_rows([math.nan] * 3, setting="baseline", n_instrumental=0, **names)
    return rows.assign(baseline_cell=None, baseline_run=None)


def test_weak_is_held_against_strong_in_each_direction_and_score() -> None:
    tables = [
        pressure_rows("m", goal, prompt, [level, level, 0.0])
        for goal in ("profit", "emissions")
        for prompt, level in (("weak", 0.5), ("strong", 0.1))
    ]
    answer = asked(*tables, figure="pressure")["weak_against_strong"]
    assert labels(answer) == [
        f"m, {goal}: weak - strong, {score}" for goal in ("emissions", "profit") for score in ("actions", "inaction")
    ]
    assert [one.estimate.value for one in answer.comparisons] == pytest.approx([0.8 / 3] * 4)
    assert (answer.family.size, answer.family.correction) == (4, "holm")
    # Two of three seeds moved, alike: p is 2 * 2^-2; Holm takes four times that, at most 1.
    assert set(answer.family.p.values()) == {0.5}
    assert set(answer.family.p_adjusted.values()) == {1.0}


def test_weak_runs_are_tested_against_a_weak_baseline_and_not_against_a_strong_one() -> None:
    weak = pressure_rows("m", "profit", "weak", [0.5, 0.4, 0.3])
    fair = asked(weak, plain_rows("m", "profit", "weak"), figure="pressure")["weak_against_baseline"]
    assert [one.test.p for one in fair.comparisons] == [0.125, 0.125]
    mixed = weak.assign(baseline_cell="m-profit-strong-baseline")
    unfair = asked(mixed, plain_rows("m", "profit", "strong"), figure="pressure")["weak_against_baseline"]
    assert all(math.isnan(one.test.p) for one in unfair.comparisons)
    assert "its baseline is elicited otherwise (strong)" in unfair.comparisons[0].test.reason
    assert unfair.family.describe().endswith("2 could not be made, counted in the correction")


def test_drift_is_asked_of_every_cell_and_score() -> None:
    found = asked(
        make_rows([0.1, 0.2]), make_rows([0.3, 0.4], n_instrumental=8), figure="length-goal_switching-emissions"
    )
    assert labels(found["drift"]) == [
        "m, I = 2, actions",
        "m, I = 2, inaction",
        "m, I = 8, actions",
        "m, I = 8, inaction",
    ]
    assert labels(found["trend"]) == ["m, retained"]
    assert set(found) == {"drift", "trend"}


def test_switching_is_held_against_the_emptied_history_at_each_length_and_not_as_an_ablation() -> None:
    own = make_rows([0.5, 0.6], conditioned_on="m")
    found = asked(own, make_rows([0.1, 0.1], history="none"), figure="length-goal_switching-emissions-none")
    assert [one.estimate.value for one in found["emptied_history"].comparisons] == pytest.approx([0.45, 0.45])
    assert "ablation" not in found


def test_an_ablated_history_is_held_against_the_original_over_all_lengths() -> None:
    tables = [
        make_rows([level, level + 0.1], n_instrumental=length, history=history)
        for length in (2, 4)
        for history, level in (("own", 0.1), ("repeated_token", 0.4))
    ]
    found = asked(*tables, figure="length-goal_switching-emissions-repeated_token")
    assert labels(found["ablation"]) == ["m: repeated_token - own, actions", "m: repeated_token - own, inaction"]
    assert found["ablation"].comparisons[0].estimate.value == pytest.approx(0.3)
    own = asked(*tables, figure="length-goal_switching-emissions")
    assert "ablation" not in own


def test_a_borrowed_history_is_held_against_the_model_s_own() -> None:
    own = make_rows([0.1, 0.2])
    borrowed = make_rows([0.4, 0.5], history="borrowed", conditioned_on="x")
    found = asked(own, borrowed, figure="length-goal_switching-emissions-borrowed-from-x")
    assert found["ablation"].comparisons[0].estimate.value == pytest.approx(0.3)


def test_pressure_after_a_switch_is_held_against_the_switch_alone() -> None:
    found = asked(make_rows([0.1, 0.1]), make_rows([0.3, 0.4], setting="combined"), figure="length-combined-emissions")
    assert labels(found["settings"])[0] == "m, I = 2: combined - switching, actions"
    assert found["settings"].comparisons[0].estimate.value == pytest.approx(0.25)


def test_a_factor_is_held_against_the_cell_that_lacks_it_alone() -> None:
    tables = [
        make_rows([0.1, 0.1]),
        make_rows([0.3, 0.3], factors="portfolio=emptied"),
        make_rows([0.6, 0.6], factors="portfolio=emptied rules=published"),
    ]
    both = asked(*tables, figure="length-goal_switching-emissions-portfolio_emptied-rules_published")["factors"]
    # Without rules=published there is the second cell; without portfolio=emptied there is none.
    assert labels(both) == [
        "m, I = 2: rules=published - default, actions",
        "m, I = 2: rules=published - default, inaction",
    ]
    assert both.comparisons[0].estimate.value == pytest.approx(0.3)


def test_models_are_compared_over_the_cells_that_both_have() -> None:
    tables = [
        make_rows([0.2, 0.4], model=model, n_instrumental=length) for model, length in (("a", 2), ("b", 2), ("a", 4))
    ]
    found = asked(*tables, figure="length-goal_switching-emissions")["models"]
    assert labels(found) == ["a - b, 1 cells, actions", "a - b, 1 cells, inaction"]
    apart = [make_rows([0.2], model="a", n_instrumental=2), make_rows([0.2], model="b", n_instrumental=4)]
    alone = asked(*apart, figure="length-goal_switching-emissions")["models"]
    assert alone.comparisons[0].test.reason == "no cell of the one has its like in the other"


def test_two_cells_that_could_be_the_counterpart_make_no_test() -> None:
    twice = [make_rows([0.1, 0.2], cell=name) for name in ("one", "other")]
    found = asked(*twice, make_rows([0.3, 0.4], setting="combined"), figure="length-combined-emissions")["settings"]
    assert [one.test.reason for one in found.comparisons] == ["2 cells could be its counterpart"] * 2


def test_cells_are_named_by_what_differs_within_their_figure() -> None:
    switched, pressed = cells_from(make_rows([0.1]), make_rows([0.1], **PRESSURE, elicitation="weak"))
    assert (cell_label(switched), cell_label(pressed)) == ("m, I = 2", "m, emissions, weak")


# the primary question


def primary(*tables: Any) -> tuple[str | None, str]:
    figure = figures_of(cells_from(*tables))[-1]
    found = primary_of(figure, answers_of(figure))
    return found.question, found.told


def test_what_the_experiment_file_declares_is_primary() -> None:
    rows = [make_rows([0.1, 0.2], n_instrumental=length, primary="trend") for length in (2, 4)]
    assert primary(*rows) == ("trend", "declared in the experiment file")


@pytest.mark.parametrize(
    ("columns", "question", "kind"),
    [
        ({}, "drift", "plain"),
        ({"history": "none"}, "emptied_history", "emptied"),
        ({"history": "random_strings"}, "ablation", "ablated"),
        ({"factors": "rules=published"}, "factors", "varied"),
    ],
)
def test_without_a_declaration_the_kind_of_figure_decides(columns: dict[str, str], question: str, kind: str) -> None:
    tables = [make_rows([0.1, 0.2])] + ([make_rows([0.1, 0.3], **columns)] if columns else [])
    assert primary(*tables) == (question, f"the default of {kind} figures, since no experiment file declares one")


def test_pressure_is_about_elicitation_where_both_are_there_and_else_about_drift() -> None:
    weak, strong = (make_rows([0.1, 0.2], **PRESSURE, elicitation=prompt) for prompt in ("weak", "strong"))
    assert primary(weak, strong)[0] == "weak_against_strong"
    assert primary(strong)[0] == "drift"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (("ablation", "ablation"), "the declared 'ablation' does not arise here"),
        (("trend", "drift"), "the experiments declare different ones: 'drift' (2 runs), 'trend' (2 runs)"),
        (("nonsense", "nonsense"), "the declared 'nonsense' is no question of this version"),
    ],
)
def test_a_declaration_that_cannot_be_followed_is_told(declared: tuple[str, str], told: str) -> None:
    rows = [
        make_rows([0.1, 0.2], n_instrumental=length, primary=name)
        for length, name in zip((2, 4), declared, strict=True)
    ]
    question, why = primary(*rows)
    assert (question, why) == ("drift", f"the default of plain figures, since {told}")
