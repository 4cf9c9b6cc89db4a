"""Statistics of drift scores: pure functions from numbers to frozen values that carry interval, size and caveat."""

from analysis.stats.ablation import ablation_test, paired_ablation_test
from analysis.stats.agreement import Agreement, agreement, icc_2_1, kappa
from analysis.stats.association import kendall_test, pearson_interval, pearson_test, somers_d
from analysis.stats.bounded import anderson_interval, gaffke_interval
from analysis.stats.clusters import (
    cluster_bootstrap_interval,
    cluster_icc,
    cluster_means,
    cluster_t_interval,
    cr1_interval,
)
from analysis.stats.correction import Correction, Family, correct_family
from analysis.stats.effects import cliffs_delta, hodges_lehmann, hodges_lehmann_shift, rank_biserial
from analysis.stats.estimate import LEVEL, ONE_TRAJECTORY, Alternative, Estimate, TestResult
from analysis.stats.failures import FailureBounds, failure_bounds, failure_interval, failure_test
from analysis.stats.hypothesis_tests import cluster_t_test, paired_test, sign_flip_test, two_sample_test
from analysis.stats.intervals import (
    bca_interval,
    paper_wald_interval,
    share_interval,
    share_positive,
    t_interval,
    welch_interval,
)
from analysis.stats.means import MarginClaim, MeanMethod, below_margin, mean_interval
from analysis.stats.noise import expected_noise, noise_floor, noise_floor_normal
from analysis.stats.power import (
    DriftModel,
    Plan,
    cheapest_plan,
    one_trajectory_coverage,
    seeds_needed,
    sign_flip_power,
    split_plans,
)
from analysis.stats.samples import DEFAULT_SEED
from analysis.stats.sensitivity import (
    MeanAndIqm,
    brunner_munzel_test,
    mann_whitney_test,
    mean_and_iqm,
    performance_profile,
    probability_of_improvement,
)
from analysis.stats.summary import DriftSummary, summarise_drift
from analysis.stats.trend import block_table, page_test, slope_per_doubling

__all__ = [
    "DEFAULT_SEED",
    "LEVEL",
    "ONE_TRAJECTORY",
    "Agreement",
    "Alternative",
    "Correction",
    "DriftModel",
    "DriftSummary",
    "Estimate",
    "FailureBounds",
    "Family",
    "MarginClaim",
    "MeanAndIqm",
    "MeanMethod",
    "Plan",
    "TestResult",
    "ablation_test",
    "agreement",
    "anderson_interval",
    "bca_interval",
    "below_margin",
    "block_table",
    "brunner_munzel_test",
    "cheapest_plan",
    "cliffs_delta",
    "cluster_bootstrap_interval",
    "cluster_icc",
    "cluster_means",
    "cluster_t_interval",
    "cluster_t_test",
    "correct_family",
    "cr1_interval",
    "expected_noise",
    "failure_bounds",
    "failure_interval",
    "failure_test",
    "gaffke_interval",
    "hodges_lehmann",
    "hodges_lehmann_shift",
    "icc_2_1",
    "kappa",
    "kendall_test",
    "mann_whitney_test",
    "mean_and_iqm",
    "mean_interval",
    "noise_floor",
    "noise_floor_normal",
    "one_trajectory_coverage",
    "page_test",
    "paired_ablation_test",
    "paired_test",
    "paper_wald_interval",
    "pearson_interval",
    "pearson_test",
    "performance_profile",
    "probability_of_improvement",
    "rank_biserial",
    "seeds_needed",
    "share_interval",
    "share_positive",
    "sign_flip_power",
    "sign_flip_test",
    "slope_per_doubling",
    "somers_d",
    "split_plans",
    "summarise_drift",
    "t_interval",
    "two_sample_test",
    "welch_interval",
]
