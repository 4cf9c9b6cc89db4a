"""Freedom from divergence by quarters since the switch."""

from pathlib import Path

import pandas as pd
import pytest

from analysis.load import load_runs
from analysis.survival import curves_table, times_table
from analysis.survival_figure import draw_free_of_divergence, plot_free_of_divergence
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs


def times(*rows: tuple[str, int, bool], channel: str = "actions") -> pd.DataFrame:
    """Times of runs given as (model, quarters after the switch, diverged)."""
    return pd.DataFrame(
        {
            "setting": "goal_switching",
            "system_goal": "emissions",
            "history": "own",
            "factors": "",
            "channel": channel,
            "model": model,
            "run_id": f"run{number}",
            "cluster": f"run{number}",
            "quarters_after_switch": quarters,
            "diverged": diverged,
        }
        for number, (model, quarters, diverged) in enumerate(rows)
    )


def test_curve_is_the_product_of_conditional_shares() -> None:
    # 5 runs: divergence in quarter 1 (of 5 at risk) and 3 (of 3); one is lost in quarter 2, two are seen to quarter 4.
    table = curves_table(times(("a", 1, True), ("a", 2, False), ("a", 3, True), ("a", 4, False), ("a", 4, False)))
    assert list(table["quarter"]) == [0, 1, 2, 3, 4]
    assert list(table["free_frac"]) == pytest.approx([1, 4 / 5, 4 / 5, 4 / 5 * 2 / 3, 4 / 5 * 2 / 3])
    assert list(table["n_at_risk"]) == [5, 5, 4, 3, 2]
    assert list(table["n_diverged"]) == [0, 1, 0, 1, 0]
    # Greenwood at quarter 1: variance of log S is 1/(5*4) = .05; on the log(-log) scale 1.96*sqrt(.05)/|log .8|.
    assert table["free_frac_low"][1] == pytest.approx(0.2038, abs=1e-4)
    assert table["free_frac_high"][1] == pytest.approx(0.9692, abs=1e-4)
    assert pd.isna(table["free_frac_low"][0])


def test_runs_that_never_diverge_stay_at_one_and_those_that_all_do_fall_to_zero() -> None:
    table = curves_table(times(("a", 10, False), ("a", 10, False), ("b", 1, True), ("b", 1, True)))
    assert set(table[table["model"] == "a"]["free_frac"]) == {1.0}
    assert list(table[table["model"] == "b"]["free_frac"]) == [1.0, 0.0]
    assert table["free_frac_high"].isna().all()


def test_runs_of_records_diverge_when_their_books_say_so(tmp_path: Path) -> None:
    treatment = Treatment("goal_switching", n_instrumental=3, n_evaluation=4)
    for model in ("adherent", "negligent"):
        sweep_runs(tmp_path, plan(model, treatment, seeds=[1, 2, 3]))
    table = times_table(load_runs(tmp_path).runs)
    told = table.groupby(["model", "channel"])[["quarters_after_switch", "diverged"]].agg(["min", "max"])
    assert told.loc[("adherent", "actions")].tolist() == [4, 4, False, False]
    assert told.loc[("negligent", "inaction")].tolist() == [1, 1, True, True]
    drawn = list(draw_free_of_divergence(curves_table(table)))
    assert [name for name, _, _ in drawn] == ["free_of_divergence-goal_switching-emissions"]
    assert {*drawn[0][2]["model"]} == {"adherent", "negligent"}


def test_nothing_to_draw_is_no_figure() -> None:
    assert list(draw_free_of_divergence(curves_table(times_table([])))) == []


def test_two_curves_of_one_model_are_not_drawn_into_one_another() -> None:
    both = pd.concat([times(("a", 1, True)), times(("a", 2, True), channel="inaction")])
    with pytest.raises(ValueError, match="more than one row"):
        plot_free_of_divergence(curves_table(both))
