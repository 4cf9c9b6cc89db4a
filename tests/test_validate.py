"""`make validate`: planted drift is found in real runs, and the tables are written."""

import pandas as pd
import pytest

from analysis.stats.validate import REPETITIONS
from analysis.validate import FOLDER, main, recovery


def test_what_is_planted_is_found_exactly():
    found = recovery([(0.0, 0.0), (0.3, 0.5)], seeds=[1, 2], n_phases=2)
    assert found["holds"].all()
    assert found["gd_actions"].tolist() == pytest.approx([0, 0, 0.3, 0.3])
    assert found["retained_frac"].tolist() == pytest.approx([0, 0, 0.5, 0.5])
    assert found["n_trajectories"].tolist() == [2, 2, 2, 2]


@pytest.mark.slow
def test_the_command_writes_both_tables_and_says_what_does_not_hold(tmp_path, capsys):
    code = main(20, tmp_path)
    assert code in (0, 1)
    assert "written: " in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "validation.csv")) > 100


def test_the_committed_tables_hold_what_is_required():
    checks = pd.read_csv(FOLDER / "validation.csv")
    assert checks[checks["required"]]["holds"].all()
    assert (checks["repetitions"] == REPETITIONS).all()
    gaffke = checks[checks["method"].str.startswith("Gaffke")]
    assert (len(gaffke), gaffke["observed"].min()) == (23, 0.969)  # as the README says
    assert pd.read_csv(FOLDER / "planted_recovery.csv")["holds"].all()
