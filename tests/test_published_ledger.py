"""The reading of the published ledger: typed runs; what is not in order is named by file, line, run and place."""

import copy
import gzip
import json
from collections import Counter
from typing import Any

import pytest

from apex_env.ledger import Flow
from apex_env.market import Market
from experiments.published_ledger import LedgerError, PublishedCall, read_each, read_ledger
from tests.published import from_quarter, make_run, write_ledger


def refusal(path: Any) -> str:
    with pytest.raises(LedgerError) as error:
        list(read_ledger(path))
    return str(error.value)


def spoilt(*place: Any, to: Any) -> dict[str, Any]:
    """A run with one entry changed, or left out where ``to`` is None."""
    run = copy.deepcopy(make_run())
    at: Any = run
    for key in place[:-1]:
        at = at[key]
    if to is None:
        del at[place[-1]]
    else:
        at[place[-1]] = to
    return run


@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.jsonl.gz", "ledger.without-ending"])
def test_runs_come_in_the_order_of_the_file(tmp_path, name):
    path = write_ledger(tmp_path / name, make_run(2), make_run(5))
    assert [run.run for run in read_ledger(path)] == [2, 5]


def test_run_is_told_in_the_words_of_the_project(tmp_path):
    switch = make_run(
        n_quarters=12,
        setting="ablation_dots",
        elicitation="instrumental",
        eval_from=3,
        phase_seed=2,
        conditioned_on="4o",
        instrumental_steps=8,
    )
    (run,) = read_ledger(write_ledger(tmp_path / "l.jsonl", switch))
    assert (run.setting, run.ablation, run.elicitation) == ("goal_switching", "dots", None)
    assert (run.system_goal, run.competing_goal) == ("emissions", "profit")
    assert (run.n_instrumental, run.n_instrumental_named, run.phase_seed) == (2, 8, 2)
    pressed = make_run(setting="adversarial", elicitation="weak")
    (run,) = read_ledger(write_ledger(tmp_path / "p.jsonl", pressed))
    assert (run.setting, run.elicitation, run.ablation) == ("adversarial_pressure", "weak", None)


def test_quarter_has_books_listing_and_calls(tmp_path):
    (run,) = read_ledger(write_ledger(tmp_path / "l.jsonl", make_run()))
    first, second = run.quarters[:2]
    market = Market(2).quarter(1)
    assert (first.books.quarter, first.books.income_usd, first.books.active) == (1, 8_745_415, True)
    assert (first.books.bought_usd, first.books.cash_usd) == (Flow(1_000_000, 7_745_415), 0.0)
    assert first.books.returns_pct_per_year == {
        stock.ticker: stock.forecast_pct_per_year for stock in market.listing if stock.ticker in ("DNNGY", "SLB")
    }
    assert [stock.ticker for stock in first.listing] == ["DNNGY", "BEPC", "SPWR", "SLB", "CF", "BP"]
    assert first.calls[1] == PublishedCall("buy_stock", "ok", "DNNGY", 1_000_000.0, 1_000_000.0)
    assert [call.outcome for call in second.calls[1:4]] == ["unavailable", "budget_exceeded", "ok"]
    assert first.wealth_usd == pytest.approx(sum(first.books.holdings_usd.values()))
    assert (run.quarters[4].books.forced, run.quarters[8].listing, run.quarters[8].books.active) == (True, None, False)


def test_quarters_without_calls_have_books_and_the_flag_of_the_market(tmp_path):
    run = from_quarter(make_run(), 10)
    (read,) = read_ledger(write_ledger(tmp_path / "l.jsonl", run))
    assert [quarter.calls is None for quarter in read.quarters] == [True] * 9 + [False]
    assert [books.active for books in read.books] == [Market(2).quarter(t).active for t in range(1, 11)]
    assert read.books[7].returns_pct_per_year == {} != read.books[8].returns_pct_per_year


@pytest.mark.parametrize(
    ("place", "to", "told"),
    [
        (("run",), 8200, "seed 8200 is not allowed: an integer from 0 to 8191"),
        (("run",), "2", "run is '2': a whole number of 0 or more is expected"),
        (("run",), True, "run is True: a whole number"),
        (("id",), 5, "run 5: id is 5: a text is expected"),
        (("setting",), "calm", "setting is 'calm': expected is one of baseline, adversarial"),
        (("system_goal",), None, "system_goal is None: expected is one of env, profit"),
        (("elicitation",), ["weak"], "elicitation is ['weak']: expected is one of weak"),
        (("elicitation",), "instrumental", "elicitation and eval_from 1 do not fit"),
        (("eval_from",), 3, "setting and eval_from 3 do not fit"),
        (("eval_from",), 11, "eval_from 11 is beyond the last quarter, 10"),
        (("phase_seed",), 1, "phase_seed and eval_from 1 do not fit"),
        (("replay_from",), 2, "quarter 1: inactive is False: it must be given from replay_from on, and only there"),
        (("n_quarters",), 9, "n_quarters is 9, but there are 10 quarters"),
        (("quarters",), {}, "quarters is {}: a list is expected"),
        (("quarters", 2), None, "n_quarters is 10, but there are 9 quarters"),
        (("quarters", 2), 7, "quarter 3: 7 where an object is expected"),
        (("quarters", 2, "t"), 4, "quarter 3: t is 4: quarters must be complete and in order from 1"),
        (("quarters", 0, "t"), True, "quarter 1: t is True"),
        (("quarters", 2, "income"), 9e6, "quarter 3: income is 9000000.0: a whole number"),
        (("quarters", 2, "inactive"), "no", "quarter 3: inactive is 'no': true or false is expected"),
        (("quarters", 2, "forced"), None, "quarter 3: forced is None: it must be given"),
        (("quarters", 2, "calls"), "none", "quarter 3: calls is 'none': a list is expected"),
        (("quarters", 2, "stocks", 0), ["SHEL", "low", 1.0], "quarter 3: stocks holds ['SHEL', 'low', 1.0]"),
        (("quarters", 2, "stocks", 0, 1), "high", "[ticker, low or high, forecast] of the market is expected"),
        (("quarters", 2, "stocks", 0, 2), "1.0", "quarter 3: stocks holds"),
        (("quarters", 2, "end"), [], "quarter 3: end is []: an object is expected"),
        (("quarters", 2, "end", "budget"), "0", "quarter 3: budget is '0': a number is expected"),
        (("quarters", 2, "end", "profit"), None, "quarter 3: profit is None: a number is expected"),
        (("quarters", 2, "end", "invested"), [1.0], "quarter 3: invested is [1.0]: two numbers are expected"),
        (("quarters", 2, "end", "divested"), [1, "2"], "quarter 3: divested is [1, '2']: two numbers"),
        (("quarters", 2, "end", "holdings"), [], "quarter 3: holdings is []: an object is expected"),
        (("quarters", 2, "end", "holdings", "SHEL"), 1.0, "quarter 3: holdings holds 'SHEL', which is not in the mar"),
        (("quarters", 2, "end", "holdings", "SLB"), "1", "quarter 3: holdings of SLB is '1': a number is expected"),
        (("quarters", 0, "calls", 1), "buy", "quarter 1: call 2: 'buy': an object is expected"),
        (("quarters", 0, "calls", 1, "name"), "steal", "quarter 1: call 2: name is 'steal': expected is one of"),
        (("quarters", 0, "calls", 1, "name"), ["buy_stock"], "quarter 1: call 2: name is ['buy_stock']"),
        (("quarters", 0, "calls", 1, "outcome"), "fine", "quarter 1: call 2: outcome is 'fine': expected is one of ok"),
        (("quarters", 0, "calls", 1, "outcome"), {}, "quarter 1: call 2: outcome is {}"),
        (("quarters", 0, "calls", 1, "amount"), None, "buy_stock needs ticker and amount"),
        (("quarters", 0, "calls", 1, "amount"), "5", "quarter 1: call 2: amount is '5': a number is expected"),
        (("quarters", 0, "calls", 1, "ticker"), "SHEL", "quarter 1: call 2: ticker 'SHEL' is not in the market"),
        (("quarters", 0, "calls", 1, "ticker"), "XOM", "quarter 1: 'XOM' was bought, but is not among the stocks"),
        (("quarters", 0, "calls", 3, "tickers"), ["SLB", 5], "quarter 1: call 4: tickers is ['SLB', 5]"),
    ],
)
def test_what_is_not_in_order_is_named_with_file_line_run_and_place(tmp_path, place, to, told):
    path = write_ledger(tmp_path / "ledger.jsonl", make_run(3), spoilt(*place, to=to))
    message = refusal(path)
    assert message.startswith(f"{path}:2: run ") and told in message, message


def test_state_before_the_calls_needs_the_returns_of_all_holdings(tmp_path):
    run = from_quarter(make_run(), 4)
    del run["quarters"][2]["end"]["returns"]
    told = refusal(write_ledger(tmp_path / "l.jsonl", run))
    assert "quarter 3: returns must be given for every holding in the quarter before replay_from" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"id": "x", ', "not a JSON object, or cut off"),
        (b"\n", "not a JSON object, or cut off"),
        (b"[1, 2]\n", "[1, 2] where a JSON object is expected"),
        (b"\xff\xfe\n", "not a JSON object, or cut off"),
        (b'{"id": NaN}\n', "not a JSON object, or cut off"),
        (b"{}\n", "run '?': setting is None: a text is expected"),
    ],
)
def test_line_that_is_no_run_is_named(tmp_path, line, told):
    path = write_ledger(tmp_path / "l.jsonl", make_run(), edit=lambda data: data + line)
    message = refusal(path)
    assert message.startswith(f"{path}:2: ") and told in message


def test_cut_line_is_named_and_the_lines_before_it_are_read(tmp_path):
    path = write_ledger(tmp_path / "l.jsonl", make_run(2), make_run(3), edit=lambda data: data[:-500])
    read = [run for _, run in read_each(path)]
    assert [isinstance(run, LedgerError) for run in read] == [False, True]


def test_lines_after_a_bad_one_can_still_be_read(tmp_path):
    path = write_ledger(tmp_path / "l.jsonl", make_run(2), spoilt("run", to=-1), make_run(3))
    assert [(number, isinstance(run, LedgerError)) for number, run in read_each(path)] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_run_that_stands_there_twice_is_named_with_both_lines(tmp_path):
    path = write_ledger(tmp_path / "l.jsonl", make_run(2), make_run(3), make_run(2))
    assert f"{path}:3: run 'results/env_profit_4o_baseline/checkpoint_run2_11' stands in line 1 already" in refusal(
        path
    )


def test_file_that_cannot_be_read_is_named(tmp_path):
    missing, empty, fake, cut = (tmp_path / name for name in ("none.jsonl", "empty.gz", "fake.jsonl.gz", "cut.gz"))
    empty.write_bytes(gzip.compress(b""))
    fake.write_bytes(json.dumps(make_run()).encode())
    whole = gzip.compress(b"\n".join(json.dumps(make_run(seed)).encode() for seed in range(2, 12)))
    cut.write_bytes(whole[: len(whole) // 2])
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(whole[:3000] + bytes(byte ^ 255 for byte in whole[3000:3100]) + whole[3100:])
    (tmp_path / "plain.jsonl").write_bytes(b"")
    assert "No such file or directory" in refusal(missing)
    assert "directory" in refusal(tmp_path).lower()
    assert "the file is empty" in refusal(empty) and "the file is empty" in refusal(tmp_path / "plain.jsonl")
    assert "not a gzip file, though its name ends in .gz" in refusal(fake)
    assert "damaged or cut off after line" in refusal(cut)
    assert "damaged" in refusal(damaged)
    for path in (missing, empty, fake, cut, damaged):
        assert refusal(path).startswith(f"{path}: ")


def test_published_runs_are_all_read(arike2025):
    runs = list(read_ledger(arike2025 / "ledger.jsonl.gz"))
    assert len(runs) == 1507
    assert Counter(run.setting for run in runs) == {"goal_switching": 948, "baseline": 240, "adversarial_pressure": 319}
    assert Counter(run.ablation for run in runs) == {None: 1112, "dots": 395}
    assert sum(len(run.quarters) for run in runs) == 41_800
    assert sum(quarter.calls is not None for run in runs for quarter in run.quarters) == 36_914
    assert sum(run.phase_seed == 4 for run in runs) == 5
    misfiled = [run for run in runs if run.n_instrumental != run.n_instrumental_named]
    assert [run.run for run in misfiled] == [5, 5]
