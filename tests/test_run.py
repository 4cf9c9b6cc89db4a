"""The command line of `apex run`: every configuration composes, every experiment plays, bad input is one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis.load import load_runs
from experiments.config import FACTORS
from experiments.launchers import PLUGINS, is_installed
from experiments.overrides import problem_in, secret_in
from experiments.run import CONF_DIR
from tests.path import contents

EXPERIMENTS = sorted(path.stem for path in (CONF_DIR / "experiment").glob("*.yaml"))
MODELS = sorted(path.stem for path in (CONF_DIR / "model").glob("*.yaml"))
TREATMENTS = sorted(path.stem for path in (CONF_DIR / "treatment").glob("*.yaml"))


def apex(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analysis.cli", *words],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | environment,
    )


def test_configuration_lists_every_factor() -> None:
    data = yaml.safe_load((CONF_DIR / "config.yaml").read_text())
    assert list(data["treatment"]) == list(data["grid"]) == list(FACTORS)


@pytest.mark.parametrize(
    "group", [f"experiment={name}" for name in EXPERIMENTS] + [f"treatment={name}" for name in TREATMENTS]
)
def test_every_configuration_composes(group: str) -> None:
    assert problem_in([group], CONF_DIR) == ""


@pytest.mark.parametrize("name", MODELS)
def test_every_model_composes_under_its_own_key(name: str) -> None:
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(CONF_DIR), version_base="1.3"):
        config = compose("config", overrides=[f"model={name}"])
    assert list(config.models) == [name]


def test_run_ends_with_outcomes_and_the_place_of_the_records(tmp_path: Path) -> None:
    done = apex("run", "name=t", f"results_dir={tmp_path}", "seeds=1", "treatment.n_instrumental=2")
    assert done.returncode == 0, done.stderr
    assert "2 runs of t: 2 completed" in done.stdout
    assert str(tmp_path / "t") in done.stdout
    assert len(load_runs(tmp_path / "t").runs) == 2


def test_folders_are_kept_apart_and_the_working_folder_stays(tmp_path: Path) -> None:
    done = apex("run", "name=t", f"results_dir={tmp_path}", "seeds=1", "treatment=baseline", "treatment.n_evaluation=2")
    assert done.returncode == 0
    (hydra,) = (tmp_path / "t" / "_hydra").iterdir()
    assert (hydra / ".hydra" / "overrides.yaml").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_multirun_splits_a_grid_and_gives_the_records_of_one_process(tmp_path: Path) -> None:
    grid = ["seeds=2", "treatment.n_instrumental=2", "treatment.n_evaluation=2", "model=random"]
    assert apex("run", "name=t", f"results_dir={tmp_path}/whole", *grid).returncode == 0
    split = apex("run", "name=t", f"results_dir={tmp_path}/split", *grid, "shard=1/2,2/2", "-m")
    assert split.returncode == 0, split.stderr
    assert contents(tmp_path / "whole") == contents(tmp_path / "split")


def test_failing_job_of_a_multirun_lets_the_others_finish_and_is_told_by_the_exit_code(tmp_path: Path) -> None:
    done = apex(
        "run", "name=t", f"results_dir={tmp_path}", "treatment=baseline", "treatment.n_evaluation=2", "seeds=0,1", "-m"
    )
    assert done.returncode == 2
    assert "seeds 0 is not allowed" in done.stderr
    assert "1 completed" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nam=x"], "key 'nam' is not known, did you mean 'name'?"),
        (["treatment.n_instrumetal=3"], "did you mean 'treatment.n_instrumental'?"),
        (["treatment=combind"], "did you mean 'combined'?"),
        (["model=adherant"], "did you mean 'adherent'?"),
        (["treatment=baseline,combind", "-m"], "did you mean 'combined'?"),
        (["treatment.setting=sabotage"], "setting 'sabotage' is not allowed: baseline"),
        (["seeds=[8192]"], "seeds: 8192 is not allowed"),
        (["treatment.n_instrumental=0"], "n_instrumental 0 is not allowed with setting 'goal_switching'"),
        (["treatment.n_evaluation=-1"], "must not be negative"),
    ],
)
def test_bad_input_is_one_line_and_writes_no_record(words: list[str], said: str, tmp_path: Path) -> None:
    done = apex("run", "name=t", f"results_dir={tmp_path}", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.jsonl"))


def test_results_folder_that_is_a_file_is_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    done = apex("run", "name=t", f"results_dir={tmp_path}/results")
    assert done.returncode == 2
    assert "is a file, where a folder is expected" in done.stderr
    assert "Traceback" not in done.stderr


def test_refused_command_leaves_nothing_that_asks_to_be_played(tmp_path: Path) -> None:
    results = tmp_path / "results"
    done = apex("run", "model=gpt_4o_mini", f"results_dir={results}", OPENAI_API_KEY="")
    assert done.returncode == 2 and "OPENAI_API_KEY is not set" in done.stderr
    assert list(tmp_path.rglob("*")) == [results]
    (results / "mine.txt").write_text("kept")
    assert apex("run", "target=mine:agent", f"results_dir={results}").returncode == 2
    assert [path.name for path in results.rglob("*")] == ["mine.txt"]


def test_target_without_an_agent_that_would_play_it_is_refused() -> None:
    done = apex("run", "model=adherent", "target=mine:agent")
    assert done.returncode == 2
    assert "target 'mine:agent' needs an agent of its own to be played: model=python" in done.stderr


def test_agent_of_ones_own_without_a_target_is_named() -> None:
    done = apex("run", "model=python")
    assert done.returncode == 2
    assert "needs the agent: target=package.module:agent" in done.stderr


def test_key_on_the_command_line_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = apex("run", f"results_dir={tmp_path}", "++models.adherent.service.api_key=sk-canary0123456789")
    assert done.returncode == 2
    assert "canary" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "word", ["a.api_key=x", "a.token=x", "+a.secret=x", "a.note=sk-abcdefghijkl", "x.password=1", "sk-abcdefghijklmnop"]
)
def test_what_looks_like_a_key_is_refused(word: str) -> None:
    assert "looks like a key" in secret_in([word])


@pytest.mark.parametrize("word", ["a.api_key_env=MY_KEY", "a.max_tokens=5", "a.params.token_limit=3", "a.api_key=null"])
def test_what_only_names_a_key_is_not(word: str) -> None:
    assert secret_in([word]) == ""


def test_completion_knows_commands_groups_and_fields() -> None:
    assert "run" in apex("-sc", "query=bash", COMP_LINE="apex r", COMP_POINT="6").stdout.split()
    groups = apex("-sc", "query=bash", COMP_LINE="apex run model=ad", COMP_POINT="17").stdout.split()
    assert groups == ["model=adherent"]
    fields = apex("-sc", "query=bash", COMP_LINE="apex run treatment.n_i", COMP_POINT="22").stdout.split()
    assert fields == ["treatment.n_instrumental="]


def test_cfg_prints_the_configuration_and_plays_nothing(tmp_path: Path) -> None:
    done = apex("run", "--cfg", "job", f"results_dir={tmp_path}", "experiment=combined")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["name"] == "combined"
    assert not list(tmp_path.rglob("*.jsonl"))


def test_experiment_plays_from_the_command_line(tmp_path: Path) -> None:
    done = apex("run", "experiment=smoke", f"results_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    loaded = load_runs(tmp_path / "smoke")
    assert f"{len(loaded.runs)} runs of smoke: {len(loaded.runs)} completed" in done.stdout
    assert all(run.outcome == "completed" for run in loaded.runs)


def test_launcher_that_is_not_installed_is_named_with_what_installs_it(tmp_path: Path) -> None:
    absent = [name for name, package in PLUGINS.items() if not is_installed(package)]
    if not absent:
        pytest.skip("every launcher is installed here")
    done = apex("run", "seeds=1,2", f"results_dir={tmp_path}", f"hydra/launcher={absent[0]}", "--multirun")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"needs the plugin {PLUGINS[absent[0]]}: `make setup-cluster` installs it" in done.stderr
