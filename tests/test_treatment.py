from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.errors import InputError
from experiments.grid import expand, plan_phases, plan_runs
from experiments.run_spec import ModelConfig, RunSpec
from experiments.treatment import Treatment
from tests.path import scripted

MODEL = scripted("adherent")
SWITCH = Treatment("goal_switching", n_instrumental=8)


def test_fields_at_their_default_are_no_part_of_the_identity() -> None:
    assert RunSpec(MODEL, SWITCH, 3, 2).identity() == {
        "environment": {"name": "apex_fund", "version": "1"},
        "kind": "run",
        "model": {"adapter": "scripted", "model": "adherent"},
        "treatment": {"setting": "goal_switching", "system_goal": "emissions", "n_instrumental": 8},
        "phase_seed": 2,
        "seed": 3,
    }


@pytest.mark.parametrize(
    "change", [{"turn_limit": 20}, {"system_goal": "profit"}, {"history": "none"}, {"ticker_names": "invented"}]
)
def test_field_that_can_change_a_result_names_another_run(change: dict[str, object]) -> None:
    assert RunSpec(MODEL, replace(SWITCH, **change), 1, 1).run_id != RunSpec(MODEL, SWITCH, 1, 1).run_id


def test_parameters_of_a_model_are_part_of_the_identity_and_its_service_is_not() -> None:
    warm = ModelConfig("adherent", "scripted", "adherent", params={"temperature": 1.0})
    elsewhere = ModelConfig("adherent", "scripted", "adherent", service={"base_url": "http://localhost"})
    plain = RunSpec(MODEL, SWITCH, 1, 1)
    assert RunSpec(warm, SWITCH, 1, 1).run_id != plain.run_id
    assert RunSpec(elsewhere, SWITCH, 1, 1).run_id == plain.run_id


@pytest.mark.parametrize(
    "change",
    [
        {"setting": "combined"},
        {"n_instrumental": 64},
        {"history": "none"},
        {"portfolio": "emptied"},
        {"switch_notice": "announced"},
        {"reminder_every": 2},
        {"pressure_kinds": ("praise_news",)},
    ],
)
def test_phase_is_shared_by_runs_that_differ_only_after_it(change: dict[str, object]) -> None:
    first, second = (
        RunSpec(MODEL, SWITCH, 1, 1).phase_spec(),
        RunSpec(MODEL, replace(SWITCH, **change), 6, 1).phase_spec(),
    )
    assert first is not None and second is not None
    assert first.run_id == second.run_id


def test_phase_is_not_shared_by_runs_that_differ_within_it() -> None:
    phases = {
        RunSpec(MODEL, replace(SWITCH, **change), 1, 1).phase_spec().run_id
        for change in (  # type: ignore[union-attr]
            {},
            {"prompt_variant": "second"},
            {"management_notes": "off"},
            {"instrumental_goal": "requests"},
        )
    }
    assert len(phases) == 4


def test_seeds_take_turns_at_the_phases() -> None:
    runs = plan_runs([MODEL], [SWITCH], seeds=range(1, 8), n_phases=3)
    assert [run.phase_seed for run in runs if run.treatment.switches] == [1, 2, 3, 1, 2, 3, 1]
    assert len(plan_phases(runs)) == 3


def test_phase_is_as_long_as_its_longest_run_needs() -> None:
    runs = plan_runs([MODEL], [SWITCH, replace(SWITCH, n_instrumental=32)], seeds=[1], n_phases=1)
    (phase,) = plan_phases(runs)
    assert phase.treatment.n_instrumental == 32


def test_matched_baseline_has_the_seed_the_phase_and_the_quarters_of_its_run() -> None:
    baseline = RunSpec(MODEL, SWITCH, 7, 2).baseline_spec()
    assert baseline is not None
    scenario = baseline.treatment.scenario(baseline.seed, baseline.phase_seed)
    assert (scenario.setting, scenario.elicitation) == ("baseline", "strong")
    assert (scenario.first_quarter, scenario.last_quarter) == (9, 18)
    assert (scenario.seed, scenario.phase_seed) == (7, 2)


def test_pressure_is_held_against_the_same_without_pressure() -> None:
    weak = Treatment("adversarial_pressure", elicitation="weak", prompt_variant="second")
    assert weak.baseline() == Treatment("baseline", elicitation="weak", prompt_variant="second")


def test_switching_and_combined_share_one_matched_baseline() -> None:
    runs = plan_runs([MODEL], [SWITCH, replace(SWITCH, setting="combined")], seeds=[1, 2], n_phases=2)
    assert sum(run.treatment.setting == "baseline" for run in runs) == 2


def test_levels_that_a_setting_does_not_know_are_left_out_for_it() -> None:
    grid = {"setting": ["baseline", "goal_switching"], "elicitation": ["weak", "strong"], "n_instrumental": [2, 4]}
    found = [(one.setting, one.elicitation, one.n_instrumental) for one in expand(grid, {})]
    assert found == [
        ("baseline", "weak", 0),
        ("baseline", "strong", 0),
        ("goal_switching", None, 2),
        ("goal_switching", None, 4),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"setting": "goal_switching"}, "n_instrumental 0 is not allowed with setting 'goal_switching'"),
        ({"setting": "goal_switching", "n_instrumental": -1}, "must not be negative"),
        ({"setting": "combined", "n_instrumental": 2, "elicitation": "weak"}, "elicitation 'weak' is not allowed"),
        ({"n_evaluation": 0}, "n_evaluation 0 is not allowed"),
        ({"n_evaluation": -3}, "must not be negative"),
        ({"system_goal": "fame"}, "system_goal 'fame' is not known: emissions, profit"),
        ({"setting": "chaos"}, "setting 'chaos' is not allowed"),
        ({"turn_limit": 0}, "turn_limit 0 is not allowed"),
        ({"turn_limit": True}, "turn_limit True is not allowed"),
        ({"n_instrumental": 2.5}, "n_instrumental 2.5 is not allowed"),
        ({"history": "none"}, "history 'none' needs a setting with a switch"),
        ({"setting": "combined", "n_instrumental": 2, "history": "borrowed"}, "do not go together"),
        ({"pressure_kinds": ["gossip"]}, "pressure_kinds 'gossip' is not allowed"),
    ],
)
def test_what_cannot_be_played_is_refused_with_value_and_allowed(fields: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Treatment(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 8192, True, 1.5])
def test_seed_without_a_market_of_its_own_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match="an integer from 0 to 8191"):
        plan_runs([MODEL], [SWITCH], seeds=[seed], n_phases=1)  # type: ignore[list-item]


def test_unknown_parent_is_refused() -> None:
    borrowed = replace(SWITCH, history="borrowed", parent="sonnet")
    with pytest.raises(InputError, match="parent 'sonnet' is not known: adherent"):
        plan_runs([MODEL], [borrowed], seeds=[1], n_phases=1)


def test_borrowed_phase_is_the_parents_own() -> None:
    other = scripted("inertial")
    borrowed = replace(SWITCH, history="borrowed", parent="inertial")
    (run, _) = plan_runs([MODEL], [borrowed], seeds=[1], n_phases=1, parents={"inertial": other})
    assert run.phase_spec() == RunSpec(other, SWITCH, 1, 1).phase_spec()
