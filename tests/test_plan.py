"""`apex plan`: shared phases and baselines once, what is on disk left out, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.config import validate
from experiments.plan import as_json, main
from experiments.planning import make_plan
from experiments.run import configurations_of
from experiments.run_spec import ModelConfig
from tests.path import record_of, sweep_runs
from tests.test_limits import Paid, limited
from tests.test_run import apex

GRID = [
    "name=t",
    "model=adherent",
    "treatment=none",
    "grid.setting=[goal_switching,combined]",
    "grid.n_instrumental=[2,4]",
    "treatment.n_evaluation=3",
    "seeds=4",
    "n_phases=2",
]


def planned(folder: Path, *words: str) -> dict[str, Any]:
    return as_json(make_plan(configurations_of([*GRID, f"results_dir={folder}", *words])))


def counts(plan: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {row["part"]: (row["n_left"], row["n_planned"], row["n_quarters"]) for row in plan["rows"]}


def test_shared_phases_and_baselines_count_once(tmp_path: Path) -> None:
    # 2 settings x 2 lengths x 4 seeds; one baseline a length and seed; 2 phases of 4 quarters for all of them.
    assert counts(planned(tmp_path)) == {
        "instrumental phases": (2, 2, 8),
        "baselines": (8, 8, 24),
        "runs": (16, 16, 48),
    }


def test_plan_of_what_is_played_is_empty_and_of_what_is_added_is_what_is_new(tmp_path: Path) -> None:
    (job,) = configurations_of([*GRID, f"results_dir={tmp_path}"])
    settings = validate(job)
    sweep_runs(settings.root, settings.runs)
    done = planned(tmp_path)
    assert [row["n_left"] for row in done["rows"]] == [0, 0, 0]
    assert done["total"]["n_turns"] == 0
    assert done["n_on_disk"] == 26
    assert counts(planned(tmp_path, "seeds=5")) == {
        "instrumental phases": (0, 2, 0),
        "baselines": (2, 10, 6),
        "runs": (4, 20, 12),
    }
    assert counts(planned(tmp_path, "grid.n_instrumental=[2,6]"))["instrumental phases"] == (2, 2, 4)


def test_quarters_that_are_closed_are_left_out(tmp_path: Path) -> None:
    (job,) = configurations_of([*GRID[:3], f"results_dir={tmp_path}", "treatment.n_evaluation=6", "seeds=1"])
    settings = validate(job)
    sweep_runs(settings.root, settings.runs, **limited(run={"max_tokens": 500}))
    n_closed = len(list(record_of(settings.root, settings.runs[0]).of_type("closed")))
    assert 0 < n_closed < 6
    plan = as_json(make_plan([job]))
    assert plan["total"]["n_quarters"] == 6 - n_closed


def test_questions_that_are_left_are_counted(tmp_path: Path) -> None:
    # 8 baselines and 16 runs, asked after quarter 1 and at the end, for two topics.
    words = ["interview.at=[1]", "interview.at_end=true", "interview.awareness=true"]
    assert planned(tmp_path, *words)["total"]["n_turns"] == planned(tmp_path)["total"]["n_turns"] + 24 * 4
    (job,) = configurations_of([*GRID, f"results_dir={tmp_path}", "interview.at=[1]"])
    settings = validate(job)
    sweep_runs(settings.root, settings.runs, interview=settings.interview)
    assert planned(tmp_path, "interview.at=[1]")["total"]["n_turns"] == 0
    assert planned(tmp_path, "interview.at=[1,2]")["total"]["n_turns"] == 0, "it is too late to ask after quarter 2"
    assert planned(tmp_path, *words)["total"]["n_turns"] == 24 * 2
    assert counts(planned(tmp_path, *words))["runs"] == (16, 16, 0)


def test_jobs_of_a_multirun_are_counted_together(tmp_path: Path) -> None:
    assert counts(planned(tmp_path, "shard=1/2,2/2", "--multirun")) == counts(planned(tmp_path))


def test_estimate_is_measured_where_records_of_the_model_are_on_disk(tmp_path: Path) -> None:
    words = ["name=other", "model=local", "models.local.name=m", "models.local.model=m", "treatment.n_instrumental=2"]
    price = ["models.local.service.price.input=1", "models.local.service.price.output=2"]
    (job,) = configurations_of([*words, *price, f"results_dir={tmp_path}", "seeds=2", "n_phases=1"])
    before = as_json(make_plan([job]))
    assert "the paper's table" in before["basis"]["m"]
    assert before["total"]["cost_usd"] > 0

    from experiments.config import validate

    def build(config: ModelConfig) -> Paid:
        return Paid(ModelConfig("m", "scripted", "adherent"))

    settings = validate(job)
    sweep_runs(settings.root, settings.runs[:1], build_model=build)
    (again,) = configurations_of([*words, *price, "name=third", f"results_dir={tmp_path}", "seeds=2", "n_phases=1"])
    after = as_json(make_plan([again]))
    assert after["basis"]["m"].startswith("measured on 2 records of this model with 12 quarters; 89%")
    total = after["total"]
    # Every turn takes 90 tokens of input, 80 of them cached, and 10 of output; cached input has no price of its own.
    assert total["input_tokens"] == 90 * total["n_turns"]
    assert total["cost_usd"] == pytest.approx(total["n_turns"] * (90 * 1 + 10 * 2) / 1e6)


def test_more_instrumental_phases_cost_more_and_both_are_told(tmp_path: Path) -> None:
    words = [*GRID, "model=gpt_4o_mini", "models.gpt_4o_mini.service.base_url=null", f"results_dir={tmp_path}"]
    plan = as_json(make_plan(configurations_of([*words, "seeds=5"])))
    costs = plan["cost_usd_by_n_phases"]
    assert list(costs) == ["1", "2", "5"]
    assert costs["1"] < costs["2"] < costs["5"]
    assert plan["total"]["cost_usd"] == pytest.approx(costs["2"])
    assert plan["total"]["uncached_usd"] > plan["total"]["cost_usd"]
    phases = next(row["cost_usd"] for row in plan["rows"] if row["part"] == "instrumental phases")
    assert costs["5"] - costs["1"] == pytest.approx(4 * phases / 2)


def test_rates_of_a_provider_bound_the_time(tmp_path: Path) -> None:
    words = [*GRID, "model=gpt_4o_mini", f"results_dir={tmp_path}", "models.gpt_4o_mini.service.requests_per_minute="]
    free, slow = (make_plan(configurations_of([*words[:-1], words[-1] + rate])) for rate in ("null", "6"))
    assert slow.wall_s == 10 * slow.total.n_turns
    assert free.wall_s < slow.wall_s


def test_unknown_price_is_said_to_be_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model=local", "models.local.name=m", "models.local.model=m", f"results_dir={tmp_path}"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "cost: unknown with prompt caching" in said
    assert not list(tmp_path.iterdir())


def test_command_needs_no_key_and_writes_nothing(tmp_path: Path) -> None:
    done = apex(
        "plan", "--json", "experiment=goal_switching", "model=gpt_4o_mini", f"results_dir={tmp_path}", OPENAI_API_KEY=""
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total"]["n_turns"] > 0
    assert not list(tmp_path.iterdir())


def test_bad_override_is_one_line(tmp_path: Path) -> None:
    done = apex("plan", "nam=x")
    assert done.returncode == 2
    assert done.stderr.startswith("apex plan: key 'nam' is not known, did you mean 'name'?")
    assert done.stderr.count("\n") == 1
