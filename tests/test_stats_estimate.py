"""The values that statistics return."""

import dataclasses
import math

import pytest

import analysis.stats
from analysis.stats import Estimate, TestResult
from analysis.stats.estimate import check_alternative, check_level, join_reasons


def test_values_are_frozen() -> None:
    estimate = Estimate(0.1, 0.0, 0.2, 20, None, 0.95, "t")
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        TestResult(0.1, 0.5, "sign-flip", "greater", 20, True).p = 0.01  # type: ignore[misc]


def test_an_interval_needs_both_ends() -> None:
    assert Estimate(0.1, 0.0, 0.2, 20, None, 0.95, "t").has_interval
    assert not Estimate(0.1, math.nan, 0.2, 20, None, 0.95, "t").has_interval


def test_an_estimate_becomes_a_table_row() -> None:
    row = dataclasses.asdict(Estimate(0.1, 0.0, 0.2, 20, 5, 0.95, "t", "why"))
    assert list(row) == ["value", "low", "high", "n", "n_clusters", "level", "method", "reason"]


def test_reasons_are_joined_without_empty_ones() -> None:
    assert join_reasons("", "a", "", "b") == "a; b"
    assert join_reasons() == ""


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.1, math.nan])
def test_impossible_levels_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="is no confidence level"):
        check_level(level)


def test_unknown_alternatives_are_refused() -> None:
    with pytest.raises(ValueError, match="alternative 'two sided'"):
        check_alternative("two sided")


def test_every_public_name_exists() -> None:
    assert sorted(analysis.stats.__all__) == sorted(set(analysis.stats.__all__))
    for name in analysis.stats.__all__:
        assert getattr(analysis.stats, name) is not None
