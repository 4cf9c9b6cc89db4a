"""The paper's statements and figures, from small tables and small sweeps."""

import pandas as pd
import pytest

from analysis.cli import main
from analysis.paper.charts import stated_table
from analysis.paper.command import first_purchases
from analysis.paper.evidence import MODELS, SONNET, Evidence, number
from analysis.paper.of_design import DESIGN
from analysis.paper.of_goals import GOALS
from analysis.paper.of_histories import HISTORY, correlations
from analysis.paper.of_pressure import PRESSURE
from analysis.paper.of_switches import SWITCH
from analysis.paper.variants import Variant
from experiments.treatment import Treatment
from tests.drift_builders import make_books, make_run
from tests.path import plan, sweep_runs

VARIANT = Variant("reference", "seed")
CHECKS = {statement.name: statement.check for statement in (*PRESSURE, *SWITCH, *DESIGN)}


def weak_runs(scores):
    rows = [
        {"setting": "adversarial_pressure", "system_goal": "profit", "elicitation": "weak"}
        | {"model": model, "gd_actions": score, "history": "own"}
        for model, score in scores.items()
    ]
    return Evidence(VARIANT, pd.DataFrame(rows))


def sonnet_runs(scores):
    rows = [
        {"setting": setting, "system_goal": "emissions", "history": "own", "model": SONNET, "gd_actions": score}
        for setting, score in scores
    ]
    return Evidence(VARIANT, pd.DataFrame(rows))


def test_a_printed_range_holds_only_where_both_ends_are_met():
    met = CHECKS["weak-profit"](weak_runs(dict(zip(MODELS, (0.52, 0.6, 0.7, 0.93), strict=True))))
    assert (met.holds, met.ours, met.n) == ("yes", ".520 to .930", 4)
    missed = CHECKS["weak-profit"](weak_runs(dict(zip(MODELS, (0.56, 0.6, 0.7, 0.93), strict=True))))
    assert missed.holds == "no"


def test_a_statement_without_its_runs_names_what_is_missing():
    finding = CHECKS["weak-profit"](weak_runs({"gpt-4o": 0.5}))
    assert finding.holds == "runs missing"
    assert "claude-3.5-haiku" in finding.note


def test_one_counterexample_refutes_and_a_part_of_the_runs_proves_nothing():
    check = CHECKS["sonnet-never-acts"]
    assert check(sonnet_runs([("goal_switching", 0.0)])).holds == "runs missing"
    assert check(sonnet_runs([("goal_switching", 0.0), ("combined", 0.0)])).holds == "yes"
    assert check(sonnet_runs([("goal_switching", 0.2)])).holds == "no"


def test_first_purchases_end_with_the_second_quarter():
    books = [make_books(1, bought=(3, 1)), make_books(2, bought=(0, 4)), make_books(3, bought=(0, 9))]
    assert list(first_purchases([make_run(books)]).values()) == [(5, 8)]


@pytest.mark.parametrize(("value", "shown"), [(0.0, ".000"), (0.5191, ".519"), (-0.25, "-.250"), (1.0, "1.000")])
def test_scores_are_shown_in_three_digits(value, shown):
    assert number(value) == shown


def switched_runs(model, history, setting, scores):
    return pd.DataFrame(
        {"model": model, "history": history, "setting": setting, "n_instrumental": length}
        | {"gd_actions": score, "gd_inaction": 0.0}
        for length, score in zip((2, 4, 8, 16), scores, strict=True)
    )


def test_an_ablation_is_held_against_the_original_of_its_own_setting_first():
    ablated = switched_runs(SONNET, "repeated_token", "combined", (0.1, 0.2, 0.3, 0.4))
    bare = switched_runs(SONNET, "own", "goal_switching", (0.4, 0.3, 0.2, 0.1))
    pressed = switched_runs(SONNET, "own", "combined", (0.2, 0.4, 0.6, 0.8))
    alone = correlations(Evidence(VARIANT, pd.concat([ablated, bare])), "repeated_token").set_index("score")
    assert alone["r"]["gd_actions"] == pytest.approx(-1)
    assert alone["original_setting"]["gd_actions"] == "goal_switching"
    both = correlations(Evidence(VARIANT, pd.concat([ablated, bare, pressed])), "repeated_token").set_index("score")
    assert both["r"]["gd_actions"] == pytest.approx(1)
    assert both["original_setting"]["gd_actions"] == "combined"


def test_an_original_of_another_setting_decides_nothing():
    ablated = switched_runs(SONNET, "repeated_token", "combined", (0.1, 0.2, 0.3, 0.4))
    bare = switched_runs(SONNET, "own", "goal_switching", (0.4, 0.3, 0.2, 0.1))
    (check,) = (statement.check for statement in HISTORY if statement.name == "token-distance")
    finding = check(Evidence(VARIANT, pd.concat([ablated, bare])))
    assert (finding.holds, finding.ours) == ("runs missing", "above in 2 of 8, 2 of them not Haiku's inaction")


def test_tokens_that_are_estimated_decide_nothing():
    rows = [
        {"model": "gpt-4o", "n_instrumental": 2, "tokens": 2626.0, "n": 20, "method": "estimated", "estimated": True}
    ]
    (check,) = (statement.check for statement in GOALS if statement.name == "tokens-gpt-4o")
    finding = check(Evidence(VARIANT, pd.DataFrame(), tokens=pd.DataFrame(rows)))
    assert (finding.ours, finding.holds) == ("2,626 (2)", "runs missing")


def test_stated_goals_have_their_share_interval_and_n():
    runs = pd.DataFrame({"setting": "combined", "model": "m", "n_instrumental": 2, "stated": [1, 1, 2, 3]})
    (row,) = stated_table(runs).to_dict("records")
    assert (row["system"], row["hybrid"], row["competing"], row["drifted"], row["n"]) == (0.5, 0.25, 0.25, 0.5, 4)
    # Clopper and Pearson for 2 of 4.
    assert (row["drifted_low"], row["drifted_high"]) == (
        pytest.approx(0.0676, abs=1e-4),
        pytest.approx(0.9324, abs=1e-4),
    )


def test_own_runs_are_drawn_over_others_and_missing_figures_are_named(tmp_path, capsys):
    records, out = tmp_path / "records", tmp_path / "out"
    sweep_runs(records, plan("adherent", Treatment("goal_switching", n_instrumental=2)))
    assert main(["reproduce", str(records), "--with", f"published={records}", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "pressure: not drawn, the runs are missing" in shown
    table = pd.read_csv(out / "goal_switching.csv")
    assert sorted(table["drawn"]) == ["behind", "front"]
    assert set(table["convention"]) == {"reference"}
    claims = pd.read_csv(out / "claims.csv").query("name == 'weak-profit'")
    assert set(claims["holds"]) == {"runs missing"}
    assert set(claims["pairing"]) == {"seed"}
    assert (out / "goal_switching.pdf").stat().st_size > 0
