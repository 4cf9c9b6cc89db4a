"""`apex power`: plans from a spread given or measured, and what the branches of one trajectory can show."""

import numpy as np
import pytest

from analysis.cli import main
from analysis.power_command import measured
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs


def shown_by(capsys, *words):
    code = main(["power", *map(str, words)])
    shown = capsys.readouterr()
    return code, " ".join(shown.out.split()), shown.err


def test_a_spread_that_is_given_leads_to_the_reference_number_of_seeds(capsys):
    code, out, _ = shown_by(capsys, "--drift", ".2", "--sd", ".2", "--icc", ".3")
    assert code == 0
    assert "independent runs (each with its own trajectory, or no switch): 9 (power" in out
    assert "1 trajectories x 20 branches: power 0.00" in out
    assert "20 trajectories x 1 branches: power 1.00" in out
    assert "20 branches of one trajectory: no power over trajectories" in out
    assert "in 49% of experiments" in out


def test_without_an_icc_several_are_assumed_and_said_to_be(capsys):
    code, out, _ = shown_by(capsys, "--drift", ".3", "--sd", ".2", "--runs", "4")
    assert code == 0
    assert [f"ICC {icc} (assumed)" in out for icc in ("0.1", "0.3", "0.6")] == [True] * 3


def test_a_spread_is_measured_within_the_cells_of_a_source(tmp_path, capsys):
    sweep_runs(tmp_path, plan("inertial", Treatment("goal_switching", n_instrumental=8), seeds=range(1, 7), n_phases=3))
    sd, icc, told = measured(str(tmp_path), "actions")
    assert sd > 0
    assert 0 <= icc <= 0.95
    assert "pooled over 1 cells" in told[0]
    code, out, _ = shown_by(capsys, "--drift", ".3", "--results", tmp_path, "--runs", "4")
    assert code == 0
    assert f"sd {np.round(sd, 3):.3f} of d_actions" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sd", ".2"], "--drift"),
        (["--drift", "0", "--sd", ".2"], "drift 0.0 cannot be planned for"),
        (["--drift", "2", "--sd", ".2"], "--drift 2.0 is no drift: above 0, at most 1"),
        (["--drift", ".1", "--sd", "0"], "sd above 0"),
        (["--drift", ".1", "--sd", ".2", "--icc", "2"], "icc 2.0 is no share"),
        (["--drift", ".1", "--sd", ".2", "--power", "2"], "--power 2.0"),
        (["--drift", ".1", "--sd", ".2", "--runs", "0"], "--runs 0"),
        (["--drift", ".1", "--results", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, message, capsys):
    code, _, err = shown_by(capsys, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
