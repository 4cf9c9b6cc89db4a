"""The tables of a corpus."""

from pathlib import Path

import pytest

from apex_env.corpus_tables import (
    by_goal,
    kinds_table,
    longest_scenarios,
    markdown,
    measured,
    mechanisms_table,
    needs_table,
)
from apex_env.texts import load_corpus
from tests.corpora import make_corpus, make_item, with_items

README = Path(__file__).resolve().parents[1] / "README.md"
FIVE = "a b c d e"
ROWS = needs_table(load_corpus())


def small_corpus():
    """Two pressure news for one goal, one for the other, one complete and one composed request."""
    return make_corpus(
        {
            ("pressure_news", "emissions"): [
                make_item("a", body=FIVE, tags=("loss", "urgency")),
                make_item("b", body=f"{FIVE} {{ticker}}", tags=("loss",)),
            ],
            ("pressure_news", "profit"): [make_item("c", body=FIVE, tags=("authority", "authority"))],
            ("coworker_request", ""): [
                make_item("d", kind="coworker_request", body="f g", tags=("documents",)),
                make_item("t+s+p", kind="coworker_request", body="h i j", round=1),
            ],
        }
    )


def test_measures_count_items_words_stocks_and_tags():
    by_key = {(one.kind, one.system_goal): one for one in measured(small_corpus())}
    one = by_key["pressure_news", "emissions"]
    assert (one.n_items, one.n_composed, one.n_with_stock, one.n_words, one.mean_words) == (2, 0, 1, (5, 6), 5.5)
    assert {name: n for name, n in one.mechanisms.items() if n} == {"loss": 2, "urgency": 1}
    assert {name: n for name, n in by_key["pressure_news", "profit"].mechanisms.items() if n} == {"authority": 1}
    requests = by_key["coworker_request", ""]
    assert (requests.n_items, requests.n_composed) == (2, 1)
    assert by_key["praise_news", "profit"].n_items == 0


def test_measures_of_a_goal_sum_up_its_kinds_and_leave_the_neutral_ones_out():
    whole = by_goal(measured(small_corpus()))
    assert (whole["emissions"].n_items, whole["profit"].n_items) == (2, 1)
    assert whole["emissions"].n_words == (5, 6)


def test_tables_show_the_measures():
    kinds = {(row[0], row[1]): row[2:] for row in kinds_table(small_corpus())}
    assert kinds["pressure_news", "emissions"] == ["2", "5.5", "5 to 6", "1"]
    assert kinds["coworker_request", "any"] == ["1 + 1 composed", "2.5", "2 to 3", "0"]
    assert kinds["praise_news", "profit"] == ["0", "-", "-", "0"]
    mechanisms = {row[0]: row[1:] for row in mechanisms_table(small_corpus())}
    assert mechanisms["mechanism"][0] == "pressure_news"
    assert mechanisms["loss"] == ["2 / 0", "0 / 0", "0 / 0", "0 / 0", "0 / 0", "2 / 0", "67% / 0%"]


def test_needs_table_holds_what_the_longest_runs_can_need():
    rows = {row[0]: dict(zip(ROWS[0][1:], row[1:], strict=True)) for row in ROWS[1:]}
    # 74 quarters of 2 news; 64 quarters of 6 requests and 10 of 2; 10 quarters of 2 items a pressure kind, and for the
    # emissions goal of 1 mail a kind.
    need = rows["emissions: combined after requests, 64 + 10 quarters"]
    assert (need["general_news"], need["coworker_request"]) == ("148", "404")
    assert (need["pressure_news"], need["stakeholder_mail"]) == ("20", "10")
    assert rows["profit: combined, 64 + 10 quarters"]["stakeholder_mail"] == "20"
    # 30 quarters, the first two without news and mails.
    assert rows["profit: adversarial_pressure, 30 quarters"]["employee_mail"] == "56"
    assert rows["emissions: baseline, 30 quarters"]["coworker_request"] == "0"
    for name, row in rows.items():
        there = rows[f"{name.split(':')[0]}: in the corpus"]
        assert all(int(row[kind]) <= int(there[kind]) for kind in row), name


@pytest.mark.parametrize("goal", ["emissions", "profit"])
def test_longest_scenarios_have_74_quarters_after_a_switch_and_30_without(goal):
    lengths = {name: scenario.last_quarter for name, scenario in longest_scenarios(goal).items()}
    assert lengths == {name: 74 if "64 + 10" in name else 30 for name in lengths}
    assert {scenario.system_goal for scenario in longest_scenarios(goal).values()} == {goal}


def test_markdown_table_has_columns_of_even_width():
    assert markdown([["a", "long head"], ["longer", "1"]]).splitlines() == [
        "| a      | long head |",
        "|--------|-----------|",
        "| longer | 1         |",
    ]


def test_more_items_change_the_table():
    extra = make_item("extra", body=FIVE, tags=("loss",))
    corpus = with_items(load_corpus(), ("praise_news", "profit"), [extra])
    rows = {(row[0], row[1]): row[2] for row in kinds_table(corpus)}
    assert rows["praise_news", "profit"] == str(len(load_corpus().of_kind("praise_news", "profit")) + 1)


@pytest.mark.parametrize("table", [kinds_table, mechanisms_table, needs_table])
def test_readme_holds_the_tables_as_they_are(table):
    assert markdown(table(load_corpus())) in README.read_text(encoding="utf-8"), "renew it from `apex corpus check`"
