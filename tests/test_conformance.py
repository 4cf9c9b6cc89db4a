"""Behavioural conformance: recorded handoffs against expected chains."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.conformance import Finding, MalformedTrajectory, detect_behavioral_drift, reconstruct_chain

EARLY, LATE = date(2026, 6, 30), date(2026, 7, 1)


def trajectory(*hops: tuple[Any, ...]) -> dict[str, Any]:
    """A trajectory of hops (from, to[, mediator]), numbered in order and typed."""
    return {
        "handoff_edges": [
            {
                "sequence": number,
                "from_agent": hop[0],
                "to_agent": hop[1],
                "payload_schema_id": "note",
                "mediated_by": hop[2] if len(hop) > 2 else None,
            }
            for number, hop in enumerate(hops, 1)
        ]
    }


def suite(*chains: list[str], returns_to: str | None = None) -> dict[str, Any]:
    predicates = [{"kind": "handoff-chain", "chain": chain} for chain in chains]
    if returns_to:
        predicates = [predicate | {"returns_to": returns_to} for predicate in predicates]
    return {"scenarios": [{"category": "handoff", "predicate": predicate} for predicate in predicates]}


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


STRAIGHT = trajectory(("boss", "trader"), ("trader", "auditor"))


def test_chain_follows_the_sequence_and_not_the_order_of_the_list() -> None:
    shuffled = {"handoff_edges": STRAIGHT["handoff_edges"][::-1]}
    assert reconstruct_chain(shuffled) == ["boss", "trader", "auditor"]
    assert detect_behavioral_drift(shuffled, suite(["boss", "trader", "auditor"]), today=LATE) == []


@pytest.mark.parametrize("empty", [{}, {"handoff_edges": []}, {"handoff_edges": None}])
def test_no_handoffs_where_some_are_expected_are_one_hard_finding(empty: dict[str, Any]) -> None:
    assert reconstruct_chain(empty) == []
    found = detect_behavioral_drift(empty, suite(["a", "b"]))
    assert [(finding.code, finding.severity) for finding in found] == [("BEHAVIOR_NO_TRAJECTORY", "HARD")]
    assert detect_behavioral_drift(empty, {"scenarios": []}) == []


@pytest.mark.parametrize(
    "hops",
    [
        (("a", "b"), ("c", "d")),
        (("a", "b"), ("a", "c")),
    ],
    ids=["gap", "fork"],
)
def test_each_gap_or_fork_is_one_broken_chain(hops: tuple[tuple[str, str], ...]) -> None:
    expected = suite(reconstruct_chain(trajectory(*hops)))
    assert codes(detect_behavioral_drift(trajectory(*hops), expected)) == ["BEHAVIOR_BROKEN_CHAIN"]
    twice = trajectory(*hops, ("x", "y"))
    assert codes(detect_behavioral_drift(twice, suite(reconstruct_chain(twice)))) == ["BEHAVIOR_BROKEN_CHAIN"] * 2


def test_two_handoffs_of_one_sequence_number_are_a_fork() -> None:
    edges = [dict(edge, sequence=1) for edge in STRAIGHT["handoff_edges"]]
    found = detect_behavioral_drift({"handoff_edges": edges}, suite(["boss", "trader", "auditor"]))
    assert codes(found) == ["BEHAVIOR_BROKEN_CHAIN"] and "fork" in found[0].message


def test_chain_must_equal_one_of_the_expected_chains() -> None:
    assert detect_behavioral_drift(STRAIGHT, suite(["boss", "trader"], ["boss", "trader", "auditor"])) == []
    found = detect_behavioral_drift(STRAIGHT, suite(["boss", "trader"], ["boss", "auditor"]))
    assert codes(found) == ["BEHAVIOR_CHAIN_DIVERGENCE"]
    assert "boss -> trader -> auditor" in found[0].message


def test_hops_through_the_mediator_do_not_matter_to_the_chain() -> None:
    routed = trajectory(("boss", "trader"), ("trader", "boss"), ("boss", "auditor"), ("auditor", "boss"))
    assert detect_behavioral_drift(routed, suite(["boss", "trader", "auditor"], returns_to="boss")) == []
    relayed = trajectory(("boss", "trader"), ("trader", "relay"), ("relay", "auditor", "relay"))
    assert detect_behavioral_drift(relayed, suite(["boss", "trader", "auditor"])) == []


def test_naming_a_worker_as_mediator_does_not_excuse_its_absence() -> None:
    skipped = trajectory(("boss", "trader", "auditor"))
    assert codes(detect_behavioral_drift(skipped, suite(["boss", "trader", "auditor"]))) == [
        "BEHAVIOR_CHAIN_DIVERGENCE"
    ]


def test_return_is_seen_in_a_mediator_or_in_a_receiver() -> None:
    expected = suite(["boss", "trader", "auditor"], returns_to="boss")
    found = detect_behavioral_drift(STRAIGHT, expected)
    assert [(finding.code, finding.severity) for finding in found] == [("BEHAVIOR_MISSING_RETURN", "HARD")]
    assert detect_behavioral_drift(trajectory(("boss", "trader"), ("trader", "auditor", "boss")), expected) == []
    back = trajectory(("boss", "trader"), ("trader", "auditor"), ("auditor", "boss"))
    assert detect_behavioral_drift(back, expected) == []


@pytest.mark.parametrize(("today", "severity"), [(EARLY, "WARN"), (LATE, "HARD")])
@pytest.mark.parametrize("schema", [None, ""])
def test_untyped_payload_is_a_warning_until_the_cutoff(today: date, severity: str, schema: str | None) -> None:
    untyped = {"handoff_edges": [dict(edge, payload_schema_id=schema) for edge in STRAIGHT["handoff_edges"]]}
    found = detect_behavioral_drift(untyped, suite(["boss", "trader", "auditor"]), today=today)
    assert [(finding.code, finding.severity) for finding in found] == [("PAYLOAD_UNTYPED", severity)] * 2


def test_other_categories_and_predicates_expect_nothing() -> None:
    others = {
        "scenarios": [
            {"category": "tool", "predicate": {"kind": "handoff-chain", "chain": ["x"]}},
            {"category": "handoff", "predicate": {"kind": "regex", "pattern": "x"}},
        ]
    }
    assert detect_behavioral_drift(STRAIGHT, others) == []
    assert detect_behavioral_drift({}, others) == []


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"handoff_edges": "none"}, "handoff_edges is str: a list"),
        ({"handoff_edges": ["a"]}, r"handoff_edges\[0\] is str"),
        ({"handoff_edges": [{"sequence": "1", "from_agent": "a", "to_agent": "b"}]}, "sequence '1'"),
        ({"handoff_edges": [{"sequence": True, "from_agent": "a", "to_agent": "b"}]}, "sequence True"),
        ({"handoff_edges": [{"sequence": 1, "from_agent": "", "to_agent": "b"}]}, "from_agent ''"),
        ({"handoff_edges": [{"sequence": 1, "from_agent": "a"}]}, "to_agent None"),
    ],
)
def test_malformed_trajectories_are_refused_by_place(bad: dict[str, Any], told: str) -> None:
    with pytest.raises(MalformedTrajectory, match=told):
        detect_behavioral_drift(bad, suite(["a"]))


def test_malformed_suites_are_refused_by_place() -> None:
    with pytest.raises(MalformedTrajectory, match="scenario 0, chain"):
        detect_behavioral_drift({}, suite([]))
    with pytest.raises(MalformedTrajectory, match="scenarios is str"):
        detect_behavioral_drift({}, {"scenarios": "all"})


names = st.sampled_from(["boss", "trader", "auditor", "desk"])


@given(st.lists(names, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_contiguous_chain_conforms_to_itself_in_any_order_of_its_edges(agents: list[str], random: Any) -> None:
    edges = trajectory(*zip(agents, agents[1:], strict=False))["handoff_edges"]
    random.shuffle(edges)
    assert reconstruct_chain({"handoff_edges": edges}) == agents
    assert detect_behavioral_drift({"handoff_edges": edges}, suite(agents), today=EARLY) == []


@given(st.lists(st.tuples(names, names), min_size=1, max_size=8))
def test_one_broken_chain_for_each_place_where_the_work_does_not_go_on(hops: list[tuple[str, str]]) -> None:
    found = codes(detect_behavioral_drift(trajectory(*hops), suite(reconstruct_chain(trajectory(*hops))), today=LATE))
    n_breaks = sum(before[1] != after[0] for before, after in zip(hops, hops[1:], strict=False))
    assert found == ["BEHAVIOR_BROKEN_CHAIN"] * n_breaks
