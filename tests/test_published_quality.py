"""The quality table of an import: every oddity of the checkpoints is found in the data and told."""

from pathlib import Path
from typing import Any

import pytest

from analysis.published.clusters import part_clusters
from analysis.published.quality import KINDS
from apex_env.market import Market
from experiments.record import read_record
from tests.checkpoints import Anthropic, OpenAiDicts, checkpoint, first_of, with_dots, write_checkpoint
from tests.published_clones import BASELINE, PRESSURE, SWITCH, imported, records, rows_of, switched, table


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return tmp_path / "clone"


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
