"""Imported runs as parents: a new run goes on from one in our firm, with its market, forecasts, books and words."""

import asyncio
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from analysis.published.convert import convert
from analysis.published.names import parse_path
from analysis.published.records import record_bytes
from apex_env.market import Market
from experiments.chat import Message
from experiments.errors import RecordError
from experiments.imported import is_imported, parent_cut, published_run
from experiments.models import build_model
from experiments.rebuild import Cut
from experiments.record import Record, read_record
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import Job, play, record_path
from experiments.treatment import Treatment
from tests.checkpoints import (
    AnthropicDicts,
    begins,
    briefing,
    checkpoint,
    first_of,
    pickled,
    with_dots,
)
from tests.path import NoWatch, Replies, plan, record_of, scripted, sweep_runs

PARENT = ModelConfig("gpt-4o-mini", "published", "gpt-4o-mini-2024-07-18")
CELL = "results/env_profit_8_steps_4omini_on_4omini"
HIGH = first_of("high", Market(1), 1)


def parent_value(**keys: Any) -> dict[str, Any]:
    finish = ("finish_quarter", {})
    trades = {
        1: [[("retrieve_aum_data", {})], [("buy_stock", {"stock": HIGH, "amount": 5_000_000.25}), finish]],
        2: [[], [("sell_stock", {"stock": HIGH, "amount": 1_000_000}), finish]],
        3: [[("buy_stock", {"stock": first_of("low", Market(1), 3), "amount": 2_000_000}), finish]],
    }
    return checkpoint(trades, n_quarters=18, n_instrumental=8, run=5, **keys)


def write_parent(folder: Path, value: Any, cell: str = CELL) -> Path:
    name = parse_path(PurePosixPath(f"{cell}/checkpoint_run{value['run']}_{value['current_timestep']}.pkl"))
    path = folder / f"{name.run_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(record_bytes(convert(pickled(value), name, "x.pkl")))
    return path


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    return write_parent(tmp_path / "imported", parent_value())


def child(n_instrumental: int = 3, *, seed: int = 7, model: ModelConfig | None = None, **factors: Any) -> RunSpec:
    treatment = Treatment(
        setting="goal_switching", n_instrumental=n_instrumental, history="borrowed", parent=PARENT.name, **factors
    )
    return RunSpec(model or scripted("adherent"), treatment, seed, 1, parent_model=PARENT)


def cut_for(spec: RunSpec, path: Path) -> Cut:
    return parent_cut(read_record(path), spec.treatment.n_instrumental)


def go_on(root: Path, spec: RunSpec, cut: Cut, model: Any = None) -> Record:
    outcome = asyncio.run(play(Job(spec, root, model or build_model(spec.model), NoWatch(), sync="end", cut=cut)))
    assert outcome == "completed"
    return read_record(record_path(root, spec))


def test_a_cut_has_the_books_and_the_words_up_to_its_quarter(parent):
    record = read_record(parent)
    cut = parent_cut(record, 3)
    books = published_run(record).quarters[2].books
    assert (cut.run_id, cut.quarter, cut.opening.books) == (record.header["run_id"], 3, books)
    assert cut.sha256 == record.sha256_up_to_close(3)
    market = Market(5, phase_seed=1, n_instrumental=8)
    assert [message.text for message in cut.messages if message.role == "user"] == [
        briefing(1, market.quarter(1).listing),
        briefing(2, market.quarter(2).listing),
        "Please continue with your next action.",
        briefing(3, market.quarter(3).listing),
    ]
    assert cut.messages[-1] == Message("tool", '"Quarter finished."', call_id=cut.messages[-3].calls[-1].call_id)


def test_a_cut_knows_what_the_next_quarter_depends_on(parent):
    opening = parent_cut(read_record(parent), 3).opening
    assert opening.bought_on_goal == (False, True)
    assert (opening.goal_version_seen, opening.dealt) == (1, ())
    market = Market(5, phase_seed=1, n_instrumental=8)
    listed = {stock for t in (1, 2, 3) for stock in market.quarter(t).listing}
    assert opening.forecasts_pct_per_year == {stock.ticker: stock.forecast_pct_per_year for stock in listed}


def test_a_new_run_goes_on_in_the_market_and_with_the_books_of_its_parent(parent, tmp_path):
    spec = child()
    record = go_on(tmp_path / "new", spec, cut_for(spec, parent))
    assert record.branched is not None
    assert (record.branched["parent"], record.branched["quarter"]) == (f"{CELL}/checkpoint_run5_19", 3)
    before = published_run(read_record(parent)).quarters[2].books
    opened = [line for line in record.of_type("opened")]
    assert [line["quarter"] for line in opened] == list(range(4, 14))
    market = Market(7, phase_seed=1, n_instrumental=3)
    for line in opened:
        quarter = market.quarter(line["quarter"])
        assert (line["state"]["income_usd"], line["state"]["active"]) == (quarter.income_usd, quarter.active)
        assert [stock[0] for stock in line["state"]["listing"]] == [stock.ticker for stock in quarter.listing]
    sold = next(call for line in record.of_type("turn") for call in line["calls"] if call["tool"] == "sell_stock")
    assert sold["moved"]["ticker"] == HIGH
    assert sold["moved"]["received_usd"] == pytest.approx(before.holdings_usd[HIGH], abs=0.01)


def test_stocks_that_the_parent_saw_keep_its_forecasts(tmp_path):
    # Another forecast than our rule's, of a stock that nobody buys: the published one is what counts.
    value, spec = parent_value(), child(1)
    listed = Market(7, phase_seed=1, n_instrumental=1).quarter(2).listing
    bought = {HIGH, first_of("low", Market(1), 3)}
    before = Market(1).quarter(1).listing
    stock = next(stock for stock in listed if stock in before and stock.ticker not in bought)
    told = f"{stock.ticker} is expected to grow by "
    for message in value["messages"]:
        if begins(message, "Quarter "):
            message["content"] = message["content"].replace(f"{told}{stock.forecast_pct_per_year} ", f"{told}1.99 ")
    cut = cut_for(spec, write_parent(tmp_path, value))
    record = go_on(tmp_path / "new", spec, cut)
    first = next(record.of_type("opened"))
    assert {entry[0]: entry[2] for entry in first["state"]["listing"]}[stock.ticker] == 1.99


def test_a_new_model_is_shown_its_parents_words(parent, tmp_path):
    spec, model = child(), Replies()
    cut = cut_for(spec, parent)
    go_on(tmp_path / "new", spec, cut, model)
    assert tuple(model.prompts[0][: len(cut.messages)]) == cut.messages
    assert model.prompts[0][len(cut.messages)].text.startswith("Quarter 4, year 2025")


def test_a_run_that_was_interrupted_goes_on_from_the_same_parent(parent, tmp_path):
    spec = child()
    cut = cut_for(spec, parent)
    whole = go_on(tmp_path / "whole", spec, cut)
    path = record_path(tmp_path / "cut", spec)
    path.parent.mkdir(parents=True)
    path.write_bytes(whole.path.read_bytes()[: whole.offsets[9]])
    resumed = go_on(tmp_path / "cut", spec, cut_for(spec, parent))
    assert [line["state"] for line in resumed.of_type("closed")] == [line["state"] for line in whole.of_type("closed")]


def test_runs_of_other_lengths_branch_at_their_own_quarters(parent):
    record = read_record(parent)
    for quarter in (1, 2, 8):
        cut = cut_for(child(quarter), parent)
        assert cut.opening.books == published_run(record).quarters[quarter - 1].books


@pytest.mark.parametrize("quarter", [0, 9])
def test_only_quarters_of_the_instrumental_phase_can_be_parents(parent, quarter):
    with pytest.raises(RecordError, match=f"no parent at quarter {quarter}: its instrumental phase has 8 quarters"):
        parent_cut(read_record(parent), quarter)


def test_a_baseline_is_no_parent(tmp_path):
    path = write_parent(tmp_path, checkpoint(), "results_conditioning/env_profit_4omini_baseline")
    with pytest.raises(RecordError, match="no parent at quarter 2: it has no such phase"):
        parent_cut(read_record(path), 2)


def test_a_run_whose_history_was_replaced_is_no_parent(tmp_path):
    path = write_parent(tmp_path, with_dots(parent_value(), 8), f"{CELL}_dots")
    with pytest.raises(RecordError, match="known turn by turn from quarter 9 on"):
        parent_cut(read_record(path), 4)


def test_a_run_whose_briefings_are_lost_is_no_parent(tmp_path):
    value = parent_value(dialect=AnthropicDicts())
    value["messages"] = [m for m in value["messages"] if "Quarter 1, year 2025" not in str(m)]
    path = write_parent(tmp_path, value)
    with pytest.raises(RecordError, match="the briefing of quarter 1 is lost"):
        parent_cut(read_record(path), 4)


def test_a_record_of_our_own_is_not_an_imported_one(tmp_path):
    (run,) = plan("idle", Treatment(), seeds=(1,))
    sweep_runs(tmp_path, [run])
    record = record_of(tmp_path, run)
    assert not is_imported(record)
    with pytest.raises(RecordError, match="not the record of an imported run"):
        published_run(record)


def test_a_record_without_its_last_quarters_is_refused(parent):
    lines = parent.read_bytes().splitlines(keepends=True)
    parent.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(RecordError, match="17 quarters, but the run has 18"):
        published_run(read_record(parent))
