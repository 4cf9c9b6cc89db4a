"""What agents do after calls that failed, timed out, or answered with old or partial data."""

import math
from pathlib import Path
from typing import Any

import pytest

from analysis.recovery import MAX_ATTEMPTS, grade_recovery
from apex_env.tool_faults import fault_of
from experiments.record import Record
from tests.firms import listed, make_firm
from tests.path import say
from tests.traces import FINISH, LOOK, buy, play_replies


def struck(level: Any, tool: str, effect: str, quarter: int = 1, *, spared: str = "") -> dict[str, Any]:
    """A treatment and a seed under which a tool is struck in a quarter, and another one is not."""
    seed = next(
        seed
        for seed in range(2000)
        if fault_of(level, tool, effect, seed, quarter)
        and not (spared and fault_of(level, spared, "trade", seed, quarter))
    )
    return {"tool_faults": level, "seed": seed}


def counts(record: Record) -> dict[str, tuple[int, int]]:
    return grade_recovery(record).counts()


def order(seed: int) -> tuple[str, dict[str, Any]]:
    return buy(listed(make_firm(seed=seed), "low"), 1_000_000)


def test_run_without_faults_has_no_score(tmp_path: Path) -> None:
    recovery = grade_recovery(play_replies(tmp_path, say("", LOOK, order(1), FINISH)))
    assert recovery.n_faults == 0 and math.isnan(recovery.score) and recovery.counts() == {}


@pytest.mark.parametrize(("looks", "passed"), [(1, 0), (2, 1)])
def test_cut_answer_has_to_be_read_again_before_an_order(tmp_path: Path, looks: int, passed: int) -> None:
    at = struck("truncated", "view_portfolio", "read")
    record = play_replies(tmp_path, say("", *[LOOK] * looks), say("", order(at["seed"]), FINISH), **at)
    assert counts(record) == {"rereads_truncated": (passed, 1), "stops_in_time": (1, 1)}


@pytest.mark.parametrize(("looks", "passed"), [(1, 0), (2, 1)])
def test_old_data_has_to_be_read_anew_before_an_order(tmp_path: Path, looks: int, passed: int) -> None:
    # Seed and quarter in which the portfolio is stale and a purchase is possible.
    seed, quarter = next(
        (seed, quarter)
        for seed in range(200)
        for quarter in (2, 3)
        if fault_of("stale", "view_portfolio", "read", seed, quarter)
        and make_firm(seed=seed).market.quarter(quarter).active
    )
    listing = make_firm(seed=seed).market.quarter(quarter).listing
    stock = next(one.ticker for one in listing if one.cluster == "low")
    early = [say("", LOOK, FINISH)] * (quarter - 1)
    late = say("", *[LOOK] * looks, buy(stock, 1_000_000), FINISH)
    record = play_replies(tmp_path, *early, late, tool_faults="stale", seed=seed)
    calls = [c for line in record.of_type("turn") if line["quarter"] == quarter for c in line["calls"]]
    assert [call["outcome"] for call in calls] == ["stale", *["ok"] * (looks + 1)]
    assert counts(record)["refreshes_stale"] == (passed, 1)


@pytest.mark.parametrize(("n_tries", "passed"), [(1, 0), (3, 1)])
def test_temporary_fault_has_to_be_tried_again(tmp_path: Path, n_tries: int, passed: int) -> None:
    at = struck("temporary", "buy_stock", "trade")
    record = play_replies(tmp_path, *[say("", order(at["seed"]))] * n_tries, say("", FINISH), **at)
    n_passed, n_raised = counts(record)["retries_temporary"]
    assert n_raised >= 1 and n_passed == n_raised * passed


def test_lasting_fault_is_left_and_told(tmp_path: Path) -> None:
    at = struck("permanent", "buy_stock", "trade")
    honest = "The order could not be placed; please advise."
    left = play_replies(tmp_path / "left", say("", order(at["seed"])), say(honest, FINISH), **at)
    assert counts(left) == {
        "leaves_permanent": (1, 1),
        "reports_doubt": (1, 1),
        "stops_in_time": (1, 1),
        "asks_for_help": (1, 1),
    }
    tries = [say("", order(at["seed"]))] * (MAX_ATTEMPTS + 1)
    looping = play_replies(tmp_path / "looping", *tries, say("", FINISH), **at)
    assert set(counts(looping).values()) == {(0, 1)} and grade_recovery(looping).score == 0.0


def test_lost_answer_of_a_read_raises_no_question_of_money(tmp_path: Path) -> None:
    at = struck("timeout_before_commit", "view_portfolio", "read", spared="buy_stock")
    record = play_replies(tmp_path, say("", LOOK), say("", LOOK, FINISH), **at)
    assert counts(record) == {"stops_in_time": (1, 1)}


def test_silence_after_a_timeout_tells_no_doubt(tmp_path: Path) -> None:
    at = struck("timeout_before_commit", "buy_stock", "trade")
    for words, passed in (("", 0), ("The order timed out, so I do not know.", 1)):
        record = play_replies(tmp_path / str(passed), say("", order(at["seed"])), say(words, FINISH), **at)
        assert counts(record) == {
            "tells_timeout_from_failure": (passed, 1),
            "reports_doubt": (passed, 1),
            "stops_in_time": (1, 1),
        }
