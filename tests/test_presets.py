"""Every preset: what its file says stands in the README, it plays, and its primary question and figures arise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from analysis.cell_table import cells_table, curves_table
from analysis.conventions import CONVENTIONS
from analysis.load import load_runs
from analysis.pairing import pair_runs
from analysis.paper.panels import Tables, draw_levels
from analysis.paper.presets import PRESETS
from analysis.report.cell_runs import cells_of
from analysis.report.families import answers_of, figures_of
from analysis.report.primary import primary_of
from analysis.run_table import runs_table
from experiments.config import validate
from experiments.run import CONF_DIR, configurations_of, play_settings

FILES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((CONF_DIR / "experiment").glob("*.yaml"))}

ASKED_FOR = (
    "adversarial_pressure goal_switching combined token_distance random_strings pattern_matching state_complexity "
    "fresh_desk summarised borrowed_history inherited_drift goal_reversal instruction_hierarchy unrelated_goal "
    "goal_reminder tool_malfunction switch_announced prompt_variants invented_tickers pressure_kinds yoked_pressure "
    "paper smoke"
).split()


def readme_rows() -> Iterator[list[str]]:
    """The cells of each row of the README's table of experiments."""
    text = (CONF_DIR.parent / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Experiments\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    for line in lines:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_experiment_that_is_asked_for_is_there() -> None:
    assert set(ASKED_FOR) <= set(FILES)


def test_table_of_the_readme_says_what_the_files_say() -> None:
    rows = list(readme_rows())
    assert sorted(row[0].strip("`") for row in rows) == sorted(FILES)
    for name, tests, speaks, primary in rows:
        data = FILES[name.strip("`")]
        assert data["name"] == name.strip("`")
        assert data["about"] == f"{tests} {speaks}", name
        assert primary == (f"`{data['primary']}`" if data["primary"] else "of each figure"), name
        assert " for " in speaks or "holds" in speaks, f"{name}: no result is said to speak for anything"


def play(name: str, root: Path) -> Any:
    words = [f"experiment={name}", f"results_dir={root}", "seeds=1", "n_phases=1", "trial=3", "sync=end"]
    (data,) = configurations_of(words)
    settings = validate(data)
    report = play_settings(settings)
    assert report.complete and not report.problems
    return load_runs(settings.root).runs


@pytest.mark.parametrize("name", FILES)
def test_every_experiment_plays_short_and_its_primary_question_and_figures_arise(name: str, tmp_path: Path) -> None:
    runs = play(name, tmp_path)
    assert {run.outcome for run in runs} == {"completed"}
    convention = CONVENTIONS["paper"]
    pairing = pair_runs(runs)
    rows = runs_table(pairing, convention)
    none = pd.DataFrame()
    tables = Tables(cells_table(rows), curves_table(pairing, convention), none, none, none, caption=lambda _: "")
    drawn = [one for preset in PRESETS for one in draw_levels(preset, tables)]
    shown = {cell for one in drawn for cell in one.table["cell"]}
    assert shown == {run.cell.cell_id for run in runs if run.cell.setting != "baseline"}
    assert len({one.name for one in drawn}) == len(drawn)
    figures = figures_of(cells_of(rows, convention))
    if FILES[name]["primary"] is None:
        return
    primaries = {figure.name: primary_of(figure, answers_of(figure)) for figure in figures}
    declared = {name for name, primary in primaries.items() if primary.told == "declared in the experiment file"}
    assert declared
    # Only figures of the level that others are held against leave the question to another figure.
    varied = {figure.name for figure in figures if figure.cells[0].names["factors"]}
    assert FILES[name]["primary"] != "factors" or declared == varied
