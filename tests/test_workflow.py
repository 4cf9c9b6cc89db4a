"""Workflows with alternatives, options and partial orders, and records seen as handoffs."""

from pathlib import Path
from typing import Any

import pytest

from analysis.conformance import detect_behavioral_drift, reconstruct_chain
from analysis.handoffs import check_quarters, trajectories
from analysis.workflow import BadPattern, furthest
from experiments.treatment import Treatment
from tests.path import plan, record_of, sweep_runs


def fits(pattern: Any, chain: str) -> bool:
    return furthest(pattern, list(chain)) is None


def test_alternatives_and_options() -> None:
    pattern = ["a", {"one_of": ["b", ["c", "d"]]}, {"optional": "e"}, "f"]
    assert all(fits(pattern, chain) for chain in ("abf", "acdf", "abef", "acdef"))
    assert not any(fits(pattern, chain) for chain in ("af", "acf", "abcdf", "abee", "abfe", ""))


def test_unordered_members_occur_once_each_and_in_the_partial_order() -> None:
    pattern = {"any_order": ["a", "b", "c"], "before": [[0, 2]]}
    assert {chain for chain in ("abc", "acb", "bac", "bca", "cab", "cba") if fits(pattern, chain)} == {
        "abc",
        "acb",
        "bac",
    }
    assert not fits(pattern, "ab") and not fits(pattern, "abca")


def test_repetition_ends_even_where_its_member_can_be_empty() -> None:
    assert fits([{"repeat": {"optional": "a"}}, "b"], "aaab") and fits([{"repeat": {"optional": "a"}}, "b"], "b")
    assert not fits({"repeat": "a"}, "")


@pytest.mark.parametrize(
    "bad",
    [
        7,
        "",
        {},
        {"any": ["a"]},
        {"one_of": []},
        {"one_of": "a"},
        {"any_order": ["a"], "before": [[0, 1]]},
        {"optional": 1},
    ],
)
def test_what_is_no_pattern_is_refused(bad: Any) -> None:
    with pytest.raises(BadPattern):
        furthest(bad, ["a"])


def test_quarters_of_a_run_are_typed_contiguous_chains(tmp_path: Path) -> None:
    runs = plan("adherent", Treatment("baseline", n_evaluation=5), seeds=[1])
    sweep_runs(tmp_path, runs)
    record = record_of(tmp_path, runs[0])
    quarters = list(trajectories(record))
    assert len(quarters) == 5
    for quarter in quarters:
        chain = reconstruct_chain(quarter)
        expected = {"kind": "handoff-chain", "chain": chain, "returns_to": "management"}
        assert chain[:2] == ["management", "agent"] and chain[-1] == "management"
        assert detect_behavioral_drift(quarter, {"scenarios": [{"category": "handoff", "predicate": expected}]}) == []
    visit = {"one_of": [["markets", "agent"], ["coworkers", "agent"], ["data", "agent"]]}
    allowed = ["management", "agent", {"optional": {"repeat": visit}}, "management"]
    assert check_quarters(record, allowed) == {}
    no_trade = ["management", "agent", {"optional": {"repeat": ["data", "agent"]}}, "management"]
    traded = [q["quarter"] for q in quarters if "markets" in reconstruct_chain(q)]
    assert traded and list(check_quarters(record, no_trade)) == [
        q["quarter"] for q in quarters if set(reconstruct_chain(q)) & {"markets", "coworkers"}
    ]
