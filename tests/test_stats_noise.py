"""The clipped mean that noise makes: .564 s for normal scores, enumerated signs for measured differences."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from analysis.stats import noise_floor, noise_floor_normal

DIFFERENCES = [0.30, 0.12, -0.05, 0.40, 0.0, 0.22, 0.08, -0.02, 0.15, 0.25]


def test_normal_noise_makes_a_clipped_mean_of_564_thousandths_of_the_spread() -> None:
    floor = noise_floor_normal(0.1, 20)
    assert floor.value == pytest.approx(0.1 / math.sqrt(math.pi), rel=1e-9)
    rng = np.random.default_rng(1)
    d = rng.normal(0.5, 0.1, (20_000, 20)) - rng.normal(0.5, 0.1, (20_000, 20))
    means = np.clip(d, 0.0, 1.0).mean(axis=1)
    assert floor.value == pytest.approx(means.mean(), abs=0.0005)
    assert (floor.low, floor.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.002)


def test_a_wide_spread_is_clipped_at_one_too() -> None:
    sd = math.sqrt(2.0) * 0.6
    tail, _ = quad(lambda t: norm.sf(t / sd), 0.0, 1.0)
    assert noise_floor_normal(0.6, 5).value == pytest.approx(tail)


def test_more_seeds_narrow_the_range_and_leave_the_expectation() -> None:
    few, many = noise_floor_normal(0.1, 5), noise_floor_normal(0.1, 100)
    assert few.value == many.value
    assert few.high - few.low > 3.0 * (many.high - many.low)


def test_measured_floor_is_the_mean_over_every_sign_pattern() -> None:
    d = np.array(DIFFERENCES)
    residuals = (d - d.mean()) * math.sqrt(10 / 9)
    patterns = np.array(list(product([-1.0, 1.0], repeat=10)))
    means = np.clip(patterns * np.abs(residuals), 0.0, 1.0).mean(axis=1)
    floor = noise_floor(DIFFERENCES)
    assert floor.value == pytest.approx(means.mean())
    assert (floor.low, floor.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.003)


def test_drift_common_to_all_runs_is_no_noise() -> None:
    assert noise_floor([d + 0.3 for d in DIFFERENCES]).value == pytest.approx(noise_floor(DIFFERENCES).value)
    assert noise_floor([0.5] * 20).value == 0.0


def test_measured_floor_recovers_the_normal_one() -> None:
    rng = np.random.default_rng(2)
    floors = [noise_floor(rng.normal(0.2, 0.1 * math.sqrt(2.0), 20)).value for _ in range(300)]
    assert np.mean(floors) == pytest.approx(noise_floor_normal(0.1, 20).value, rel=0.03)


def test_degenerate_input_is_nan_or_zero_with_a_reason() -> None:
    assert math.isnan(noise_floor([0.3]).value) and "one difference" in noise_floor([0.3]).reason
    assert "2 of 2 values undefined" in noise_floor([math.nan] * 2).reason
    assert noise_floor_normal(0.0, 20).value == 0.0 and noise_floor_normal(0.0, 20).reason


def test_impossible_spreads_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"sd_phi -0\.1 is no spread"):
        noise_floor_normal(-0.1, 20)
    with pytest.raises(ValueError, match="n 0 is no number of pairs"):
        noise_floor_normal(0.1, 0)
    with pytest.raises(ValueError, match=r"differences holds .*1\.5.*allowed: -1 to 1"):
        noise_floor([0.1, 1.5])
