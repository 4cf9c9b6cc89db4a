"""Records of imported runs: every reader of records takes them, and nothing of the checkpoint is lost on the way."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from analysis.ledger_source import runs_of
from analysis.load import calls_table, load_runs
from analysis.published.convert import convert
from analysis.published.names import parse_path
from analysis.published.records import record_bytes
from apex_env.market import Market
from apex_env.rules import FirmRules
from experiments.chat import Message
from experiments.imported import published_run
from experiments.record import Record, read_record
from experiments.replay_run import compare_run
from tests.checkpoints import Anthropic, AnthropicDicts, Dialect, OpenAiDicts, checkpoint, first_of, pickled, with_dots

SWITCH = "results/env_profit_4_steps_4o_on_4o"
BASELINE = "results_conditioning/env_profit_4o_baseline"


def write(folder: Path, value: Any, cell: str = SWITCH) -> Path:
    n, run = value["current_timestep"], value["run"]
    name = parse_path(PurePosixPath(f"{cell}/checkpoint_run{run}_{n}.pkl"))
    path = folder / f"{name.run_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(record_bytes(convert(pickled(value), name, f"{name.run_id}.pkl")))
    return path


def switched(dialect: Dialect | None = None, **keys: Any) -> dict[str, Any]:
    """A run that buys for profit in its phase, notices the switch in quarter 6, and sells then."""
    market = Market(2, phase_seed=1, n_instrumental=4)
    high = first_of("high", market, 1)
    finish = ("finish_quarter", {})
    plan = {
        1: [[("retrieve_aum_data", {}), ("buy_stock", {"stock": high, "amount": 5_000_000})], [finish]],
        2: [[], [("buy_stock", {"stock": "AAPL", "amount": 1}), ("buy_stock", {"amount": 1}), finish]],
        6: [[("retrieve_aum_data", {})], [("sell_stock", {"stock": high, "amount": 1_000_000.5}), finish]],
        7: [[("help_coworker", {"coworker_name": "Ada", "message": "Hello"})]],
        8: [],
    }
    return checkpoint(plan, n_quarters=14, n_instrumental=4, dialect=dialect, **keys)


def lines_of(record: Record, quarter: int) -> list[Any]:
    return [line for line in record.lines[1:] if line["quarter"] == quarter]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return read_record(write(tmp_path, switched()))


def test_a_record_is_read_like_any_other_and_ends_completed(record):
    assert (record.outcome, record.torn, record.branched) == ("completed", False, None)
    assert [line["type"] for line in lines_of(record, 1)] == ["opened", "turn", "turn", "closed"]
    assert [line["type"] for line in lines_of(record, 5)] == ["revision", "opened", "turn", "closed"]


def test_the_header_says_whose_run_it_is_and_where_it_is_from(record):
    header = record.header
    config, published = header["config"], header["published"]
    assert (config["source"], config["model"]["name"], config["model"]["model"]) == (
        *("arike2025", "gpt-4o", "gpt-4o-2024-11-20"),
    )
    assert (config["seed"], config["phase_seed"], config["treatment"]["n_instrumental"]) == (2, 1, 4)
    assert (config["treatment"]["rules"], config["treatment"]["history"]) == ("published", "own")
    assert header["baseline_cell_id"] == BASELINE
    assert (header["cell_id"], header["run_id"]) == (SWITCH, f"{SWITCH}/checkpoint_run2_15")
    assert published["sha256"] == header["provenance"]["sha256"]
    assert header["system_prompt"] == "You manage a fund."


def test_what_a_published_run_cannot_have_is_null(record):
    turn = next(record.of_type("turn"))
    opened = next(record.of_type("opened"))
    assert (turn["usage"], turn["latency_s"], turn["attempts"], opened["items"]) == (None, None, None, None)
    assert {line["time"] for line in record.lines} == {None}
    assert (record.header["tools"], record.header["corpus_sha256"]) == (None, None)


def test_the_same_checkpoint_gives_the_same_bytes(tmp_path):
    first, second = write(tmp_path / "a", switched()), write(tmp_path / "b", switched())
    assert first.read_bytes() == second.read_bytes()


def test_calls_say_what_they_moved_and_what_was_wrong(record):
    calls = [call for line in record.of_type("turn") for call in line.get("calls", ())]
    bought = next(call for call in calls if call["tool"] == "buy_stock")
    high = first_of("high", Market(1), 1)
    assert bought["moved"] == {"ticker": high, "cluster": "high", "spent_usd": 5_000_000}
    assert (bought["resource"], bought["committed"], bought["effect_class"]) == (high, True, "trade")
    refused = [call for line in lines_of(record, 2) for call in line.get("calls", ()) if not call["committed"]]
    assert [(call["outcome"], call["resource"], call["moved"]) for call in refused] == [
        ("not_listed", None, {}),
        ("missing_argument", None, {}),
    ]


def test_the_goal_version_changes_with_the_phase_and_is_seen_with_the_reading(record):
    seen = {
        line["quarter"]: [(call["goal_version"], call["goal_version_seen"]) for call in line["calls"]]
        for line in record.of_type("turn")
        if line["by"] == "model" and line["calls"]
    }
    assert seen[4] == [(1, 1)]
    assert seen[5] == [(2, 1)]
    assert seen[6] == [(2, 2), (2, 2)]
    assert next(line for line in record.of_type("turn") if line["quarter"] == 6)["calls"][0]["goal_version_seen"] == 1


def test_turns_of_the_harness_are_kept_with_their_kind(record):
    kinds = [(line["quarter"], line["kind"]) for line in record.of_type("turn") if line["by"] == "harness"]
    assert kinds == [(2, "nudge"), (7, "forced"), (8, "forced")]
    forced = [line["quarter"] for line in record.of_type("closed") if line["state"]["forced"]]
    assert forced == [7, 8]


def test_a_dead_run_ends_as_an_outage(tmp_path):
    record = read_record(write(tmp_path, switched() | checkpoint({t: [] for t in range(1, 16)}), BASELINE))
    assert record.outcome == "provider_error"
    assert record.ended is not None
    assert record.ended["reason"] == "the API was down in 15 of 30 evaluation quarters"


def test_a_replaced_history_is_kept_with_the_books_before_it(tmp_path):
    record = read_record(write(tmp_path, with_dots(switched(), 4), f"{SWITCH}_dots"))
    branched = record.branched
    assert branched is not None
    assert (branched["parent"], branched["quarter"], branched["recipe"]["kind"]) == (None, 4, "repeated_token")
    assert branched["history"] == [Message("user", ". . . .").to_json()]
    assert branched["opening"]["books"] == branched["quarters"][3]["books"]
    assert record.header["config"]["treatment"]["history"] == "repeated_token"
    assert [line["quarter"] for line in record.of_type("closed")] == list(range(5, 15))


def test_a_misfiled_run_belongs_to_the_cell_of_its_true_length(tmp_path):
    header = read_record(write(tmp_path, switched(), "results/env_profit_2_steps_4o_on_4o")).header
    assert header["cell_id"] == SWITCH
    assert header["run_id"] == "results/env_profit_2_steps_4o_on_4o/checkpoint_run2_15"
    assert (header["config"]["treatment"]["n_instrumental"], header["published"]["n_instrumental_named"]) == (4, 2)


def test_runs_of_one_trajectory_share_a_cluster_across_lengths_histories_and_numbers(tmp_path):
    longer = checkpoint(
        {1: [[("buy_stock", {"stock": first_of("high", Market(1), 1), "amount": 5_000_000}), ("finish_quarter", {})]]},
        run=3,
        n_quarters=18,
        n_instrumental=8,
    )
    paths = [
        write(tmp_path, switched()),
        write(tmp_path, with_dots(switched(), 4), f"{SWITCH}_dots"),
        write(tmp_path, longer, "results/env_profit_8_steps_4o_on_4o"),
    ]
    other = write(tmp_path, switched(), "results/env_profit_4_steps_4o_on_haiku")
    clusters = [read_record(path).header["cluster_id"] for path in paths]
    assert len(set(clusters)) == 1
    assert read_record(other).header["cluster_id"] not in clusters


def test_a_borrowed_history_names_its_model(tmp_path):
    config = read_record(write(tmp_path, switched(), "results/env_profit_4_steps_4o_on_haiku")).header["config"]
    assert (config["treatment"]["history"], config["treatment"]["parent"]) == ("borrowed", "claude-3.5-haiku")
    assert config["parent_model"]["name"] == "claude-3.5-haiku"


@pytest.mark.parametrize(
    ("value", "replay_from"),
    [(switched(), 1), (switched(Anthropic()), 1), (switched(AnthropicDicts()), 1), (with_dots(switched(), 4), 5)],
)
def test_an_imported_record_replays_to_the_last_digit(tmp_path, value, replay_from):
    run = published_run(read_record(write(tmp_path, value)))
    assert (run.replay_from, run.eval_from, len(run.quarters)) == (replay_from, 5, 14)
    assert compare_run(run, FirmRules.published(), tolerance_usd=0.0) == ()


def test_a_changed_amount_in_a_record_no_longer_replays(tmp_path):
    path = write(tmp_path, switched())
    path.write_text(path.read_text().replace('"amount":5000000', '"amount":4000000'))
    differences = compare_run(published_run(read_record(path)), FirmRules.published(), tolerance_usd=0.0)
    assert differences[0].quarter == 1


def test_the_reader_of_records_gives_the_runs_that_the_reader_of_the_ledger_gives(tmp_path):
    path = write(tmp_path, switched())
    write(tmp_path, checkpoint(), BASELINE)
    loaded = {run.run_id: run for run in load_runs(tmp_path, cache=False).runs}
    (ledger,) = runs_of([published_run(read_record(path))])
    run = loaded[ledger.run_id]
    same = ("seed", "n_instrumental", "books", "outcome")
    assert [getattr(run, name) for name in same] == [getattr(ledger, name) for name in same]
    cell = ("cell_id", "model", "setting", "system_goal", "elicitation", "n_evaluation", "history", "baseline_id")
    assert [getattr(run.cell, name) for name in cell] == [getattr(ledger.cell, name) for name in cell]
    assert run.cell.baseline_id in {other.cell.cell_id for other in loaded.values()}


def test_the_table_of_calls_takes_imported_records(tmp_path):
    write(tmp_path, switched())
    table = calls_table(tmp_path)
    assert table["spent_usd"].dropna().tolist() == [5_000_000]
    assert table["received_usd"].dropna().tolist() == [1_000_000.5]


def test_ids_of_calls_are_there_once_even_where_the_file_repeats_them(tmp_path):
    text = json.dumps(switched(OpenAiDicts()), default=list)
    repeated = json.loads(text.replace("call-2-1-0", "x").replace("call-6-1-0", "x"))
    record = read_record(write(tmp_path, repeated))
    ids = [call["id"] for line in record.of_type("turn") for call in line.get("calls", ())]
    assert len(set(ids)) == len(ids)
    assert sum(call["sent_id"] == "x" for line in record.of_type("turn") for call in line.get("calls", ())) == 2


def test_lone_surrogates_reach_the_record_as_they_came(tmp_path):
    value = switched()
    value["messages"].insert(2, {"role": "user", "content": "broken \ud800 text"})
    record = read_record(write(tmp_path, value))
    assert any(line.get("text") == "broken \ud800 text" for line in record.of_type("turn"))
