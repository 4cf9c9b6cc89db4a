"""The import of the paper's own checkpoints, against the ledger and the tables that were made of them without it."""

import csv
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.ledger_source import runs_of
from analysis.load import load_runs
from analysis.published.command import main
from apex_env.rules import FirmRules
from experiments.imported import published_run
from experiments.published_ledger import read_ledger
from experiments.published_runs import PublishedRun
from experiments.record import read_record
from experiments.replay_run import compare_run
from tests.path import scripted
from tests.test_imported import child, cut_for, go_on

SAMPLE_EVERY = 40
"""Every how manyeth checkpoint of the archive the default tests import."""

ODD = {
    "results/env_profit_2_steps_4o_on_4o_random-strings": ("random_strings", 3),
    "results/env_profit_4_steps_sonnet_on_sonnet_random-strings": ("random_strings", 5),
    "results/env_profit_2_steps_4omini_on_4omini_random-sentences": ("random_sentences", 3),
    "results/env_profit_2_steps_haiku_on_haiku_random-sentences": ("random_sentences", 3),
    "results/env_profit_2_steps_4omini_on_4omini_portfolio-complexity": ("none", 3),
    "results/env_profit_8_steps_haiku_on_haiku_portfolio-complexity": ("none", 9),
    "results/env_profit_64_steps_4o_on_4o_portfolio-complexity": ("none", 65),
    "results/env_profit_2_steps_4omini_on_4omini_distractions": ("own", 1),
    "results/env_profit_4_steps_4omini_on_4omini_distractions": ("own", 1),
    "results/env_profit_2_steps_haiku_on_haiku_distractions": ("own", 1),
    "results_conditioning/env_profit_2_steps_sonnet_on_4omini": ("borrowed", 1),
    "results_conditioning/env_profit_2_steps_4omini_on_sonnet": ("borrowed", 1),
    "results_conditioning/env_profit_2_steps_4omini_on_haiku": ("borrowed", 1),
    "results_conditioning/env_profit_2_steps_haiku_on_sonnet_distractions": ("borrowed", 1),
    "results_conditioning/env_profit_2_steps_haiku_on_4omini_distractions": ("borrowed", 3),
    "results_conditioning/env_profit_4_steps_sonnet_on_4omini_distractions": ("borrowed", 5),
}
"""What the model saw of its phase, and the first quarter known turn by turn, of the checkpoints from other folders."""


def unpack(archive: Path, folder: Path, *, every: int = 1) -> Path:
    """Write some checkpoints of an archive below a folder; the archive is read once, from its beginning."""
    n = 0
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            if not member.isfile() or not member.name.endswith(".pkl"):
                continue
            n += 1
            opened = tar.extractfile(member)
            assert opened is not None
            if n % every == 0:
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(opened.read())
    return folder


@pytest.fixture(scope="module")
def sample(arike2025: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a sample of the shared checkpoints."""
    folder = tmp_path_factory.mktemp("sample")
    source = unpack(arike2025 / "checkpoints.tar.xz", folder / "clone", every=SAMPLE_EVERY)
    assert main(["arike2025", str(source), str(folder / "out"), "--jobs", "1"]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def odd(arike2025: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the checkpoints from other folders."""
    out = tmp_path_factory.mktemp("odd") / "out"
    assert main(["arike2025", str(arike2025 / "odd_checkpoints.tar.xz"), str(out), "--jobs", "1"]) == 0
    return out


@pytest.fixture(scope="module")
def everything(arike2025: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of all shared checkpoints, straight from the archive."""
    out = tmp_path_factory.mktemp("all") / "out"
    assert main(["arike2025", str(arike2025 / "checkpoints.tar.xz"), str(out)]) == 0
    return out


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of(out: Path, kind: str) -> dict[str, dict[str, str]]:
    return {row["run_id"]: row for row in table(out / "quality.csv") if row["kind"] == kind}


def in_common(run: PublishedRun) -> PublishedRun:
    """The run without what the ledger leaves out: returns of positions in quarters without calls, and pressure."""
    quarters = (
        quarter
        if quarter.calls is not None
        else replace(quarter, books=replace(quarter.books, returns_pct_per_year={}))
        for quarter in run.quarters
    )
    # The ledger has no briefings, so it cannot tell that runs of the repeated token were under pressure.
    setting = "combined" if run.ablation == "dots" else run.setting
    return replace(run, quarters=tuple(quarters), setting=setting)


def imported_beside_ledger(out: Path, ledger: Path) -> Iterator[tuple[PublishedRun, PublishedRun]]:
    for run in read_ledger(ledger):
        path = out / f"{run.run_id}.jsonl"
        if path.exists():
            yield published_run(read_record(path)), run


def check_equal_and_replayed(out: Path, ledger: Path) -> int:
    n = 0
    for ours, theirs in imported_beside_ledger(out, ledger):
        assert in_common(ours) == in_common(theirs), theirs.run_id
        assert compare_run(ours, FirmRules.published(), tolerance_usd=0.0) == (), theirs.run_id
        n += 1
    return n


def test_a_sample_of_imported_runs_is_that_of_the_ledger_and_replays(sample, arike2025):
    assert check_equal_and_replayed(sample, arike2025 / "ledger.jsonl.gz") == 1507 // SAMPLE_EVERY


def test_checkpoints_of_other_folders_are_known_from_the_right_quarter_on(odd):
    found = {}
    for path in odd.rglob("*.jsonl"):
        header = read_record(path).header
        history, published = header["config"]["treatment"]["history"], header["published"]
        found[f"{published['root']}/{published['folder']}"] = (history, published["known_from"])
    assert found == ODD


def test_checkpoints_of_other_folders_replay(odd):
    for path in odd.rglob("*.jsonl"):
        run = published_run(read_record(path))
        assert compare_run(run, FirmRules.published(), tolerance_usd=0.0) == (), path


def test_oddities_of_other_folders_are_told(odd):
    kinds = Counter(row["kind"] for row in table(odd / "quality.csv"))
    assert not {"books_disagree", "market_disagrees", "oddity", "unrecognised_results"} & set(kinds)
    assert {run_id.split("/")[1] for run_id in rows_of(odd, "dead_run")} == {
        "env_profit_2_steps_haiku_on_4omini_distractions",
        "env_profit_2_steps_haiku_on_sonnet_distractions",
        "env_profit_2_steps_haiku_on_haiku_random-sentences",
    }
    assert rows_of(odd, "lost_briefings").keys() == {
        "results_conditioning/env_profit_2_steps_4omini_on_haiku/checkpoint_run5_13",
        "results_conditioning/env_profit_2_steps_4omini_on_sonnet/checkpoint_run2_13",
    }


def test_a_scripted_agent_goes_on_from_a_published_phase_as_the_published_runs_did(odd, tmp_path):
    # A run of the combined setting whose phase GPT-4o mini played; in our firm another agent takes over in quarter 5.
    path = odd / "results/env_profit_4_steps_4omini_on_4omini_distractions/checkpoint_run9_15.jsonl"
    parent = published_run(read_record(path))
    spec = child(4, seed=9, model=scripted("adherent"))
    record = go_on(tmp_path, spec, cut_for(spec, path))
    opened = {line["quarter"]: line["state"] for line in record.of_type("opened")}
    assert list(opened) == list(range(5, 15))
    for quarter in parent.quarters[4:]:
        state = opened[quarter.books.quarter]
        assert (state["income_usd"], state["active"]) == (quarter.books.income_usd, quarter.books.active)
        if quarter.listing is not None:
            assert [entry[0] for entry in state["listing"]] == [stock.ticker for stock in quarter.listing]
    seen = {stock.ticker: stock.forecast_pct_per_year for q in parent.quarters[:4] for stock in q.listing or ()}
    shown = {entry[0]: entry[2] for state in opened.values() for entry in state["listing"]}
    assert {ticker: shown[ticker] for ticker in seen if ticker in shown} == {
        t: f for t, f in seen.items() if t in shown
    }
    assert record.branched is not None
    assert record.branched["opening"]["books"] == parent.quarters[3].books.to_json()


@pytest.mark.slow
def test_all_imported_runs_are_those_of_the_ledger_and_replay(everything, arike2025):
    assert check_equal_and_replayed(everything, arike2025 / "ledger.jsonl.gz") == 1507


@pytest.mark.slow
def test_the_quality_table_finds_what_is_known_of_the_shared_checkpoints(everything, arike2025):
    runs = table(arike2025 / "runs.csv")
    dead = {row["file"].removesuffix(".pkl") for row in runs if row["dead_run"] == "True"}
    assert rows_of(everything, "dead_run").keys() == dead
    forced = {row["file"].removesuffix(".pkl"): int(row["forced_quarters"]) for row in runs}
    closed = Counter[str]()
    for kind in ("forced_quarters", "dead_run", "dead_quarters"):
        closed.update({run_id: int(row["n"]) for run_id, row in rows_of(everything, kind).items()})
    assert closed == Counter({run_id: n for run_id, n in forced.items() if n})
    assert sorted(rows_of(everything, "misfiled")) == [
        "results/env_profit_2_steps_sonnet_on_sonnet_dots/checkpoint_run5_15",
        "results/env_profit_8_steps_4o_on_4o_dots/checkpoint_run5_27",
    ]
    counts = Counter(row["kind"] for row in table(everything / "quality.csv"))
    expected = {"duplicate_run_number": 4, "short_baseline": 5, "odd_length": 63, "unparseable_calls": 1}
    assert {kind: counts[kind] for kind in expected} == expected
    assert not {"not_imported", "books_disagree", "market_disagrees", "oddity", "unrecognised_results"} & set(counts)


@pytest.mark.slow
def test_the_readers_of_records_and_of_the_ledger_give_the_same_runs(everything, arike2025):
    loaded = {run.run_id: run for run in load_runs(everything, cache=False).runs}
    ledger = runs_of(read_ledger(arike2025 / "ledger.jsonl.gz"))
    assert len(loaded) == len(ledger) == 1507
    for run in ledger:
        ours = loaded[run.run_id]
        window = run.window
        assert (ours.seed, ours.outcome, ours.outcome_reason) == (run.seed, run.outcome, run.outcome_reason)
        assert (ours.cell.cell_id, ours.cell.model, ours.cell.history) == (
            *(run.cell.cell_id, run.cell.model, run.cell.history),
        )
        assert ours.quarters(window) == run.quarters(window), run.run_id
        assert ours.closed(run.n_instrumental) == run.closed(run.n_instrumental) or run.n_instrumental == 0


@pytest.mark.slow
def test_all_lengths_of_a_model_share_a_trajectory_except_where_the_phase_was_played_anew(everything):
    clusters = Counter(row["cluster_id"] for row in table(everything / "checkpoints.csv") if "_steps_" in row["file"])
    assert sorted(clusters.values()) == [5, 215, 220, 251, 257]
    mixed = [row["cell"] for row in table(everything / "quality.csv") if row["kind"] == "mixed_trajectories"]
    assert mixed == ["results/env_profit_64_steps_4omini_on_4omini"]
