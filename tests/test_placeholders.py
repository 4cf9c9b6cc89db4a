"""Placeholders in the texts of items."""

from hypothesis import given
from hypothesis import strategies as st

from apex_env.placeholders import escaped, filled, placeholders


def test_every_place_is_filled_and_doubled_braces_become_single():
    assert filled("{ticker}, {ticker}: {{ticker}} }} {{", "XOM") == "XOM, XOM: {ticker} } {"


def test_stock_within_braces_of_the_text_is_filled():
    assert filled("{{{ticker}}}", "XOM") == "{XOM}"


def test_names_are_found_in_order_and_doubled_braces_are_none():
    assert placeholders("{b} {{c}} {a} {}") == ["b", "a", ""]


@given(st.text(alphabet="{}ticker ab"))
def test_escaped_text_reaches_the_agent_as_it_was(text):
    assert filled(escaped(text), "XOM") == text
    assert placeholders(escaped(text)) == []
