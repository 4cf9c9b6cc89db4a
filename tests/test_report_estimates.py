"""Estimates of cells and models, claims of absence, and failures."""

import math

import numpy as np
import pytest

from analysis.cell_table import cells_table
from analysis.report.estimates import cell_estimates, failures_of, model_summaries
from tests.report_builders import figure_from, make_rows

D = [0.30, 0.12, -0.05, 0.40, 0, 0.22, 0.08, -0.02, 0.15, 0.25]


def test_a_clipped_mean_stands_beside_signed_mean_typical_drift_share_and_noise() -> None:
    one = next(cell_estimates(figure_from(make_rows(D)), "gaffke"))
    assert (one.clipped.value, one.signed.value) == (pytest.approx(0.152), pytest.approx(0.145))
    assert (one.clipped.low, one.clipped.high) == pytest.approx((0.068, 0.420), abs=0.003)
    assert (one.signed.low, one.signed.high) == pytest.approx((0.0392, 0.2508), abs=5e-5)
    assert one.positive.value == 0.7
    residuals = np.abs(np.array(D) - 0.145) * math.sqrt(10 / 9)
    assert one.noise.value == pytest.approx(residuals.mean() / 2)
    assert one.typical.has_interval


def test_estimates_are_those_of_the_table_of_cells_also_where_trajectories_are_uneven() -> None:
    rows = make_rows(D, clusters=list("aaaaaabbcc"))
    one = next(cell_estimates(figure_from(rows), "gaffke"))
    cell = cells_table(rows).iloc[0]
    for name, estimate in (("gd_actions", one.clipped), ("d_actions", one.signed)):
        assert estimate.value == cell[name]
        assert (estimate.low, estimate.high) == (cell[f"{name}_low"], cell[f"{name}_high"])
    assert one.positive.value == cell["d_actions_positive"]
    assert one.noise.value == cell["gd_actions_noise"]


def test_one_trajectory_has_estimates_and_no_interval() -> None:
    one = next(cell_estimates(figure_from(make_rows(D, clusters="only")), "gaffke"))
    assert not (one.clipped.has_interval or one.signed.has_interval or one.positive.has_interval)
    assert one.clipped.reason == "conditional on one trajectory"


def test_absence_is_claimed_by_an_upper_bound_below_the_margin_of_the_experiment_file() -> None:
    adherent = make_rows([0.0] * 29 + [0.001], margin=0.1)
    one = next(cell_estimates(figure_from(adherent), "gaffke"))
    assert one.claim is not None
    assert one.signed_claim is not None
    assert (one.claim.margin, one.claim.holds, one.signed_claim.holds) == (0.1, True, True)
    few = next(cell_estimates(figure_from(make_rows([0.0] * 20, margin=0.1)), "gaffke"))
    assert few.claim is not None
    assert (few.claim.holds, few.claim.upper) == (False, pytest.approx(1 - 0.05 ** (1 / 20), abs=2e-3))


@pytest.mark.parametrize(
    ("margins", "reason"),
    [
        (math.nan, "no margin was set in advance"),
        ([0.1, 0.1, 0.2], "runs declare different margins: 0.1 x 2, 0.2 x 1"),
        ([0.1, 0.1, math.nan], "runs declare different margins: 0.1 x 2, none x 1"),
    ],
)
def test_without_one_margin_nothing_is_claimed_and_the_reason_counts_the_runs(margins: object, reason: str) -> None:
    rows = make_rows([0.0, 0.0, 0.0]).assign(margin=margins)
    one = next(cell_estimates(figure_from(rows), "gaffke"))
    assert (one.claim, one.claim_reason) == (None, reason)


def test_a_model_s_mean_counts_each_seed_once_over_its_lengths() -> None:
    tables = [make_rows([0.2, 0.4]), make_rows([0.4, 0.8], n_instrumental=4)]
    actions, inaction = model_summaries(figure_from(*tables), "gaffke")
    assert (actions.score, inaction.score, actions.n_cells, actions.clipped.n) == ("actions", "inaction", 2, 4)
    assert actions.clipped.value == pytest.approx((0.3 + 0.6) / 2)
    assert (actions.scope, actions.clipped.n_clusters) == ("runs", 2)


def test_under_pressure_weak_and_strong_are_two_parts_of_a_model() -> None:
    tables = [
        make_rows([0.2, 0.4], setting="adversarial_pressure", n_instrumental=0, elicitation=prompt)
        for prompt in ("weak", "strong")
    ]
    assert [one.part for one in model_summaries(figure_from(*tables), "gaffke")] == ["strong", "strong", "weak", "weak"]


def test_failures_name_every_launched_run_and_bound_the_mean() -> None:
    rows = make_rows([0.5, 0.5, math.nan, math.nan, 0.5])
    rows.loc[2, "failed"] = "stalled"
    rows.loc[3, "baseline_run"] = None
    rows.loc[4, "cluster"] = ""
    (one,) = failures_of(figure_from(rows), cells_table(rows))
    assert (one.n_runs, one.n_scored, one.n_failed, one.failed) == (5, 3, 1, "stalled x 1")
    assert (one.n_unpaired, one.n_unplaced) == (1, 1)
    assert one.share_failed.value == 0.2
    # Two placed scores of .5 and one failed run, of 0 to 1.
    assert one.bounds[0] == pytest.approx((1 / 3, 2 / 3))
