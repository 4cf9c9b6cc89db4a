"""The firm's random streams."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.streams import check_seed, fraction, stream, whole_number


@pytest.mark.parametrize("seed", [-1, 8192, 1.0, "1", True, None])
def test_seed_without_a_market_of_its_own_is_refused_with_its_name_and_value(seed):
    with pytest.raises(ValueError, match=r"phase_seed .* is not allowed: an integer from 0 to 8191"):
        check_seed(seed, "phase_seed")


@pytest.mark.parametrize("seed", [0, 8191])
def test_first_and_last_seed_are_allowed(seed):
    assert check_seed(seed) == seed


def test_stream_depends_on_seed_purpose_and_quarter_and_on_nothing_else():
    draws = {stream(*key).random() for key in [(1, "a", 1), (2, "a", 1), (1, "b", 1), (1, "a", 2)]}
    assert len(draws) == 4
    interleaved = stream(1, "a", 1)
    stream(1, "b", 1).random()
    assert interleaved.random() == stream(1, "a", 1).random()


def test_keys_do_not_run_into_one_another():
    assert fraction(1, "a", 11) != fraction(11, "a", 1)
    assert fraction(1, "a/1", 1) != fraction(1, "a", 1)


@given(st.integers(-50, 50), st.integers(0, 100), st.integers(0, 8191), st.integers(1, 80))
def test_whole_numbers_lie_in_their_range(least, width, seed, quarter):
    assert least <= whole_number(least, least + width, seed=seed, purpose="p", quarter=quarter) <= least + width


def test_whole_numbers_are_uniform():
    counts = Counter(whole_number(0, 2, seed=seed, purpose="p", quarter=q) for seed in range(100) for q in range(90))
    # 9,000 draws of three values: 3,000 each, with a standard deviation of 45.
    assert all(abs(counts[value] - 3000) < 4 * 45 for value in (0, 1, 2))


def test_fractions_are_uniform_from_0_to_below_1():
    draws = [fraction(seed, "p", 1) for seed in range(8192)]
    assert 0 <= min(draws) and max(draws) < 1
    # The mean of 8,192 uniform draws has a standard deviation of 0.0032.
    assert sum(draws) / len(draws) == pytest.approx(0.5, abs=4 * 0.0032)
