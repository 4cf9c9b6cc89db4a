"""Sign-flip and two-sample permutation tests against brute force, scipy, and the reference values."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats import ONE_TRAJECTORY, Alternative, cluster_t_test, paired_test, sign_flip_test, two_sample_test

TEN = [0.30, 0.12, -0.05, 0.40, 0.0, 0.22, 0.08, -0.02, 0.15, 0.25]
TWENTY = [0.06, -0.09, 0.23, 0.33, -0.10, -0.25, 0.27, -0.03, 0.12, 0, 0.09, 0.15, 0.02, 0.37, 0.06, -0.02, 0.18]
TWENTY += [0.36, 0, 0.02]
A = [0, 0, 0.1, 0.25, 0.4, 0, 0.05, 0.6]
B = [0, 0.2, 0.35, 0.5, 0.45, 0.7, 0.15, 0.3]
ALTERNATIVES: tuple[Alternative, ...] = ("greater", "less", "two-sided")

# Whole hundredths, so that brute force can count in integers, where ties are ties.
hundredths = st.integers(-60, 60)


def n_extreme(drawn: list[int], observed: int, alternative: Alternative) -> int:
    if alternative == "two-sided":
        return sum(abs(value) >= abs(observed) for value in drawn)
    return sum(value >= observed if alternative == "greater" else value <= observed for value in drawn)


def test_ten_differences_give_the_reference_by_brute_force_and_by_scipy() -> None:
    result = sign_flip_test(TEN)
    whole = [round(100 * d) for d in TEN]
    sums = [sum(s * d for s, d in zip(signs, whole, strict=True)) for signs in product((-1, 1), repeat=10)]
    assert (n_extreme(sums, sum(whole), "greater"), len(sums)) == (8, 1024)
    assert result.p == 8 / 1024
    assert result.statistic == pytest.approx(0.145)
    assert (result.exact, result.n, result.method) == (True, 10, "sign-flip, exact")
    scipys = stats.permutation_test((TEN,), np.mean, permutation_type="samples", alternative="greater", vectorized=True)
    assert result.p == pytest.approx(scipys.pvalue)


def test_twenty_differences_give_the_reference_by_all_million_patterns() -> None:
    result = sign_flip_test(TWENTY)
    whole = np.rint(100 * np.array(TWENTY)).astype(np.int64)
    signs = 2 * ((np.arange(2**20)[:, None] >> np.arange(20)) & 1) - 1
    share = float((signs @ whole >= whole.sum()).mean())
    assert result.p == share
    assert result.p == pytest.approx(0.01372528, abs=5e-9)


def test_two_samples_give_the_reference_by_all_splits() -> None:
    result = two_sample_test(A, B)
    whole = [round(100 * v) for v in [*A, *B]]
    sums = [2 * sum(whole[i] for i in chosen) - sum(whole) for chosen in combinations(range(16), 8)]
    assert (n_extreme(sums, 2 * sum(whole[:8]) - sum(whole), "two-sided"), len(sums)) == (2540, 12870)
    assert result.p == 2540 / 12870
    assert result.statistic == pytest.approx(-0.15625)
    assert result.exact


def test_paired_reference_is_the_sign_flip_of_differences() -> None:
    result = paired_test(A, B)
    assert result.p == 0.1875
    whole = [round(100 * (a - b)) for a, b in zip(A, B, strict=True)]
    sums = [sum(s * d for s, d in zip(signs, whole, strict=True)) for signs in product((-1, 1), repeat=8)]
    assert result.p == n_extreme(sums, sum(whole), "two-sided") / 256


@given(st.lists(hundredths, min_size=1, max_size=8), st.sampled_from(ALTERNATIVES))
@settings(max_examples=60)
def test_sign_flip_counts_what_brute_force_counts(whole: list[int], alternative: Alternative) -> None:
    sums = [sum(s * d for s, d in zip(signs, whole, strict=True)) for signs in product((-1, 1), repeat=len(whole))]
    p = sign_flip_test([d / 100 for d in whole], alternative=alternative).p
    assert p == pytest.approx(n_extreme(sums, sum(whole), alternative) / len(sums))


@given(
    st.lists(hundredths, min_size=1, max_size=5),
    st.lists(hundredths, min_size=1, max_size=4),
    st.sampled_from(ALTERNATIVES),
)
@settings(max_examples=60)
def test_two_sample_counts_what_brute_force_counts(a: list[int], b: list[int], alternative: Alternative) -> None:
    pooled, n = [*a, *b], len(a) + len(b)
    # n times the sum of a group of the size of a, less its expectation: an integer.
    drawn = [n * sum(pooled[i] for i in chosen) - len(a) * sum(pooled) for chosen in combinations(range(n), len(a))]
    observed = n * sum(a) - len(a) * sum(pooled)
    p = two_sample_test([v / 100 for v in a], [v / 100 for v in b], alternative=alternative).p
    assert p == pytest.approx(n_extreme(drawn, observed, alternative) / len(drawn))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.floats(0.1, 10))
@settings(max_examples=40)
def test_scale_does_not_matter_and_negation_turns_the_alternative(d: list[float], scale: float) -> None:
    p = sign_flip_test(d).p
    assert 0.0 < p <= 1.0
    assert sign_flip_test([scale * value for value in d]).p == pytest.approx(p, abs=1e-6)
    assert sign_flip_test([-value for value in d], alternative="less").p == p


def test_forty_differences_are_counted_in_full() -> None:
    # 2^40 patterns of equal differences: the number of positive signs is binomial.
    result = sign_flip_test([0.1] * 25 + [-0.1] * 15)
    assert result.exact
    assert result.p == pytest.approx(stats.binom.sf(24, 40, 0.5), rel=1e-12)


def test_twenty_against_twenty_is_counted_in_full() -> None:
    # Zeros and ones: the number of ones in the first group is hypergeometric.
    result = two_sample_test([1.0] * 9 + [0.0] * 11, [1.0] * 3 + [0.0] * 17, alternative="greater")
    assert result.exact
    assert result.p == pytest.approx(stats.hypergeom.sf(8, 40, 12, 20), rel=1e-12)


def test_beyond_forty_a_stated_number_of_random_patterns_is_drawn() -> None:
    result = sign_flip_test([0.1] * 27 + [-0.1] * 18)
    exact = stats.binom.sf(26, 45, 0.5)
    assert not result.exact
    assert result.method == "sign-flip, 99,999 random permutations"
    assert result.p == pytest.approx(exact, abs=4.0 * math.sqrt(exact / 100_000))
    assert result == sign_flip_test([0.1] * 27 + [-0.1] * 18)


def test_beyond_forty_runs_random_splits_are_drawn() -> None:
    a, b = [1.0] * 12 + [0.0] * 18, [1.0] * 6 + [0.0] * 24
    one = two_sample_test(a, b, alternative="greater")
    exact = stats.hypergeom.sf(11, 60, 18, 30)
    assert one.p == pytest.approx(exact, abs=4.0 * math.sqrt(exact / 100_000))
    both = two_sample_test(a, b)
    assert both.p == pytest.approx(2.0 * exact, abs=6.0 * math.sqrt(exact / 100_000))
    other = two_sample_test(a, b, alternative="greater", rng=np.random.default_rng(1))
    assert other.p == pytest.approx(one.p, abs=0.004)


def test_random_p_is_never_zero() -> None:
    assert sign_flip_test(np.linspace(0.5, 1.0, 60)).p == 1e-5


def test_rounding_breaks_no_tie() -> None:
    # .1 + .2 - .3 is not 0 in floating point; as exact tenths four of eight patterns reach the observed 0 or more.
    assert sign_flip_test([0.1, 0.2, -0.3]).p == 5 / 8
    assert sign_flip_test([0.1, 0.2, -0.3], alternative="two-sided").p == 1.0


def test_runs_of_a_trajectory_flip_together() -> None:
    d = [0.2, 0.4, 0.1, 0.1, 0.3, 0.1, 0.2, 0.2, 0.5, 0.1]
    result = sign_flip_test(d, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    assert result.p == 1 / 32
    assert result.n == 5
    assert result.method == "sign-flip of cluster means, exact"
    assert sign_flip_test(d).p == 1 / 1024


def test_one_trajectory_gives_no_p_value() -> None:
    result = sign_flip_test([0.2, 0.4], ["p1", "p1"])
    assert result.statistic == pytest.approx(0.3)
    assert math.isnan(result.p)
    assert result.reason == ONE_TRAJECTORY


def test_undefined_pairs_are_left_out_and_counted() -> None:
    result = paired_test([*A, math.nan, 0.3], [*B, 0.1, math.nan])
    assert result.p == 0.1875
    assert (result.n, result.reason) == (8, "2 of 10 values undefined, left out")
    unpaired = two_sample_test([*A, math.nan], B)
    assert unpaired.p == 2540 / 12870
    assert unpaired.reason == "a: 1 of 9 values undefined, left out"


def test_nothing_to_test_is_nan_with_a_reason() -> None:
    assert math.isnan(sign_flip_test([]).p) and "no difference" in sign_flip_test([math.nan]).reason
    assert math.isnan(two_sample_test([], B).p) and "no run in a" in two_sample_test([], B).reason
    assert "no run in b" in two_sample_test(A, [math.nan]).reason


def test_the_smallest_possible_p_is_said_where_it_cannot_reach_the_usual_level() -> None:
    assert sign_flip_test([0.1, 0.2, 0.3, 0.0]).reason.startswith("no p below 0.125 is possible with 3")
    assert "no p below 0.1 " in two_sample_test([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]).reason
    assert sign_flip_test([0.0, 0.0]).p == 1.0 and sign_flip_test([0.0, 0.0]).reason == "all differences are 0"
    assert sign_flip_test(TEN).reason == ""


def test_mismatched_pairs_and_unknown_alternatives_are_refused() -> None:
    with pytest.raises(ValueError, match="a holds 8 values and b 2"):
        paired_test(A, [0.1, 0.2])
    with pytest.raises(ValueError, match="alternative 'bigger' is unknown; allowed: 'greater', 'less', 'two-sided'"):
        sign_flip_test(TEN, alternative="bigger")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="values holds 10 runs and clusters 1 labels"):
        sign_flip_test(TEN, ["p1"])


def test_student_s_test_of_trajectories_goes_with_their_interval() -> None:
    y = [0.1, 0.2, 0.15, 0.5, 0.55, 0.6, 0, 0.05, 0.1, 0.3, 0.25, 0.35]
    clusters = list("aaabbbcccddd")
    test = cluster_t_test(y, clusters)
    # The means .15, .55, .05, .30 have mean .2625 and standard error .108733; t(3).
    assert test.statistic == pytest.approx(0.2625 / 0.108733, rel=1e-5)
    assert test.p == pytest.approx(stats.t.sf(0.2625 / 0.108733, 3), rel=1e-4)
    assert (test.n, test.method, test.exact) == (4, "Student's t of cluster means", False)
    both, less = (cluster_t_test(y, clusters, alternative=side).p for side in ("two-sided", "less"))
    assert (both, less) == pytest.approx((2 * test.p, 1 - test.p))


def test_student_s_test_leaves_what_has_no_spread_to_sign_flips() -> None:
    same = cluster_t_test([0.3, 0.1, 0.2, 0.2, 0.2 + 1e-16, 0.2], ["a", "a", "b", "b", "c", "c"])
    assert (same.p, same.method) == (0.125, "sign-flip of cluster means, exact")
    one = cluster_t_test([0.3, 0.1], ["a", "a"])
    assert math.isnan(one.p)
    assert one.reason == "conditional on one trajectory"
    none = cluster_t_test([math.nan], ["a"])
    assert (math.isnan(none.p), none.n) == (True, 0)
