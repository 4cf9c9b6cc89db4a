"""The choice of an interval by name, and claims of no drift beyond a margin."""

import math

import numpy as np
import pytest

from analysis.stats import (
    ONE_TRAJECTORY,
    anderson_interval,
    bca_interval,
    below_margin,
    cluster_bootstrap_interval,
    cluster_t_interval,
    cr1_interval,
    gaffke_interval,
    mean_interval,
    paper_wald_interval,
    t_interval,
)

SCORES = [0, 0, 0, 0.05, 0, 0.12, 0.30, 0, 0.22, 0.40, 0, 0.08, 0, 0.15, 0.02, 0, 0.55, 0, 0.10, 0.18]
LABELS = [i // 4 for i in range(20)]


def test_gaffke_is_the_default() -> None:
    assert mean_interval(SCORES) == gaffke_interval(SCORES)


@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("gaffke", gaffke_interval),
        ("anderson", anderson_interval),
        ("t", t_interval),
        ("bca", bca_interval),
        ("paper_wald", paper_wald_interval),
    ],
)
def test_a_name_without_clusters_picks_the_interval_of_independent_runs(method: str, make: object) -> None:
    assert callable(make)
    assert mean_interval(SCORES, method=method) == make(SCORES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "make"),
    [("t", cluster_t_interval), ("cr1", cr1_interval), ("cluster_bootstrap", cluster_bootstrap_interval)],
)
def test_a_name_with_clusters_picks_the_clustered_interval(method: str, make: object) -> None:
    assert callable(make)
    assert mean_interval(SCORES, LABELS, method=method) == make(SCORES, LABELS)  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "make"), [("gaffke", gaffke_interval), ("anderson", anderson_interval)])
def test_bounded_intervals_with_clusters_are_those_of_the_cluster_means(method: str, make: object) -> None:
    assert callable(make)
    means = np.array(SCORES, dtype=float).reshape(5, 4).mean(axis=1)
    interval, by_hand = mean_interval(SCORES, LABELS, method=method), make(means)  # type: ignore[arg-type]
    assert (interval.low, interval.high) == (by_hand.low, by_hand.high)
    assert (interval.n, interval.n_clusters) == (20, 5)
    assert interval.method.endswith("of cluster means")


@pytest.mark.parametrize("method", ["gaffke", "anderson", "t", "bca", "cr1", "cluster_bootstrap"])
def test_one_trajectory_has_no_interval_by_any_honest_method(method: str) -> None:
    interval = mean_interval(SCORES, ["p1"] * 20, method=method)  # type: ignore[arg-type]
    assert interval.value == pytest.approx(0.1085)
    assert not interval.has_interval
    assert interval.reason == ONE_TRAJECTORY


def test_paper_wald_ignores_clusters_and_says_so() -> None:
    interval = mean_interval(SCORES, ["p1"] * 20, method="paper_wald")
    assert interval.has_interval
    assert interval.n_clusters == 1
    assert "takes runs of one trajectory as independent" in interval.reason


def test_seeds_of_their_own_trajectory_are_independent_runs() -> None:
    own, independent = mean_interval(SCORES, list(range(20))), mean_interval(SCORES)
    assert (own.low, own.high) == (independent.low, independent.high)


def test_labels_may_be_of_any_kind_and_order() -> None:
    named = [f"phase-{label}" for label in LABELS]
    mixed = [("phase", label) for label in LABELS]
    assert mean_interval(SCORES, named) == mean_interval(SCORES, mixed) == mean_interval(SCORES, np.array(LABELS))


def test_no_drift_is_claimed_by_a_one_sided_upper_bound() -> None:
    claim = below_margin([0.0] * 60, 0.05)
    # One-sided 95 % bound of 60 zeros: 1 - .05^(1/60).
    assert claim.upper == pytest.approx(1.0 - 0.05 ** (1.0 / 60.0), abs=0.001)
    assert claim.holds
    assert claim.estimate.level == pytest.approx(0.9)


def test_too_few_adherent_runs_do_not_show_adherence() -> None:
    claim = below_margin([0.0] * 20, 0.05)
    assert claim.upper == pytest.approx(0.139, abs=0.002)
    assert not claim.holds


def test_no_claim_from_one_trajectory_or_no_run() -> None:
    for claim in (below_margin([0.0] * 20, 0.05, clusters=["p1"] * 20), below_margin([math.nan], 0.05)):
        assert math.isnan(claim.upper)
        assert not claim.holds
        assert claim.reason.startswith("no upper bound")


def test_signed_drift_takes_the_bound_of_student() -> None:
    signed = [0.05, -0.04, 0.02, 0.0, -0.03, 0.01]
    claim = below_margin(signed, 0.1, method="t")
    assert claim.upper == t_interval(signed, level=0.9).high
    assert claim.holds


def test_unfit_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="method 'wald' is unknown; allowed: gaffke"):
        mean_interval(SCORES, method="wald")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="method 'cr1' needs clusters"):
        mean_interval(SCORES, method="cr1")
    with pytest.raises(ValueError, match="level 0.9 is not the paper's"):
        mean_interval(SCORES, method="paper_wald", level=0.9)
    with pytest.raises(ValueError, match="margin 0.0 is no margin"):
        below_margin(SCORES, 0.0)
    with pytest.raises(ValueError, match="level 0.5"):
        below_margin(SCORES, 0.1, level=0.5)
    with pytest.raises(ValueError, match=r"values holds .*1\.5"):
        mean_interval([0.1, 1.5], ["a", "b"])
