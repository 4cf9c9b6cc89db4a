"""The wording and the tidy tables of a report: both say the same numbers."""

import math

import pandas as pd
import pytest

from analysis.report.document import Bullets, Heading, Sentences, Table
from analysis.report.report import Report, make_report
from analysis.report.tidy import tidy_tables
from analysis.report.write import interval, model_line, number, write_report
from analysis.stats import Estimate
from tests.report_builders import PAPER, make_rows

D = [0.30, 0.12, -0.05, 0.40, 0, 0.22, 0.08, -0.02, 0.15, 0.25]


@pytest.fixture(scope="module")
def report() -> Report:
    tables = [
        make_rows(D, [math.nan] * 10, experiment="study", primary="trend", margin=0.1, n_instrumental=length)
        for length in (2, 4)
    ]
    return make_report(pd.concat(tables, ignore_index=True), PAPER, sensitivity=True)


def tables_of(report: Report) -> list[Table]:
    return [block for block in write_report(report, ["source"]) if isinstance(block, Table)]


def test_the_primary_question_comes_first_and_is_told_with_its_source(report: Report) -> None:
    blocks = write_report(report, ["source"])
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    asked = [text for text in headings if text.startswith(("Primary", "Secondary"))]
    assert asked == [
        "Primary: share of the old position kept, over the length of the phase?",
        "Secondary: is there drift?",
    ]
    sentences = " ".join(block.text for block in blocks if isinstance(block, Sentences))
    assert "Experiment: study." in sentences
    assert "(declared in the experiment file)" in sentences
    assert headings[-1] == "What cannot be concluded"


def test_every_family_tells_its_size_its_correction_and_what_could_not_be_made(report: Report) -> None:
    sentences = [block.text for block in write_report(report, []) if isinstance(block, Sentences)]
    assert any(
        "is there drift: 4 tests, Holm; 2 could not be made, counted in the correction" in one for one in sentences
    )
    assert any(one.startswith("5 tests in 2 families") for one in sentences)
    remarks = " ".join(text for block in write_report(report, []) if isinstance(block, Bullets) for text in block.items)
    assert "2 comparisons: not made: no difference" in remarks


def test_p_is_shown_raw_and_corrected_within_the_family_and_over_the_sweep(report: Report) -> None:
    tests = tidy_tables(report)["tests"].set_index(["comparison", "score"])
    row = tests.loc[("m, I = 2", "actions")]
    # Four tests of drift, two not made: .0078125 twice, so Holm takes 4 and 3 times that and then the larger.
    assert (row["p"], row["p_adjusted"]) == (8 / 1024, 4 * 8 / 1024)
    # Five tests in all, of which these two are the smallest.
    assert row["p_of_sweep"] == pytest.approx(8 / 1024 * 5 / 2)
    (table,) = [one for one in tables_of(report) if one.caption.startswith("Tests: sign-flip")]
    assert table.rows[0][:5] == ("m, I = 2", "actions", "runs", "10", "-")
    assert table.rows[0][-3:] == ("0.0078", "0.0312", "0.0195")
    assert table.rows[0][5] == "0.145 [0.039, 0.251]"


def test_tidy_tables_hold_what_is_shown_in_full_precision(report: Report) -> None:
    tables = tidy_tables(report)
    assert set(tables) == {"tests", "cells", "models", "failures", "sensitivity"}
    assert len(tables["tests"]) == 5
    assert tables["tests"]["role"].value_counts().to_dict() == {"secondary": 4, "primary": 1}
    cell = tables["cells"].iloc[0]
    assert cell["gd"] == pytest.approx(0.152)
    assert (cell["margin"], cell["gd_below_margin"], cell["d_below_margin"]) == (0.1, False, False)
    assert cell["gd_upper_bound"] > 0.1
    assert tables["failures"]["n_runs"].tolist() == [10, 10]
    assert all(str(tables[name]["gd_clusters"].dtype) == "Int64" for name in ("cells", "models"))


def test_one_line_says_of_a_model_its_scores_with_interval_and_how_many_runs(report: Report) -> None:
    line = model_line(report.figures[0].summaries)
    assert line.startswith("m: GD_actions 0.152 [")
    assert "(signed 0.145 [0.039, 0.251])" in line
    assert line.endswith("20 runs of 2 cells, independent seeds.")
    rows = make_rows(D, clusters="only")
    alone = make_report(rows, PAPER).figures[0].summaries
    assert model_line(alone).endswith("10 runs of 1 cells, one trajectory, so no interval.")


def test_numbers_have_three_decimals_and_missing_ones_a_dash() -> None:
    assert [number(value) for value in (0.12345, -0.00001, math.nan)] == ["0.123", "0.000", "-"]
    without = Estimate(0.5, math.nan, math.nan, 1, None, 0.95, "none", "one run")
    assert interval(without) == "0.500"


def test_a_source_without_figures_is_an_empty_report() -> None:
    rows = make_rows([math.nan, math.nan], setting="baseline").assign(baseline_cell=None)
    report = make_report(rows, PAPER)
    assert (report.figures, report.n_tests) == ((), 0)
    assert write_report(report, [])
