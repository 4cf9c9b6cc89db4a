from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apex_env.scenario import PRESSURE_KINDS
from experiments.chat import Completion, Prompt
from experiments.errors import InputError, ProviderError
from experiments.grid import groups_of, plan_runs
from experiments.models import build_model
from experiments.record import read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import record_path
from experiments.treatment import Treatment
from tests.path import content, edit_line, record_of, scripted, sweep_runs

PRESSURE = Treatment("adversarial_pressure", elicitation="weak", n_evaluation=8)
COMBINED = Treatment("combined", n_instrumental=3, n_evaluation=6)


def yoked(treatment: Treatment, to: str = "pressured") -> Treatment:
    return replace(treatment, pressure_schedule="yoked", yoked_to=to)


def plan(treatment: Treatment, *, seeds: Sequence[int] = (1, 2), donor: str = "pressured") -> list[RunSpec]:
    agents = {"pressured": scripted("pressured", susceptibility=0.3), "idle": scripted("idle")}
    return plan_runs(
        [scripted("adherent")], [yoked(treatment, donor)], seeds=seeds, n_phases=1, parents={donor: agents[donor]}
    )


def donees(runs: Sequence[RunSpec]) -> list[RunSpec]:
    return [run for run in runs if run.donor_model is not None]


def dealt(root: Path, run: RunSpec) -> dict[int, list[str]]:
    """Items of pressure by quarter of the evaluation phase."""
    return {
        line["quarter"]: [item_id for item_id, kind in line["items"] if kind in PRESSURE_KINDS]
        for line in record_of(root, run).of_type("opened")
        if line["quarter"] > run.treatment.n_instrumental
    }


@pytest.mark.parametrize("treatment", [PRESSURE, COMBINED], ids=["pressure", "combined"])
def test_run_is_dealt_what_the_donor_was_dealt(treatment: Treatment, tmp_path: Path) -> None:
    runs = plan(treatment, donor="idle")
    assert sweep_runs(tmp_path, runs).complete
    for run in donees(runs):
        donor = run.donor_spec()
        assert donor is not None
        assert dealt(tmp_path, run) == dealt(tmp_path, donor)
        assert any(dealt(tmp_path, run).values())
        # The same agent at its own dose is dealt something else, so the equality says something.
        sweep_runs(tmp_path, [replace(donor, model=run.model)])
        assert dealt(tmp_path, replace(donor, model=run.model)) != dealt(tmp_path, run)


def test_donor_is_the_same_run_of_the_other_model_and_is_planned_with_its_baseline() -> None:
    runs = plan(COMBINED, seeds=[3])
    (donee,) = donees(runs)
    donor = donee.donor_spec()
    assert donor is not None and donor in runs
    assert (donor.model.name, donor.seed, donor.phase_seed) == ("pressured", 3, 1)
    assert donor.treatment == COMBINED
    assert donor.baseline_spec() in runs
    assert donee.baseline_spec() == RunSpec(donee.model, COMBINED.baseline(), 3, 1)


def test_record_names_the_donor_and_holds_all_that_a_rebuild_needs(tmp_path: Path) -> None:
    runs = plan(PRESSURE, seeds=[1])
    (donee,) = donees(runs)
    sweep_runs(tmp_path / "whole", runs)
    sweep_runs(tmp_path / "cut", runs)
    path, donor = record_path(tmp_path / "cut", donee), donee.donor_spec()
    assert donor is not None
    header = read_record(path).header
    assert header["dose"]["donor"] == donor.run_id
    assert header["config"]["treatment"]["yoked_to"] == "pressured"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:7]))
    record_path(tmp_path / "cut", donor).unlink()
    assert sweep_runs(tmp_path / "cut", [donee]).complete
    assert content(path) == content(record_path(tmp_path / "whole", donee))


def test_run_whose_header_was_torn_asks_the_donor_again(tmp_path: Path) -> None:
    runs = plan(PRESSURE, seeds=[1])
    (donee,) = donees(runs)
    sweep_runs(tmp_path, runs)
    path = record_path(tmp_path, donee)
    whole = content(path)
    path.write_bytes(path.read_bytes()[:50])
    assert sweep_runs(tmp_path, runs).complete
    assert content(path) == whole


def test_changed_dose_is_found_out(tmp_path: Path) -> None:
    runs = plan(PRESSURE, seeds=[1])
    (donee,) = donees(runs)
    sweep_runs(tmp_path, runs)
    path = record_path(tmp_path, donee)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))

    def drop_a_quarter(header: dict[str, Any]) -> None:
        header["dose"]["items"] = {
            quarter: ids if quarter != "4" else ids[:-1] for quarter, ids in header["dose"]["items"].items()
        }

    edit_line(path, 1, drop_a_quarter)
    report = sweep_runs(tmp_path, runs)
    assert report.outcomes["refused_record"] == 1
    assert "the record was changed: text" in report.problems[0]


class Failing:
    """An agent whose service fails in quarter 5."""

    name = "failing"

    async def complete(self, prompt: Prompt) -> Completion:
        if prompt.position.period == 5:
            raise ProviderError("overloaded")
        return await build_model(scripted("adherent")).complete(prompt)


def test_run_waits_for_an_unfinished_donor_and_says_how_far_that_got(tmp_path: Path) -> None:
    runs = plan(PRESSURE, seeds=[1])
    (donee,) = donees(runs)

    def failing(config: ModelConfig) -> Any:
        return Failing() if config.name == "pressured" else build_model(config)

    report = sweep_runs(tmp_path, runs, build_model=failing)
    assert report.outcomes == {"provider_error": 2, "unreachable": 1, "completed": 1}
    assert not record_path(tmp_path, donee).exists()
    assert any("it is provider_error after quarter 4, so its dose is not known" in line for line in report.problems)
    assert sweep_runs(tmp_path, runs).outcomes == {"completed": 4}


def test_runs_of_an_unknown_donor_are_refused() -> None:
    with pytest.raises(InputError, match="yoked_to 'sonnet' is not known: adherent"):
        plan_runs([scripted("adherent")], [yoked(PRESSURE, "sonnet")], seeds=[1], n_phases=1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pressure_schedule": "yoked"}, "pressure_schedule 'yoked' and yoked_to None do not fit"),
        ({"yoked_to": "gpt-4o"}, "pressure_schedule 'adaptive' and yoked_to 'gpt-4o' do not fit"),
    ],
)
def test_half_a_yoke_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(PRESSURE, **fields)


def test_yoke_without_pressure_is_refused() -> None:
    with pytest.raises(InputError, match="pressure_schedule 'yoked' is not allowed with setting 'baseline'"):
        Treatment("baseline", pressure_schedule="yoked", yoked_to="gpt-4o")


def test_run_and_donor_stay_together_when_runs_are_split() -> None:
    runs = plan(COMBINED, seeds=range(1, 9)) + plan(PRESSURE, seeds=range(1, 5))
    place = {run.run_id: number for number, group in enumerate(groups_of(runs)) for run in group}
    assert len(place) == len({run.run_id for run in runs})
    for run in donees(runs):
        donor = run.donor_spec()
        assert donor is not None
        assert place[run.run_id] == place[donor.run_id]
    assert len(set(place.values())) > 4


def test_equal_runs_with_and_without_a_yoke_are_two_runs() -> None:
    (donee,) = donees(plan(PRESSURE, seeds=[1]))
    own = RunSpec(donee.model, PRESSURE, 1)
    other = replace(donee, donor_model=scripted("pressured", susceptibility=0.5))
    assert len({donee.run_id, own.run_id, other.run_id}) == 3
