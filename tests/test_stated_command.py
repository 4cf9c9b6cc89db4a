"""`apex stated` from records and from the published ledger to tables, labels and figure."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from analysis.report.command import main as stats
from analysis.stated.command import main
from experiments.interview import Interview
from experiments.run_spec import ModelConfig
from experiments.treatment import Treatment
from tests.path import plan, scripted, sweep_runs
from tests.peers import Peer, Reply
from tests.wire import DIRECT, config_of, scripted_brain

SWITCHES = [Treatment("goal_switching", "emissions", n_instrumental=length, n_evaluation=3) for length in (1, 8)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    runs = plan("inertial", *SWITCHES, seeds=[1, 2], n_phases=2)
    sweep_runs(folder, runs, interview=Interview(at_end=True, awareness=True))
    return folder


def test_stated_goals_of_runs_are_classified_and_the_runs_left_as_they_are(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in results.rglob("*.jsonl")}
    assert main([str(results), "--out", str(tmp_path)]) == 0
    assert {path: path.read_bytes() for path in results.rglob("*.jsonl")} == before
    labels = pd.read_csv(tmp_path / "labels-rules.csv").set_index("run_id")["label"]
    switched = {run: label for run, label in labels.items() if "-goal_switching-" in str(run)}
    assert {label for run, label in switched.items() if "-I8-" in str(run)} != {"system"}
    assert {label for run, label in switched.items() if "-I1-" in str(run)} == {"system"}
    assert {"cells.csv", "behaviour.csv", "awareness.csv", "answers.csv", "stated-rules.png", "stated-rules.csv"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert "stated goal against score" in capsys.readouterr().out
    assert stats([str(results), "--labels", str(tmp_path / "labels-rules.csv")]) == 0
    assert "labels without a run" not in capsys.readouterr().out


def test_judge_and_hand_labels_stand_beside_the_rules(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results), "--out", str(tmp_path / "first")]) == 0
    hand = tmp_path / "first" / "labels-rules.csv"
    with Peer(lambda view: Reply(text="system")) as peer:
        config = config_of("chat", peer)
        file = tmp_path / "judge.yaml"
        entry = {"name": "j", "adapter": config.adapter, "model": config.model, "params": dict(config.params)}
        file.write_text(yaml.safe_dump(entry | {"service": dict(config.service)}))
        out = tmp_path / "o"
        words = [str(results), "--hand", str(hand), "--judge", str(file), "--repeats", "2", "--out", str(out)]
        assert main(words) == 0
        n_asked = len(peer.log)
        assert main(words) == 0
        assert len(peer.log) == n_asked
        assert all(request.body["temperature"] == 0 for request in peer.log)
    n_texts = pd.read_csv(out / "answers.csv").query("topic == 'goal'")["answer"].nunique()
    assert n_asked == 2 * n_texts
    told = capsys.readouterr().out
    assert f"judge: {n_asked} verdicts asked for now" in told and "judge: 0 verdicts asked for now" in told
    assert "2 verdicts on one answer agree in 1.000 of their pairs" in told
    pairs = pd.read_csv(out / "agreement.csv").set_index(["first", "second"])
    assert pairs.loc[("rules", "hand"), "agree"] == 1.0
    assert set(pairs.index) == {("rules", "judge"), ("rules", "hand"), ("judge", "hand")}


def answers(folder: Path, model: ModelConfig) -> list[tuple[str, int, str, str]]:
    """Topic, quarter, class and words of what the one switching run says."""
    sweep_runs(folder, plan(model, SWITCHES[1], seeds=[1], n_phases=1), interview=Interview(at_end=True))
    assert main([str(folder), "--out", str(folder / "_stated")]) == 0
    table = pd.read_csv(folder / "_stated" / "answers.csv")
    table = table[table["cell"].str.contains("goal_switching")]
    return list(table[["topic", "quarter", "rules", "answer"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("route", DIRECT)
def test_agent_behind_a_wire_states_what_it_states_in_the_process(route: str, tmp_path: Path) -> None:
    with Peer(scripted_brain("inertial", seed=1)) as peer:
        over_the_wire = answers(tmp_path / "wire", config_of(route, peer, name="inertial"))
    assert peer.log.rejections == []
    assert over_the_wire == answers(tmp_path / "here", scripted("inertial"))
    assert [row[:3] for row in over_the_wire] == [("goal", 11, "hybrid")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--repeats", "0"], "--repeats 0 is not allowed: 1 to 25"),
        (["--judge", "j.yaml"], "--judge needs --out"),
        (["--hand", "none.csv"], "none.csv: labels cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results), *words]) == 2
    assert told in capsys.readouterr().err


def test_label_that_is_none_is_named_with_its_line(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,label\nx,perhaps\n")
    assert main([str(results), "--hand", str(labels)]) == 2
    assert "line 2: label 'perhaps' is not known: 1 or system, 2 or hybrid, 3 or competing, unclear" in (
        capsys.readouterr().err
    )


def test_results_without_interviews_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep_runs(tmp_path, plan("adherent", SWITCHES[0], seeds=[1], n_phases=1))
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "no stated goal is known" in told and "1 runs have no answer after their last quarter" in told


def test_published_labels_go_with_the_published_scores(arike2025: Path, tmp_path: Path) -> None:
    ledger, labels = arike2025 / "ledger.jsonl.gz", arike2025 / "stated_goals.csv"
    assert main([str(ledger), "--convention", "reference", "--hand", str(labels), "--out", str(tmp_path)]) == 0
    table = pd.read_csv(tmp_path / "behaviour.csv")
    over_all = table[table["model"] == "all"].set_index("score")
    assert list(over_all["n"]) == [480, 480]
    # Recomputed with scipy.stats.spearmanr from runs.csv and stated_goals.csv alone.
    assert over_all.loc["gd_actions", "spearman"] == pytest.approx(0.634, abs=5e-4)
    assert over_all.loc["gd_inaction", "spearman"] == pytest.approx(0.608, abs=5e-4)
