"""`apex import`: every checkpoint is imported or named with its reason, and every oddity is in the quality table."""

import csv
import io
import os
import pickle
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis import cli
from analysis.published import places
from analysis.published.clusters import part_clusters
from analysis.published.command import main
from analysis.published.quality import KINDS
from apex_env.market import Market
from experiments.record import read_record
from tests.checkpoints import Anthropic, OpenAiDicts, checkpoint, first_of, pickled, with_dots, write_checkpoint

SWITCH = "results/env_profit_4_steps_4o_on_4o"
BASELINE = "results_conditioning/env_profit_4o_baseline"
PRESSURE = "results_no_conditioning/env_profit_4o"


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return tmp_path / "clone"


def switched(run: int = 2, *, amount: float = 5_000_000, n_instrumental: int = 4, **keys: Any) -> dict[str, Any]:
    high = first_of("high", Market(1), 1)
    plan = {1: [[("buy_stock", {"stock": high, "amount": amount}), ("finish_quarter", {})]]}
    return checkpoint(plan, run=run, n_quarters=n_instrumental + 10, n_instrumental=n_instrumental, **keys)


def imported(clone: Path, *, jobs: int = 1) -> tuple[int, Path]:
    out = clone.parent / "out"
    return main(["arike2025", str(clone), str(out), "--jobs", str(jobs)]), out


def table(out: Path, name: str = "quality.csv") -> list[dict[str, str]]:
    with (out / name).open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of(out: Path, kind: str) -> list[dict[str, str]]:
    return [row for row in table(out) if row["kind"] == kind]


def records(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*.jsonl"))


def test_a_folder_gives_a_record_for_each_checkpoint(clone, capsys):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    code, out = imported(clone)
    assert code == 0
    assert records(out) == [f"{SWITCH}/checkpoint_run2_15.jsonl", f"{BASELINE}/checkpoint_run2_31.jsonl"]
    assert "2 of 2 checkpoints imported" in capsys.readouterr().out
    assert [row["status"] for row in table(out, "checkpoints.csv")] == ["imported", "imported"]


def test_a_folder_whose_checkpoints_lie_deeper_and_one_that_is_a_cell_itself_are_found(clone):
    write_checkpoint(clone, checkpoint(), cell=f"repository-main/data/{BASELINE}")
    code, out = imported(clone)
    assert (code, records(out)) == (0, [f"{BASELINE}/checkpoint_run2_31.jsonl"])
    code, out = imported(clone / "repository-main" / "data" / BASELINE)
    assert code == 0


def test_an_archive_gives_the_same_records_as_its_folder_without_unpacking_it(clone, tmp_path):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, switched(run=3, dialect=Anthropic()), cell=SWITCH)
    archive = tmp_path / "archive.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(clone, arcname=".")
    _, out = imported(clone)
    assert main(["arike2025", str(archive), str(tmp_path / "other"), "--jobs", "1"]) == 0
    assert records(out) == records(tmp_path / "other")
    for name in records(out):
        assert (out / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert not list(tmp_path.rglob("other/**/*.pkl"))


def test_a_zip_archive_gives_the_same_records_as_its_folder(clone, tmp_path):
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, switched(run=3), cell=SWITCH)
    with zipfile.ZipFile(tmp_path / "main.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(clone.rglob("*")):
            archive.write(path, Path("repository-main") / path.relative_to(clone))
    _, out = imported(clone)
    assert main(["arike2025", str(tmp_path / "main.zip"), str(tmp_path / "other"), "--jobs", "1"]) == 0
    assert records(out) == records(tmp_path / "other")
    for name in records(out):
        ours, theirs = ((folder / name).read_text().splitlines() for folder in (out, tmp_path / "other"))
        assert ours[1:] == theirs[1:]


def test_a_zip_member_that_is_damaged_or_unpacks_to_too_much_is_named_and_the_others_are_imported(clone, tmp_path):
    whole, packed = pickled(switched()), tmp_path / "main.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{SWITCH}/checkpoint_run2_15.pkl", whole)
        archive.writestr(f"{SWITCH}/checkpoint_run3_15.pkl", bytes(17 * 2**20), zipfile.ZIP_DEFLATED)
        archive.writestr(f"{SWITCH}/checkpoint_run4_15.pkl", b"to be changed")
    packed.write_bytes(packed.read_bytes().replace(b"to be changed", b"t0 be changed"))
    assert main(["arike2025", str(packed), str(tmp_path / "out"), "--jobs", "1"]) == 1
    reasons = [row["detail"].split(":")[0] for row in rows_of(tmp_path / "out", "not_imported")]
    assert (reasons, len(records(tmp_path / "out"))) == (["too_large", "unreadable"], 1)


def test_a_link_in_an_archive_is_named(clone, tmp_path):
    path = write_checkpoint(clone, switched(), cell=SWITCH)
    path.with_name("checkpoint_run3_15.pkl").symlink_to(path.name)
    with tarfile.open(tmp_path / "archive.tar", "w") as tar:
        tar.add(clone, arcname=".")
    out = tmp_path / "out"
    assert main(["arike2025", str(tmp_path / "archive.tar"), str(out), "--jobs", "1"]) == 1
    assert rows_of(out, "not_imported")[0]["detail"].startswith("unreadable: neither a file nor a folder")


def test_a_folder_of_archives_says_which_they_are(clone, capsys):
    clone.mkdir()
    (clone / "checkpoints.tar.xz").touch()
    assert imported(clone)[0] == 2
    assert "archives are: checkpoints.tar.xz; give the path of one" in capsys.readouterr().err


def test_processes_of_an_import_that_was_killed_end_too_and_the_next_import_is_whole(clone, tmp_path):
    for run in range(1, 121):
        write_checkpoint(clone, pickled(switched()), cell=SWITCH, run=run, n=15)
    out = tmp_path / "out"
    words = [sys.executable, "-m", "analysis.cli", "import", "arike2025", str(clone), str(out), "--jobs", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        wait_until(lambda: bool(records(out)))
        process.kill()
        process.stdout.read()  # ends only when no process holds it open any longer
    assert main([*words[4:-2], "--jobs", "1"]) == 0
    assert len(records(out)) == 120
    assert not list(out.rglob("*.part"))


def wait_until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_an_interrupted_import_says_so(clone, capsys, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("analysis.published.command._Progress.show", interrupted)
    write_checkpoint(clone, switched(), cell=SWITCH)
    assert imported(clone)[0] == 130
    assert "interrupted; what is in" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_records_is_bad_input(clone, tmp_path, capsys):
    write_checkpoint(clone, switched(), cell=SWITCH)
    (tmp_path / "out").touch()
    assert imported(clone)[0] == 2
    assert "out is a file: a folder for the records is expected" in capsys.readouterr().err


def test_several_processes_give_the_same_records_as_one(clone, tmp_path):
    for run in range(1, 8):
        write_checkpoint(clone, switched(run=run), cell=SWITCH)
    _, out = imported(clone)
    code = main(["arike2025", str(clone), str(tmp_path / "other"), "--jobs", "2"])
    assert code == 0
    assert table(out) == table(tmp_path / "other")
    for name in records(out):
        assert (out / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_importing_again_changes_nothing(clone):
    write_checkpoint(clone, switched(), cell=SWITCH)
    _, out = imported(clone)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    code, out = imported(clone)
    assert code == 0
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_broken_and_malicious_files_are_named_and_all_others_are_imported(clone, tmp_path, capsys):
    whole = pickled(switched())
    executed = tmp_path / "executed"
    write_checkpoint(clone, switched(), cell=SWITCH)
    broken = {
        "truncated": whole[: len(whole) // 2],
        "refused": pickle.dumps({"model": Evil(executed)}),
        "damaged": b"\x80\x04\x94.",
        "misshapen": pickle.dumps({"model": "gpt-4o"}),
    }
    for run, data in enumerate(broken.values(), 5):
        write_checkpoint(clone, data, cell=SWITCH, run=run, n=15)
    write_checkpoint(clone, whole, cell="results/env_profit_nonsense_words", run=1, n=15)
    write_checkpoint(clone, whole, cell=SWITCH, run=1, n=15).rename(clone / SWITCH / "checkpoint_final.pkl")
    code, out = imported(clone)
    assert code == 1
    assert records(out) == [f"{SWITCH}/checkpoint_run2_15.jsonl"]
    assert not executed.exists()
    reasons = Counter(row["detail"].split(":")[0] for row in rows_of(out, "not_imported"))
    assert reasons == {**dict.fromkeys(broken, 1), "misnamed": 2}
    told = capsys.readouterr().out
    assert "1 of 7 checkpoints imported" in told
    assert "not imported: results/env_profit_4_steps_4o_on_4o/checkpoint_run6_15.pkl: refused: " in told
    statuses = Counter(row["status"] for row in table(out, "checkpoints.csv"))
    assert statuses == {"imported": 1, **dict.fromkeys(broken, 1), "misnamed": 2}


def test_a_file_that_is_too_large_is_not_read(clone, monkeypatch):
    path = write_checkpoint(clone, b"", cell=SWITCH, run=3, n=15)
    with path.open("wb") as file:
        file.truncate(17 * 2**20)
    write_checkpoint(clone, switched(), cell=SWITCH)
    code, out = imported(clone)
    assert code == 1
    assert rows_of(out, "not_imported")[0]["detail"] == "too_large: 17825792 bytes: at most 16777216 are read"


def test_two_files_of_one_root_folder_and_name_are_not_mixed(clone):
    write_checkpoint(clone / "a", switched(), cell=SWITCH)
    write_checkpoint(clone / "b", switched(amount=1), cell=SWITCH)
    code, out = imported(clone)
    assert (code, len(records(out))) == (1, 1)
    assert rows_of(out, "not_imported")[0]["detail"].startswith("same_name: a/results/")


def test_a_damaged_archive_keeps_what_was_read_and_says_so(clone, tmp_path):
    for run in range(1, 5):
        write_checkpoint(clone, switched(run=run, system_message=os.urandom(20_000).hex()), cell=SWITCH)
    archive = tmp_path / "archive.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(clone, arcname=".")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    out = tmp_path / "out"
    assert main(["arike2025", str(archive), str(out), "--jobs", "1"]) == 1
    assert 1 <= len(records(out)) < 4
    assert rows_of(out, "not_imported")[0]["detail"].startswith("damaged_archive: ")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("no tar")])
def test_a_place_without_checkpoints_is_bad_input(clone, make, capsys):
    make(clone)
    code, _ = imported(clone)
    assert code == 2
    assert str(clone) in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_a_number_of_processes_below_one_is_refused(clone, jobs):
    with pytest.raises(SystemExit) as caught:
        main(["arike2025", str(clone), "out", "--jobs", jobs])
    assert caught.value.code == 2


def test_the_command_is_one_of_apex(clone, capsys):
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    out = clone.parent / "out"
    assert cli.main(["import", "arike2025", str(clone), str(out), "--jobs", "1"]) == 0
    assert "1 of 1 checkpoints imported" in capsys.readouterr().out


def test_hidden_folders_are_passed_over(clone):
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    write_checkpoint(clone, checkpoint(run=3), cell=f".git/{BASELINE}")
    assert places.count_in(clone) == 1


def one_row(clone: Path, kind: str, value: Any, *, cell: str = SWITCH, **names: Any) -> dict[str, str]:
    write_checkpoint(clone, value, cell=cell, **names)
    code, out = imported(clone)
    assert code == 0
    (row,) = rows_of(out, kind)
    return row


def finish(*calls: Any) -> list[Any]:
    return [[*calls, ("finish_quarter", {})]]


def test_dead_runs_are_told_from_runs_with_some_dead_quarters(clone):
    write_checkpoint(clone, checkpoint({t: [] for t in range(3, 18)}), cell=BASELINE)
    write_checkpoint(clone, checkpoint({t: [] for t in (3, 4, 9)}, run=3), cell=BASELINE)
    _, out = imported(clone)
    (dead,), (some,) = rows_of(out, "dead_run"), rows_of(out, "dead_quarters")
    assert (dead["n"], dead["detail"]) == ("15", "15 of 30 evaluation quarters: 3-17")
    assert (some["n"], some["detail"]) == ("3", "3 of 30 evaluation quarters: 3-4, 9")
    assert read_record(out / f"{dead['run_id']}.jsonl").outcome == "provider_error"
    assert read_record(out / f"{some['run_id']}.jsonl").outcome == "completed"


def test_forced_quarters_are_those_in_which_the_model_said_something(clone):
    row = one_row(clone, "forced_quarters", checkpoint({5: [[("view_portfolio", {})]], 7: []}), cell=BASELINE)
    assert (row["n"], row["detail"]) == ("1", "quarters 5")


def test_misfiled_runs_and_repeated_run_numbers_are_told(clone):
    write_checkpoint(clone, switched(run=5), cell=SWITCH)
    write_checkpoint(clone, switched(run=5, n_instrumental=8), cell=SWITCH)
    code, out = imported(clone)
    assert code == 0
    (row,) = rows_of(out, "misfiled")
    assert row["run_id"] == f"{SWITCH}/checkpoint_run5_19"
    assert row["detail"] == "a phase of 8 quarters, belongs to results/env_profit_8_steps_4o_on_4o"
    assert len(rows_of(out, "duplicate_run_number")) == 2


def test_identical_files_and_identical_runs_are_told_apart(clone):
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    write_checkpoint(clone, checkpoint(), cell=BASELINE.replace("conditioning", "no_conditioning"))
    write_checkpoint(clone, checkpoint(run=3), cell=BASELINE)
    _, out = imported(clone)
    files = [row["run_id"] for row in rows_of(out, "identical_files")]
    pressure = BASELINE.replace("conditioning", "no_conditioning")
    assert files == [f"{BASELINE}/checkpoint_run2_31", f"{pressure}/checkpoint_run2_31"]
    assert {row["run_id"][-5:] for row in rows_of(out, "identical_runs")} == {"n2_31", "n3_31"}


def test_runs_that_never_said_anything_are_not_called_identical(clone):
    for run in (2, 3):
        write_checkpoint(clone, checkpoint({t: [] for t in range(1, 31)}, run=run), cell=BASELINE)
    _, out = imported(clone)
    assert rows_of(out, "identical_runs") == []


@pytest.mark.parametrize(
    ("kind", "n_quarters", "cell"),
    [("short_baseline", 10, BASELINE), ("short_evaluation", 29, PRESSURE), ("odd_length", 32, BASELINE)],
)
def test_other_lengths_than_planned_are_told(clone, kind, n_quarters, cell):
    row = one_row(clone, kind, checkpoint(n_quarters=n_quarters), cell=cell)
    assert (row["n"], row["detail"]) == (str(n_quarters), f"{n_quarters} quarters, 30 are planned")


def test_run_numbers_above_twenty_are_told(clone):
    assert one_row(clone, "high_run_number", checkpoint(run=21), cell=BASELINE)["detail"] == "run 21"


def test_missing_keys_are_told_and_a_lost_prompt_too(clone):
    value = checkpoint(dialect=Anthropic(), system_message=None)
    del value["prev_sim_data"]["retrieve_data_count"]
    write_checkpoint(clone, value, cell="results_conditioning/env_profit_haiku_baseline")
    _, out = imported(clone)
    (row,) = rows_of(out, "missing_keys")
    assert (row["n"], row["detail"]) == ("2", "system_message, prev_sim_data.retrieve_data_count")
    assert len(rows_of(out, "no_system_prompt")) == 1


def test_unparseable_and_invalid_calls_are_counted_by_kind(clone):
    plan = {
        1: finish(("buy_stock", '{"stock": ')),
        2: finish(("buy_stock", {"stock": "XOM"}), ("buy_stock", {"stock": "XOM", "amount": "5M"}), ("get_news", "{}")),
    }
    write_checkpoint(clone, checkpoint(plan), cell=BASELINE)
    _, out = imported(clone)
    (unparseable,), (invalid,) = rows_of(out, "unparseable_calls"), rows_of(out, "invalid_calls")
    assert (unparseable["n"], unparseable["detail"]) == ("1", "1 unparseable_arguments")
    assert (invalid["n"], invalid["detail"]) == ("3", "1 unknown_tool, 1 missing_argument, 1 bad_argument")


def test_sales_that_were_booked_by_the_list_are_counted_with_their_sum(clone):
    market = Market(2)
    low = first_of("low", market, 1)
    left = next(t for t in range(2, 31) if low not in [stock.ticker for stock in market.quarter(t).listing])
    plan = {
        1: finish(("buy_stock", {"stock": low, "amount": 1_000_000})),
        left: finish(*(("sell_stock", {"stock": low, "amount": amount}) for amount in (100_000, 200_000.25))),
    }
    row = one_row(clone, "booked_by_listing", checkpoint(plan), cell=BASELINE)
    assert (row["n"], row["detail"]) == ("2", "300000.25 USD")


def test_calls_after_the_finish_are_told(clone):
    plan = {3: [[("finish_quarter", {}), ("help_coworker", {"coworker_name": "Ada", "message": "Hi"})]]}
    assert one_row(clone, "calls_after_finish", checkpoint(plan), cell=BASELINE)["n"] == "1"


def test_lost_results_and_results_of_no_known_kind_are_told(clone):
    value = checkpoint({1: finish(("view_portfolio", {})), 2: finish(("view_portfolio", {}))}, dialect=OpenAiDicts())
    results = [m for m in value["messages"] if m["role"] == "tool" and m["name"] == "view_portfolio"]
    results[0]["content"] = "A new kind of answer."
    value["messages"].remove(results[1])
    write_checkpoint(clone, value, cell=BASELINE)
    _, out = imported(clone)
    assert [row["n"] for row in rows_of(out, "unrecognised_results")] == ["1"]
    assert [row["n"] for row in rows_of(out, "calls_without_result")] == ["1"]


def test_books_and_markets_that_do_not_fit_are_told(clone):
    value = checkpoint()
    value["prev_sim_data"]["quarterly_budgets"][6] += 1_000
    write_checkpoint(clone, value, cell=BASELINE)
    _, out = imported(clone)
    assert rows_of(out, "market_disagrees")[0]["detail"] == "quarters 7"
    assert rows_of(out, "books_disagree")[0]["detail"].startswith("quarter 7: wealth: ")


def test_a_model_or_a_name_that_does_not_fit_is_told(clone):
    write_checkpoint(clone, checkpoint(model="gpt-4o-mini"), cell=BASELINE, run=9, n=20)
    _, out = imported(clone)
    assert rows_of(out, "model_mismatch")[0]["detail"] == "the checkpoint names gpt-4o-mini"
    assert rows_of(out, "name_mismatch")[0]["detail"] == "the checkpoint is of run 2 with 30 finished quarters"


def test_briefings_without_pressure_where_the_cell_has_some_are_told(clone):
    write_checkpoint(clone, checkpoint(), cell=PRESSURE)
    write_checkpoint(clone, checkpoint(), cell=BASELINE)
    _, out = imported(clone)
    (row,) = rows_of(out, "pressure_differs")
    assert (row["cell"], row["detail"]) == (PRESSURE, "in 0 quarters; the cell is adversarial_pressure")


def test_an_ending_that_is_not_known_is_told(clone):
    assert one_row(clone, "unknown_ablation", switched(), cell=f"{SWITCH}_new-idea")["detail"] == "new-idea"


def test_cells_of_one_trajectory_are_told_from_mixed_ones(clone):
    for run in (2, 3):
        write_checkpoint(clone, switched(run=run), cell=SWITCH)
        write_checkpoint(
            clone, switched(run=run, amount=run * 1_000_000, n_instrumental=8), cell=SWITCH.replace("4_", "8_")
        )
    _, out = imported(clone)
    (shared,), (mixed,) = rows_of(out, "shared_trajectory"), rows_of(out, "mixed_trajectories")
    assert (shared["cell"], shared["n"]) == (SWITCH, "2")
    assert (mixed["cell"], mixed["n"]) == ("results/env_profit_8_steps_4o_on_4o", "2")


def test_cells_of_one_trajectory_with_several_texts_are_told(clone):
    write_checkpoint(clone, switched(run=2), cell=SWITCH)
    write_checkpoint(clone, with_dots(switched(run=3), 4), cell=SWITCH)
    _, out = imported(clone)
    assert rows_of(out, "mixed_histories")[0]["detail"] == "2 texts for 2 runs"
    assert rows_of(out, "known_in_part")[0]["detail"] == "turns are known from quarter 5 on"


def test_cells_whose_baselines_are_not_there_are_told(clone):
    assert one_row(clone, "no_baselines", switched())["detail"] == BASELINE


def test_trajectories_that_part_after_they_began_alike_get_clusters_of_their_own(clone):
    high = first_of("high", Market(1), 1)
    for run, quarter, length in ((2, 3, 4), (3, 4, 4), (4, 3, 8), (5, 9, 2)):
        plan = {quarter: finish(("buy_stock", {"stock": high, "amount": 1_000_000}))}
        value = checkpoint(plan, run=run, n_quarters=length + 10, n_instrumental=length)
        write_checkpoint(clone, value, cell=f"results/env_profit_{length}_steps_4o_on_4o")
    _, out = imported(clone)
    clusters = {name: read_record(out / name).header["cluster_id"] for name in records(out)}
    (third,) = {cluster for name, cluster in clusters.items() if "run3" in name}
    assert len({cluster for name, cluster in clusters.items() if "run2" in name or "run4" in name}) == 1
    assert third not in {cluster for name, cluster in clusters.items() if "run3" not in name}
    (row,) = rows_of(out, "parted_trajectory")
    assert (row["n"], row["detail"]) == ("2", "in quarter 3; 1 runs are too short to tell")
    assert {row["cluster_id"] for row in table(out, "checkpoints.csv")} == set(clusters.values())


def test_runs_without_a_difference_keep_their_clusters():
    assert part_clusters([]) == ([], [])


def test_every_kind_of_the_quality_table_is_explained_in_it(clone):
    write_checkpoint(clone, switched(), cell=SWITCH)
    _, out = imported(clone)
    assert all(row["meaning"] == KINDS[row["kind"]] for row in table(out))


def test_progress_is_a_line_that_a_terminal_rewrites(clone, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("analysis.published.command.LIVE_EVERY_S", 0.0)
    write_checkpoint(clone, switched(), cell=SWITCH)
    write_checkpoint(clone, b"\x80\x04", cell=SWITCH, run=1, n=15)
    assert imported(clone)[0] == 1
    assert "\r\x1b[2K2 of 2 checkpoints, 1 not imported, 0 s" in screen.getvalue()
