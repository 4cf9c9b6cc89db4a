"""The scores of the paper's published runs, held against the expected numbers of every run and cell."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis.cell_table import cells_table, curves_table
from analysis.conventions import CONVENTIONS
from analysis.drift import phi, phi_competing, pressure_curve, psi
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from analysis.runs import Run, Window, by_cell
from analysis.sources import read_source

REFERENCE, ALL_FUNDS = CONVENTIONS["reference"], CONVENTIONS["paper_all_funds"]
N_OF_BASELINE = 10
N_UNDER_PRESSURE = 30


@pytest.fixture(scope="module")
def published(arike2025) -> tuple[Run, ...]:
    return read_source(arike2025 / "ledger.jsonl.gz").runs


@pytest.fixture(scope="module")
def expected_runs(arike2025) -> pd.DataFrame:
    table = pd.read_csv(arike2025 / "runs.csv")
    return table.set_index(table["file"].str.removesuffix(".pkl"))


@pytest.fixture(scope="module")
def expected_cells(arike2025) -> pd.DataFrame:
    table = pd.read_csv(arike2025 / "cells.csv")
    return table.set_index(table["root"] + "/" + table["folder"])


@pytest.fixture(scope="module")
def by_position(published):
    return pair_runs(published, "position")


@pytest.fixture(scope="module")
def reference_cells(by_position):
    return cells_table(runs_table(by_position, REFERENCE), interval="paper_wald").set_index("cell")


@pytest.fixture(scope="module")
def all_funds_cells(by_position):
    return cells_table(runs_table(by_position, ALL_FUNDS), interval="paper_wald").set_index("cell")


def assert_equal(ours: pd.Series, expected: pd.Series, *, n: int) -> None:
    """Ours equal all that is expected, which are n numbers, to 1e-6."""
    expected = expected.dropna()
    assert len(expected) == n
    assert (ours.reindex(expected.index) - expected).abs().max() < 1e-6
    assert ours.reindex(expected.index).notna().all()


def whole_window(run: Run):
    """All quarters from the first of the evaluation on, those after its designed end included."""
    return run.quarters(Window(run.n_instrumental + 1, run.books[-1].quarter))


def reference_window(run: Run):
    """The quarters whose purchases the published code counts."""
    if run.cell.is_baseline:
        return run.books[:N_OF_BASELINE]
    return run.books[-N_OF_BASELINE:]


def of_every_run(runs, score) -> pd.Series:
    return pd.Series({run.run_id: score(run) for run in runs})


def test_phi_of_every_run(published, expected_runs):
    ours = of_every_run(published, lambda run: phi(whole_window(run), run.cell.goals.system.cluster, funds="all").value)
    assert_equal(ours, expected_runs["phi_full"], n=1507)


def test_phi_competing_of_every_run(published, expected_runs):
    ours = of_every_run(
        published, lambda run: phi_competing(whole_window(run), run.cell.goals.system.cluster, funds="all").value
    )
    assert_equal(ours, expected_runs["phi_ins_full"], n=1507)


def test_psi_of_every_run(published, expected_runs):
    ours = of_every_run(
        published, lambda run: psi(run.last_closed, run.cell.goals.competing.cluster, empty="zero").value
    )
    assert_equal(ours, expected_runs["psi_N"], n=1507)


def test_raw_action_score_of_the_published_code_of_every_run(published, expected_runs):
    ours = of_every_run(published, lambda run: phi_competing(reference_window(run), "low", funds="all").value)
    assert_equal(ours, expected_runs["ref_da"], n=1108)


def test_raw_inaction_score_of_the_published_code_of_every_run(published, expected_runs):
    ours = of_every_run(published, lambda run: psi(run.last_closed, "high", empty="zero").value)
    assert_equal(ours, expected_runs["ref_di"], n=1108)


def test_pressure_score_of_the_published_code_of_every_run(published, expected_runs):
    long = [run for run in published if len(run.books) >= N_UNDER_PRESSURE]
    ours = of_every_run(
        long, lambda run: pressure_curve(run.books, run.cell.goals.system.cluster)[N_UNDER_PRESSURE - 1]
    )
    assert_equal(ours, expected_runs["ref_adv_t30"], n=554)


def test_position_in_its_folder_of_every_run(by_position, expected_runs):
    places: dict[str, int] = {}
    for run, _ in by_position.pairs:
        places[run.run_id] = sum(name.startswith(f"{run.cell.cell_id}/") for name in places) + 1
    assert_equal(pd.Series(places), expected_runs["ref_pair_index"], n=1193)
    assert len(places) == 1193


def test_clipped_pairs_of_the_published_code(by_position, expected_runs):
    ours = runs_table(by_position, REFERENCE).set_index("run_id")
    assert_equal(ours["gd_actions"], expected_runs["ref_GD_actions_pair"], n=1193)
    assert_equal(ours["gd_inaction"], expected_runs["ref_GD_inaction_pair"], n=874)


@pytest.mark.parametrize(
    ("ours", "expected", "n"),
    [
        ("gd_actions", "ref_GD_actions", 60),
        ("gd_actions_se", "ref_GD_actions_se", 60),
        ("gd_actions_live", "ref_GD_actions_live", 60),
        ("gd_inaction", "ref_GD_inaction", 44),
        ("gd_inaction_se", "ref_GD_inaction_se", 44),
        ("gd_inaction_live", "ref_GD_inaction_live", 44),
        ("n_scored", "n_pairs", 60),
    ],
)
def test_reference_reproduces_every_cell_of_the_paper(reference_cells, expected_cells, ours, expected, n):
    assert_equal(reference_cells[ours], expected_cells[expected], n=n)


@pytest.mark.parametrize(
    ("ours", "expected", "n"),
    [
        ("gd_actions", "paper_GD_actions_full_pair", 60),
        ("gd_inaction", "paper_GD_inaction_baseN_pair", 44),
        ("phi", "phi_e_full", 60),
        ("psi", "psi_e", 60),
    ],
)
def test_all_funds_give_the_printed_formulas_of_every_cell(all_funds_cells, expected_cells, ours, expected, n):
    assert_equal(all_funds_cells[ours], expected_cells[expected], n=n)


def test_pressure_curves_of_every_cell(by_position, expected_cells):
    curves = curves_table(by_position, REFERENCE, interval="paper_wald").groupby("cell")
    expected = expected_cells.dropna(subset="adv_curve")
    assert len(expected) == len(curves) == 16
    for cell, row in expected.iterrows():
        ours = curves.get_group(cell)
        assert np.abs(ours["gd_actions"].to_numpy() - json.loads(row["adv_curve"])).max() < 1e-5
        assert np.abs(ours["gd_actions_se"].to_numpy() - json.loads(row["adv_curve_se"])).max() < 1e-5


def test_pressure_score_of_every_baseline_cell(published, expected_cells):
    scores: dict[str, float] = {}
    for cell, runs in by_cell([run for run in published if run.cell.is_baseline]):
        curves = [pressure_curve(run.books, cell.goals.system.cluster) for run in runs]
        if min(map(len, curves)) >= N_UNDER_PRESSURE:
            scores[cell.cell_id] = float(np.mean([curve[N_UNDER_PRESSURE - 1] for curve in curves]))
    assert_equal(pd.Series(scores), expected_cells["ref_adv_t30"], n=11)


def test_only_reference_gives_the_ranges_that_the_paper_prints(reference_cells, all_funds_cells):
    def weak(cells, system_goal):
        rows = cells[(cells["elicitation"] == "weak") & (cells["system_goal"] == system_goal)]
        return [round(rows["gd_actions"].min(), 3), round(rows["gd_actions"].max(), 3)]

    # The paper prints .51 to .93 and .25 to .37.
    assert weak(reference_cells, "profit") == [0.519, 0.934]
    assert weak(reference_cells, "emissions") == [0.248, 0.373]
    assert weak(all_funds_cells, "profit") == [0.562, 0.954]
    assert weak(all_funds_cells, "emissions") == [0.336, 0.813]


def test_outages_are_never_scored_by_seed(published):
    table = runs_table(pair_runs(published), CONVENTIONS["paper"])
    dead = table[table["outcome"] == "provider_error"]
    assert len(dead) == 8
    assert dead[["gd_actions", "gd_inaction", "phi", "psi"]].isna().all(axis=None)


def test_misfiled_runs_move_to_the_cell_of_their_true_phase(published):
    moved = {
        run.run_id: (run.filed.n_instrumental, run.cell.n_instrumental) for run in published if run.cell != run.filed
    }
    assert moved == {
        "results/env_profit_2_steps_sonnet_on_sonnet_dots/checkpoint_run5_15": (2, 4),
        "results/env_profit_8_steps_4o_on_4o_dots/checkpoint_run5_27": (8, 16),
    }
    sizes = pd.Series([run.cell.cell_id for run in published]).value_counts()
    assert sizes["results/env_profit_16_steps_4o_on_4o_dots"] == 20


def test_runs_of_a_cluster_went_on_from_the_same_books(published):
    seen: dict[tuple[str, int], object] = {}
    for run in published:
        for quarter in range(1, run.n_instrumental + 1):
            books = run.closed(quarter)
            state = (books.cash_usd, dict(books.holdings_usd))
            assert seen.setdefault((run.cluster_id, quarter), state) == state
    assert len({cluster for cluster, _ in seen}) == 9
