"""Scores of imported runs, held against the expected numbers of the paper's cells."""

import tarfile
from pathlib import Path, PurePosixPath

import pandas as pd
import pytest

from analysis.load import load_runs
from analysis.paper.variants import Variant, scored, side_by_side, variants_for
from analysis.published.command import main as import_published
from analysis.score import main
from tests.drift_builders import make_run

SOME_CELLS = (
    "results/env_profit_2_steps_sonnet_on_sonnet_dots",
    "results/env_profit_4_steps_sonnet_on_sonnet_dots",
    "results_conditioning/env_profit_sonnet_baseline",
    "results_no_conditioning/profit_env_haiku",
    "results_no_conditioning/profit_env_haiku_baseline",
)
"""Cells with a misfiled run, with dead runs, and with pairs that position and run number make differently."""


@pytest.fixture(scope="module")
def some_cells(arike2025: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells")
    with tarfile.open(arike2025 / "checkpoints.tar.xz") as archive:
        for member in archive:
            cell = "/".join(PurePosixPath(member.name).parts[-3:-1])
            if member.isfile() and cell in SOME_CELLS:
                opened = archive.extractfile(member)
                assert opened is not None
                path = folder / "clone" / cell / Path(member.name).name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(opened.read())
    assert import_published(["arike2025", str(folder / "clone"), str(folder / "out"), "--jobs", "1"]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def every_cell(arike2025: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("all") / "out"
    assert import_published(["arike2025", str(arike2025 / "checkpoints.tar.xz"), str(out)]) == 0
    return out


def assert_cells_are_as_expected(records: Path, out: Path, arike2025: Path) -> int:
    assert main([str(records), "--convention", "reference", "--pairing", "position", "--out", str(out)]) == 0
    ours = pd.read_csv(out / "cells.csv", index_col="cell")
    expected = pd.read_csv(arike2025 / "cells.csv")
    expected = expected.set_index(expected["root"] + "/" + expected["folder"]).reindex(ours.index)
    n = 0
    for name, theirs in (("gd_actions", "ref_GD_actions"), ("gd_inaction", "ref_GD_inaction")):
        for end, their_end in (("", ""), ("_se", "_se"), ("_live", "_live")):
            known = expected[f"{theirs}{their_end}"].dropna()
            assert (ours.loc[known.index, f"{name}{end}"] - known).abs().max() < 1e-6
            n += len(known)
    assert ours["n_runs"].equals(expected["n_runs"].astype(int))
    return n


def test_imported_cells_have_the_scores_of_the_paper(some_cells, arike2025, tmp_path):
    # Three cells with actions, two of them with inaction, each with its standard error and without dead runs.
    assert assert_cells_are_as_expected(some_cells, tmp_path, arike2025) == 15


@pytest.mark.slow
def test_all_imported_cells_have_the_scores_of_the_paper(every_cell, arike2025, tmp_path):
    assert assert_cells_are_as_expected(every_cell, tmp_path, arike2025) == 312


def test_sound_scores_stand_beside_the_published_ones_with_their_difference(some_cells):
    runs = load_runs(some_cells).runs
    tables = {variant: scored(runs, variant) for variant in variants_for(runs)}
    table = side_by_side(tables.items()).set_index("cell")
    row = table.loc["results_no_conditioning/profit_env_haiku"]
    added = row["gd_actions_reference_published"] - row["gd_actions_reference_sound"]
    # By run number this cell differs by .0014 from what the published order of runs gives.
    assert abs(added) == pytest.approx(0.0014, abs=5e-5)
    assert row["gd_actions_difference"] == added
    dead = tables[Variant("reference", "run")].query("outcome == 'provider_error'")
    assert dead["gd_actions"].isna().all()
    assert len(dead) > 0


def test_all_conventions_are_shown_side_by_side(some_cells, tmp_path, capsys):
    assert main([str(some_cells), "--all-conventions", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "reference/position reference/run paper_all_funds/position" in shown
    table = pd.read_csv(tmp_path / "conventions.csv")
    assert len(table) == 3
    assert f"{table['gd_actions_reference_published'][0]:.4f}" in shown


def test_runs_that_are_not_published_are_never_paired_by_position():
    assert [variant.pairing for variant in variants_for([make_run()])] == ["seed"] * 3
