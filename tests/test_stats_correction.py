"""Corrections of a family against the step procedures written out, and what a family must keep."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats import correct_family, sign_flip_test

P = [0.001, 0.008, 0.039, 0.041, 0.042, 0.060, 0.074, 0.205, 0.212, 0.216]
HOLM = [0.01, 0.072, 0.312, 0.312, 0.312, 0.312, 0.312, 0.615, 0.615, 0.615]
BH = [0.01, 0.04, 0.084, 0.084, 0.084, 0.1, 0.105714, 0.216, 0.216, 0.216]


def labelled(p: list[float]) -> dict[str, float]:
    return {f"cell {index}": value for index, value in enumerate(p)}


def holm_by_hand(p: list[float]) -> list[float]:
    order = sorted(range(len(p)), key=lambda index: p[index])
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = highest
    return adjusted


def bh_by_hand(p: list[float]) -> list[float]:
    order = sorted(range(len(p)), key=lambda index: -p[index])
    adjusted, lowest = [0.0] * len(p), 1.0
    for rank, index in enumerate(order):
        lowest = min(lowest, p[index] * len(p) / (len(p) - rank))
        adjusted[index] = lowest
    return adjusted


def test_holm_gives_the_reference_and_agrees_with_the_steps() -> None:
    family = correct_family("figure 3: is there drift", labelled(P))
    assert list(family.p_adjusted.values()) == pytest.approx(HOLM, abs=5e-7)
    assert holm_by_hand(P) == pytest.approx(HOLM, abs=5e-7)


def test_bh_gives_the_reference_and_agrees_with_the_steps() -> None:
    family = correct_family("sweep", labelled(P), correction="bh")
    assert list(family.p_adjusted.values()) == pytest.approx(BH, abs=5e-7)
    assert bh_by_hand(P) == pytest.approx(BH, abs=5e-7)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=40)
def test_any_family_agrees_with_the_steps_and_holm_is_the_stricter(p: list[float]) -> None:
    holm = list(correct_family("f", labelled(p)).p_adjusted.values())
    bh = list(correct_family("f", labelled(p), correction="bh").p_adjusted.values())
    assert holm == pytest.approx(holm_by_hand(p))
    assert bh == pytest.approx(bh_by_hand(p))
    assert all(raw - 1e-12 <= b <= h + 1e-12 for raw, b, h in zip(p, bh, holm, strict=True))


def test_a_family_names_itself_its_size_and_its_correction() -> None:
    family = correct_family("figure 3: is there drift", labelled(P))
    assert (family.size, family.correction, family.undefined) == (10, "holm", ())
    assert family.describe() == "figure 3: is there drift: 10 tests, Holm"
    assert list(family.p) == list(family.p_adjusted) == list(labelled(P))


def test_a_test_that_could_not_be_made_still_counts() -> None:
    family = correct_family("f", {"a": 0.01, "b": math.nan, "c": 0.04})
    assert family.p_adjusted["a"] == pytest.approx(0.03)
    assert math.isnan(family.p_adjusted["b"])
    assert family.p_adjusted["c"] == pytest.approx(0.08)
    assert family.undefined == ("b",)
    assert family.describe() == "f: 3 tests, Holm; 1 could not be made, counted in the correction"


def test_results_are_taken_as_they_come() -> None:
    tests = {"drift": sign_flip_test([0.1] * 5), "one trajectory": sign_flip_test([0.1, 0.2], ["p", "p"])}
    family = correct_family("f", tests)
    assert family.p == {"drift": 1 / 32, "one trajectory": pytest.approx(math.nan, nan_ok=True)}
    assert family.p_adjusted["drift"] == 2 / 32


def test_an_empty_family_is_a_family_of_none() -> None:
    assert correct_family("f", {}).describe() == "f: 0 tests, Holm"


def test_impossible_p_values_and_corrections_are_refused() -> None:
    with pytest.raises(ValueError, match=r"p value 1\.2 of 'a' is no probability"):
        correct_family("f", {"a": 1.2})
    with pytest.raises(ValueError, match="correction 'bonferroni' is unknown; allowed: holm, bh"):
        correct_family("f", {"a": 0.1}, correction="bonferroni")  # type: ignore[arg-type]
