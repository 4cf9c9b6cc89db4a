"""Gaffke's and Anderson's intervals: reference values, an exact second computation, and what must hold for any data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.interpolate import BSpline
from scipy.optimize import brentq

from analysis.stats import anderson_interval, gaffke_interval
from analysis.stats.bounded import GAFFKE_DRAWS, _kept, _new_weights

SCORES = [0, 0, 0, 0.05, 0, 0.12, 0.30, 0, 0.22, 0.40, 0, 0.08, 0, 0.15, 0.02, 0, 0.55, 0, 0.10, 0.18]
CLIPPED = [0.30, 0.12, 0.0, 0.40, 0.0, 0.22, 0.08, 0.0, 0.15, 0.25]


def exact_quantile(parts: list[float], share: float) -> float:
    """Quantile of w . parts, w uniform on the simplex: its density is a B-spline, its knots the parts (Curry 1966)."""
    knots = np.sort(np.asarray(parts, dtype=np.float64))
    spline = BSpline.basis_element(knots, extrapolate=False).antiderivative()
    low, high = float(knots[0]), float(knots[-1])
    whole = float(spline(high - 1e-15) - spline(low))
    return float(brentq(lambda t: float(spline(t) - spline(low)) / whole - share, low, high - 1e-12))


@pytest.mark.parametrize(
    ("values", "low", "high", "tolerance"),
    [(CLIPPED, 0.068, 0.420, 0.003), (SCORES, 0.0516, 0.272, 0.002)],
)
def test_gaffke_gives_the_reference_intervals(values: list[float], low: float, high: float, tolerance: float) -> None:
    interval = gaffke_interval(values)
    assert interval.low == pytest.approx(low, abs=tolerance)
    assert interval.high == pytest.approx(high, abs=tolerance)
    assert interval.value == pytest.approx(sum(values) / len(values))
    assert (interval.n, interval.level, interval.reason) == (len(values), 0.95, "")


@pytest.mark.parametrize("values", [CLIPPED, SCORES, [0.2, 0.9], [1.0, 1.0, 0.5], list(np.linspace(0.01, 0.99, 30))])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_gaffke_agrees_with_the_exact_distribution(values: list[float], level: float) -> None:
    interval = gaffke_interval(values, level=level)
    tail = (1.0 - level) / 2.0
    assert interval.low == pytest.approx(exact_quantile([*values, 0.0], tail), abs=0.0025)
    assert interval.high == pytest.approx(exact_quantile([*values, 1.0], 1.0 - tail), abs=0.0025)


def test_gaffke_agrees_with_numpys_dirichlet_and_another_seed() -> None:
    weights = np.random.default_rng(7).dirichlet(np.ones(21), size=100_000)
    below = weights[:, :20] @ np.array(SCORES)
    interval = gaffke_interval(SCORES, rng=np.random.default_rng(8))
    assert interval.low == pytest.approx(np.quantile(below, 0.025), abs=0.002)
    assert interval.high == pytest.approx(np.quantile(below + weights[:, 20], 0.975), abs=0.003)


@pytest.mark.parametrize(("n", "high"), [(10, 0.30850), (20, 0.16843), (50, 0.07112)])
def test_on_zeros_gaffke_is_clopper_pearson(n: int, high: float) -> None:
    interval = gaffke_interval(np.zeros(n))
    exact = stats.binomtest(0, n).proportion_ci(0.95, method="exact")
    assert exact.high == pytest.approx(high, abs=5e-6)
    assert interval.low == 0.0
    assert interval.high == pytest.approx(exact.high, abs=0.0015)


def test_on_ones_gaffke_mirrors_zeros() -> None:
    interval = gaffke_interval(np.ones(20))
    assert interval.high == 1.0
    assert interval.low == pytest.approx(1.0 - 0.16843, abs=0.0015)


def test_anderson_gives_the_reference_interval() -> None:
    interval = anderson_interval(SCORES)
    assert (interval.low, interval.high) == pytest.approx((0.01806, 0.41218), abs=5e-6)


def test_anderson_agrees_with_integrated_dkw_bands() -> None:
    band = math.sqrt(math.log(2.0 / 0.05) / (2.0 * len(SCORES)))
    grid = (np.arange(200_000) + 0.5) / 200_000
    share_at_most = np.searchsorted(np.sort(SCORES), grid, side="right") / len(SCORES)
    highest = float((1.0 - np.maximum(0.0, share_at_most - band)).mean())
    lowest = float((1.0 - np.minimum(1.0, share_at_most + band)).mean())
    interval = anderson_interval(SCORES)
    assert (interval.low, interval.high) == pytest.approx((lowest, highest), abs=1e-5)


def test_bounds_of_signed_differences_scale_the_interval() -> None:
    signed = [0.3, -0.1, 0.0, 0.2, -0.4]
    interval = gaffke_interval(signed, bounds=(-1.0, 1.0))
    unit = gaffke_interval([(d + 1.0) / 2.0 for d in signed])
    assert interval.low == pytest.approx(2.0 * unit.low - 1.0)
    assert interval.high == pytest.approx(2.0 * unit.high - 1.0)
    assert anderson_interval(signed, bounds=(-1.0, 1.0)).low < interval.low


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12))
@settings(max_examples=40)
def test_both_hold_the_mean_stay_in_the_unit_range_and_mirror(values: list[float]) -> None:
    for interval, mirrored in (
        (gaffke_interval(values), gaffke_interval([1.0 - v for v in values])),
        (anderson_interval(values), anderson_interval([1.0 - v for v in values])),
    ):
        assert 0.0 <= interval.low <= interval.value + 1e-12
        assert interval.value - 1e-12 <= interval.high <= 1.0
        assert interval.low == pytest.approx(1.0 - mirrored.high, abs=0.006)
        assert interval.high == pytest.approx(1.0 - mirrored.low, abs=0.006)


@given(st.permutations(SCORES))
@settings(max_examples=10)
def test_the_order_of_runs_changes_nothing(values: list[float]) -> None:
    shuffled, sorted_ = gaffke_interval(values), gaffke_interval(sorted(values))
    assert (shuffled.low, shuffled.high) == (sorted_.low, sorted_.high)


def test_a_raised_score_never_lowers_an_end() -> None:
    raised = [*SCORES[:-1], 0.9]
    before, after = gaffke_interval(SCORES), gaffke_interval(raised)
    assert after.low >= before.low
    assert after.high >= before.high


def test_the_same_numbers_come_with_and_without_kept_draws() -> None:
    kept = gaffke_interval(SCORES)
    _kept.clear()
    assert gaffke_interval(SCORES) == kept


def test_block_size_does_not_change_a_draw() -> None:
    n = 400  # several blocks
    blocks = list(_new_weights(n, np.random.default_rng(3)))
    assert len(blocks) > 1
    assert sum(block.shape[1] for block in blocks) == GAFFKE_DRAWS
    exponentials = np.random.default_rng(3).standard_exponential((GAFFKE_DRAWS, n + 1))
    last = exponentials[-1] / exponentials[-1].sum()
    np.testing.assert_allclose(blocks[-1][:, -1], last, rtol=1e-12)


def test_large_cells_need_no_kept_draws() -> None:
    values = np.tile([0.0, 0.5, 1.0], 100)
    interval = gaffke_interval(values)
    assert 300 not in _kept
    assert interval.low == pytest.approx(0.5 - 1.96 * values.std() / math.sqrt(300), abs=0.01)


@pytest.mark.parametrize("make", [gaffke_interval, anderson_interval])
def test_degenerate_cells_are_nan_with_a_reason(make: object) -> None:
    assert callable(make)
    empty, undefined, single = make([]), make([math.nan, math.nan]), make([0.4, math.nan])
    assert math.isnan(empty.value) and not empty.has_interval and "no run" in empty.reason
    assert undefined.n == 0 and "2 of 2 values undefined" in undefined.reason
    assert single.value == 0.4 and not single.has_interval
    assert "one run" in single.reason and "1 of 2 values undefined" in single.reason


def test_undefined_values_are_left_out_and_counted() -> None:
    interval = gaffke_interval([*SCORES, math.nan])
    assert interval.low == gaffke_interval(SCORES).low
    assert (interval.n, interval.reason) == (20, "1 of 21 values undefined, left out")


@pytest.mark.parametrize("make", [gaffke_interval, anderson_interval])
def test_a_value_outside_the_bounds_is_refused_by_name(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"values holds .*1\.2.*\(defined value 1\); allowed: 0 to 1"):
        make([0.1, 1.2])
    with pytest.raises(ValueError, match="level 1.0"):
        make([0.1, 0.2], level=1.0)
    with pytest.raises(ValueError, match="bounds"):
        make([0.1, 0.2], bounds=(1.0, 0.0))


def test_a_bound_missed_by_rounding_is_accepted() -> None:
    assert gaffke_interval([1.0 + 1e-12, -1e-15]).value == 0.5
