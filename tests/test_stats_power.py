"""Planned power: the reference numbers of seeds, other simulations, and what one trajectory can show."""

import math

import numpy as np
import pytest
from scipy import stats

from analysis.stats import (
    DriftModel,
    cheapest_plan,
    cluster_icc,
    one_trajectory_coverage,
    seeds_needed,
    sign_flip_power,
    sign_flip_test,
    split_plans,
)


@pytest.mark.parametrize(("sd", "drift", "n"), [(0.2, 0.1, 28), (0.2, 0.2, 9), (0.3, 0.1, 60), (0.3, 0.2, 16)])
def test_seeds_needed_gives_about_the_reference(sd: float, drift: float, n: int) -> None:
    plan = seeds_needed(DriftModel(drift, sd))
    assert plan.n_clusters == pytest.approx(n, abs=2)
    assert plan.n_runs == plan.n_clusters
    assert plan.power.low >= 0.8
    assert plan.reason == ""


@pytest.mark.parametrize(("sd", "drift"), [(0.2, 0.1), (0.3, 0.1), (0.3, 0.2)])
def test_seeds_needed_is_near_the_noncentral_t_of_the_same_design(sd: float, drift: float) -> None:
    def power_of_t(n: int) -> float:
        return float(stats.nct.sf(stats.t.ppf(0.95, n - 1), n - 1, drift / sd * math.sqrt(n)))

    fewest = next(n for n in range(2, 200) if power_of_t(n) >= 0.8)
    assert fewest <= seeds_needed(DriftModel(drift, sd)).n_clusters <= fewest + 4


def test_power_agrees_with_the_test_itself() -> None:
    rng = np.random.default_rng(3)
    rejected = np.mean([sign_flip_test(rng.normal(0.1, 0.2, 20)).p <= 0.05 for _ in range(1_500)])
    assert sign_flip_power(20, DriftModel(0.1, 0.2)).value == pytest.approx(rejected, abs=0.04)
    few = np.mean([sign_flip_test(rng.normal(0.2, 0.2, 9)).p <= 0.05 for _ in range(1_500)])
    assert sign_flip_power(9, DriftModel(0.2, 0.2)).value == pytest.approx(few, abs=0.04)


def test_without_drift_power_is_the_size() -> None:
    power = sign_flip_power(20, DriftModel(0.0, 0.2))
    assert power.low <= 0.05 <= power.high + 0.005


def test_power_of_branches_agrees_with_simulated_trajectories() -> None:
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(8), 3)
    rejected = 0
    for _ in range(1_000):
        shared, own = rng.normal(0, math.sqrt(0.4), 8)[labels], rng.normal(0, math.sqrt(0.6), 24)
        rejected += sign_flip_test(0.15 + 0.2 * (shared + own), labels).p <= 0.05
    power = sign_flip_power(8, DriftModel(0.15, 0.2, 0.4), n_branches=3)
    assert power.value == pytest.approx(rejected / 1_000, abs=0.05)


def test_fewer_than_five_trajectories_can_never_reject() -> None:
    assert sign_flip_power(4, DriftModel(1.0, 0.1), n_branches=100).value == 0.0
    assert sign_flip_power(5, DriftModel(1.0, 0.1)).value == 1.0


def test_twenty_runs_show_most_on_twenty_trajectories() -> None:
    plans = split_plans(20, DriftModel(0.1, 0.2, 0.3))
    assert [(plan.n_clusters, plan.n_branches) for plan in plans] == [
        (1, 20),
        (2, 10),
        (4, 5),
        (5, 4),
        (10, 2),
        (20, 1),
    ]
    powers = [plan.power.value for plan in plans]
    assert powers[:3] == [0.0, 0.0, 0.0]
    assert powers[3] < powers[4] < powers[5]


def test_the_cheapest_plan_branches_when_trajectories_cost_more() -> None:
    model = DriftModel(0.1, 0.2, 0.2)
    free, dear = cheapest_plan(model, trajectory_cost=0.0), cheapest_plan(model, trajectory_cost=8.0)
    assert free.n_branches == 1
    # The classic rule: near sqrt(8 * .8 / .2) = 5.7 branches.
    assert 3 <= dear.n_branches <= 9
    assert dear.n_clusters < free.n_clusters
    assert dear.cost == dear.n_clusters * (8.0 + dear.n_branches)
    assert dear.power.low >= 0.8


def test_equal_branches_of_a_trajectory_are_worth_one() -> None:
    assert cheapest_plan(DriftModel(0.2, 0.2, 1.0), trajectory_cost=3.0).n_branches == 1


def test_a_plan_out_of_reach_says_so() -> None:
    plan = seeds_needed(DriftModel(0.01, 0.3))
    assert plan.n_clusters == 500
    assert plan.reason == "power stays below 0.8 with 500 trajectories"
    assert math.isnan(plan.cost)


def test_plans_are_the_same_every_time() -> None:
    assert seeds_needed(DriftModel(0.2, 0.3)) == seeds_needed(DriftModel(0.2, 0.3))
    other = seeds_needed(DriftModel(0.2, 0.3), rng=np.random.default_rng(1))
    assert other.n_clusters == pytest.approx(16, abs=2)


@pytest.mark.parametrize(("icc", "covered"), [(0.1, 0.74), (0.3, 0.49), (0.6, 0.29)])
def test_branches_of_one_trajectory_cover_as_simulated(icc: float, covered: float) -> None:
    rng = np.random.default_rng(5)
    d = math.sqrt(icc) * rng.standard_normal((40_000, 1)) + math.sqrt(1 - icc) * rng.standard_normal((40_000, 20))
    half = 2.093024 * d.std(axis=1, ddof=1) / math.sqrt(20)
    share = float((np.abs(d.mean(axis=1)) <= half).mean())
    assert one_trajectory_coverage(20, icc) == pytest.approx(share, abs=0.01)
    assert one_trajectory_coverage(20, icc) == pytest.approx(covered, abs=0.01)


def test_without_shared_variance_one_trajectory_covers_as_promised() -> None:
    assert one_trajectory_coverage(20, 0.0) == pytest.approx(0.95)


def test_a_measured_spread_can_feed_a_plan() -> None:
    rng = np.random.default_rng(6)
    labels = np.repeat(np.arange(40), 5)
    d = 0.1 + 0.2 * (math.sqrt(0.3) * rng.standard_normal(40)[labels] + math.sqrt(0.7) * rng.standard_normal(200))
    icc = min(1.0, max(0.0, cluster_icc(d, labels).value))
    plan = seeds_needed(DriftModel(float(d.mean()), float(d.std(ddof=1)), icc), n_branches=5)
    assert 8 <= plan.n_clusters <= 30


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="sd 0.0 is no model"):
        DriftModel(0.1, 0.0)
    with pytest.raises(ValueError, match="icc 1.5"):
        DriftModel(0.1, 0.2, 1.5)
    with pytest.raises(ValueError, match="drift 0.0 cannot be planned for"):
        seeds_needed(DriftModel(0.0, 0.2))
    with pytest.raises(ValueError, match="0 trajectories of 1 branches"):
        sign_flip_power(0, DriftModel(0.1, 0.2))
    with pytest.raises(ValueError, match="trajectory_cost -1"):
        cheapest_plan(DriftModel(0.1, 0.2), trajectory_cost=-1.0)
    with pytest.raises(ValueError, match="1 branches with icc"):
        one_trajectory_coverage(1, 0.5)
    with pytest.raises(ValueError, match="n_runs 0"):
        split_plans(0, DriftModel(0.1, 0.2))
