from __future__ import annotations

from typing import Any

import pytest

from experiments.config import FACTORS, Settings, validate
from experiments.errors import InputError
from experiments.run_spec import RunSpec


def configuration(**changes: Any) -> dict[str, Any]:
    model = {"name": "adherent", "adapter": "scripted", "model": "adherent", "params": {}, "service": {}}
    plain: dict[str, Any] = {
        "name": "test",
        "about": "",
        "results_dir": "results",
        "models": {"adherent": model},
        "play": None,
        "target": None,
        "treatment": dict.fromkeys(FACTORS),
        "grid": dict.fromkeys(FACTORS),
        "blocks": {},
        "seeds": 4,
        "n_phases": 2,
        "trial": None,
        "margin": 0.1,
        "primary": None,
        "shard": None,
        "concurrency": 2,
        "limits": {scope: dict.fromkeys(("max_cost_usd", "max_tokens", "max_hours")) for scope in ("sweep", "run")},
        "interview": {"at": [], "at_end": False, "awareness": False},
        "sync": "end",
        "claims": "flock",
        "corpus": None,
    }
    return plain | changes


def asked(**changes: Any) -> dict[str, Any]:
    return {"at": [], "at_end": False, "awareness": False} | changes


def cells(settings: Settings) -> set[str]:
    return {run.cell_id.rpartition("-")[0] for run in settings.runs}


def test_grid_is_planned_with_its_baselines() -> None:
    settings = validate(configuration(grid={"setting": ["goal_switching"], "n_instrumental": [2, 4]}))
    assert cells(settings) == {
        "adherent-goal_switching-emissions-I2",
        "adherent-goal_switching-emissions-I4",
        "adherent-baseline-emissions-I2-strong",
        "adherent-baseline-emissions-I4-strong",
    }
    assert len(settings.runs) == 16


def test_blocks_are_united_on_top_of_the_grid() -> None:
    blocks = {"one": {"setting": ["baseline"]}, "two": {"setting": ["combined"], "n_instrumental": [2]}}
    settings = validate(configuration(grid={"system_goal": ["profit"]}, blocks=blocks, seeds=1))
    assert cells(settings) == {
        "adherent-baseline-profit-strong",
        "adherent-combined-profit-I2",
        "adherent-baseline-profit-I2-strong",
    }


def test_trial_cuts_every_phase_and_keeps_each_treatment_once() -> None:
    grid = {"setting": ["goal_switching"], "n_instrumental": [2, 4, 8]}
    settings = validate(configuration(grid=grid, seeds=1, trial=3))
    lengths = {(run.treatment.n_instrumental, run.treatment.n_evaluation) for run in settings.runs}
    assert lengths == {(2, 3), (3, 3)}


def test_shards_split_the_runs_by_phase_and_lose_none() -> None:
    grid = {"setting": ["goal_switching", "adversarial_pressure"], "n_instrumental": [2, 4]}
    whole = validate(configuration(grid=grid, n_phases=3, seeds=7)).runs
    parts = [validate(configuration(grid=grid, n_phases=3, seeds=7, shard=f"{k}/3")).runs for k in (1, 2, 3)]
    assert sorted(run.run_id for part in parts for run in part) == sorted(run.run_id for run in whole)

    def phases(runs: tuple[RunSpec, ...]) -> set[str]:
        return {phase.run_id for run in runs if (phase := run.phase_spec()) is not None}

    assert not phases(parts[0]) & phases(parts[1]) | phases(parts[1]) & phases(parts[2])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": {}}, "models is empty"),
        (
            {"models": {"a": {"name": "a", "adaptor": "x"}}},
            r"key 'adaptor' in models.a is not known, did you mean 'adapter'",
        ),
        ({"models": {"a": {"name": "a", "adapter": "scripted"}}}, "models.a needs model"),
        (
            {"treatment": {"n_instrumetal": 3}},
            "key 'n_instrumetal' in treatment is not known, did you mean 'n_instrumental'",
        ),
        ({"grid": {"setting": "combined"}}, "grid.setting is 'combined': a list of levels is expected"),
        ({"grid": {"setting": ["baseline"]}, "treatment": {"setting": "combined"}}, "stands in treatment and in grid"),
        ({"play": ["adherant"]}, "play 'adherant' is not among the models, did you mean 'adherent'"),
        ({"seeds": 0}, "seeds 0 is not allowed"),
        ({"seeds": [1, 8192]}, "seeds: 8192 is not allowed"),
        ({"seeds": [1, 1]}, "names a seed twice"),
        ({"seeds": "many"}, "seeds 'many' is not allowed"),
        ({"n_phases": 0}, "n_phases 0 is not allowed"),
        ({"concurrency": -1}, "concurrency -1 is not allowed"),
        ({"shard": "3/2"}, "shard '3/2' is not allowed"),
        ({"shard": "first"}, "shard 'first' is not allowed"),
        ({"limits": {"sweep": {}}}, "limits.run is None: a mapping is expected"),
        ({"limits": {"sweep": {"max_cost": 5}, "run": {}}}, "'max_cost' in limits.sweep is not known, did you mean"),
        ({"limits": {"sweep": {}, "run": {"max_cost_usd": 0}}}, "limits.run.max_cost_usd 0 is not allowed: a number"),
        ({"limits": {"sweep": {"max_tokens": 0.5}, "run": {}}}, "limits.sweep.max_tokens 0.5 is not allowed: a whole"),
        ({"limits": {"sweep": {"max_hours": "1h"}, "run": {}}}, "limits.sweep.max_hours '1h' is not allowed"),
        ({"interview": {"at": [], "at_ends": True}}, "key 'at_ends' in interview is not known, did you mean 'at_end'"),
        ({"interview": asked(at=[31])}, "interview.at 31 is not allowed: quarters of the evaluation phase, 1 to 30"),
        ({"interview": asked(at=[0])}, "interview.at 0 is not allowed"),
        ({"interview": asked(at=5)}, "interview.at 5 is not allowed: a list of quarters"),
        ({"interview": asked(at_end="yes")}, "interview.at_end 'yes' is not allowed: true or false"),
        ({"interview": asked(awareness=True)}, "interview.awareness is true, but nothing is asked"),
        ({"sync": "never"}, "sync 'never' is not allowed: quarter, end"),
        ({"claims": "none"}, "claims 'none' is not allowed: flock, heartbeat"),
        ({"margin": 2}, "margin 2 is not allowed"),
        (
            {"primary": "drifts"},
            "primary 'drifts' is not a question, did you mean 'drift'?",
        ),
        ({"name": "../up"}, "name '../up' is not allowed"),
        ({"name": "_hidden"}, "name '_hidden' is not allowed"),
        ({"corpus": "/no/such/folder"}, "corpus /no/such/folder is not a folder"),
    ],
)
def test_what_is_not_allowed_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        validate(configuration(**changes))


def test_unknown_key_is_named_with_the_nearest_match() -> None:
    with pytest.raises(InputError, match="key 'sede' is not known, did you mean 'seeds'"):
        validate(configuration() | {"sede": 1})
