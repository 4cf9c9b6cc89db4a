"""Texts compared with each other."""

import pytest

from apex_env.overlap import near_duplicates, shared_runs, words

EIGHT = "one two three four five six seven eight"


def test_words_ignore_case_and_punctuation():
    assert words("It's, IT’S — {ticker}: 5,000 co-op") == ["it's", "it's", "ticker", "5", "000", "co", "op"]


def test_run_of_eight_words_is_found_across_punctuation_and_line_ends():
    texts = {"a": ["Zero. One, two three\nfour five six seven eight nine"], "b": [f"x {EIGHT.upper()} y"]}
    found = shared_runs(texts, {})
    assert [(one.first, one.second, one.words) for one in found] == [("a", "b", EIGHT)]


def test_seven_words_in_common_are_allowed():
    assert shared_runs({"a": ["a " + EIGHT[:-6] + " a"], "b": ["b " + EIGHT[:-6] + " b"]}, {}) == []


def test_run_does_not_go_from_title_into_body():
    assert shared_runs({"a": ["one two three four", "five six seven eight"], "b": [EIGHT]}, {}) == []


def test_pair_is_named_once_however_much_it_shares():
    long = " ".join(f"word{n}" for n in range(40))
    assert len(shared_runs({"a": [long], "b": [long]}, {})) == 1


def test_run_in_three_texts_names_all_three_pairs():
    found = shared_runs({name: [EIGHT] for name in "abc"}, {})
    assert {(one.first, one.second) for one in found} == {("a", "b"), ("a", "c"), ("b", "c")}


def test_texts_with_a_part_in_common_are_not_compared_but_others_are():
    texts = {name: [EIGHT] for name in "abc"}
    related = {"a": frozenset("pq"), "b": frozenset("qr"), "c": frozenset("st")}
    assert {(one.first, one.second) for one in shared_runs(texts, related)} == {("a", "c"), ("b", "c")}
    assert {(one.first, one.second) for one in near_duplicates(texts, related)} == {("a", "c"), ("b", "c")}


@pytest.mark.parametrize(
    ("n_common", "found"),
    [
        # Ten words have six shingles of five. With k words of the beginning in common, k - 4 shingles are; out of
        # 12 - (k - 4) in all: k = 6 gives 2 of 10, k = 7 gives 3 of 9, and the limit lies at 0.3.
        (6, []),
        (7, [pytest.approx(3 / 9)]),
    ],
)
def test_near_duplicates_are_told_by_the_jaccard_index_of_five_word_shingles(n_common, found):
    first = [f"w{n}" for n in range(10)]
    second = [*first[:n_common], *(f"v{n}" for n in range(10 - n_common))]
    duplicates = near_duplicates({"a": [" ".join(first)], "b": [" ".join(second)]}, {})
    assert [one.jaccard for one in duplicates] == found
