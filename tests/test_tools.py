"""The agent's tools: definitions, argument checks, and which of them an episode offers."""

import math

import jsonschema
import pytest

from apex_env.protocol import ToolCall, ToolError
from apex_env.scenario import Scenario
from apex_env.texts import load_corpus
from apex_env.tools import TOOLS, check_arguments, shown, tool_specs
from tests.firms import SWITCHING, TEXTS

NUMBER = TEXTS["expected"]["number"]


def error(name: str, arguments: object) -> ToolError:
    with pytest.raises(ToolError) as raised:
        check_arguments(ToolCall("1", name, arguments), TEXTS)
    return raised.value


def names(**scenario: object) -> list[str]:
    return [spec.name for spec in tool_specs(Scenario(**scenario), load_corpus())]


@pytest.mark.parametrize(
    "amount", ["5,000,000", "$5000000", "5000000", "5e6", "all", "", None, True, False, [5], {"usd": 5}]
)
def test_amount_that_is_no_number_is_refused_with_the_accepted_form_and_never_guessed(amount):
    told = error("buy_stock", {"stock": "XOM", "amount": amount})
    assert told.code == "bad_argument"
    assert told.text == f"Argument 'amount' of buy_stock is {amount!r}, which is not allowed: {NUMBER}"
    assert "2500000" in NUMBER


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, 10**400, 10**5000], ids=lambda _: "")
@pytest.mark.parametrize("name", ["buy_stock", "sell_stock"])
def test_amount_that_is_not_finite_is_refused(name, amount):
    told = error(name, {"stock": "XOM", "amount": amount})
    assert told.code == "invalid_amount"
    assert told.text.startswith("amount ") and "finite number above 0" in told.text and len(told.text) < 400


@pytest.mark.parametrize("amount", [5_000_000, 5e6, 0.01])
def test_plain_numbers_go_through_as_they_are(amount):
    assert check_arguments(ToolCall("1", "buy_stock", {"stock": "XOM", "amount": amount}), TEXTS) == {
        "stock": "XOM",
        "amount": amount,
    }


@pytest.mark.parametrize("raw", ['{"stock": "XOM", ', "", "[1]"])
def test_arguments_that_are_no_json_object_are_refused_and_shown(raw):
    told = error("buy_stock", raw)
    assert told.code == "malformed_arguments"
    assert repr(raw) in told.text and "stock (a text), amount (" in told.text


def test_missing_argument_is_named():
    told = error("sell_stock", {"stock": "XOM"})
    assert (told.code, "'amount'" in told.text) == ("missing_argument", True)


def test_unexpected_argument_is_named():
    told = error("view_portfolio", {"stock": "XOM"})
    assert told.code == "unexpected_argument"
    assert told.text == "view_portfolio has no argument 'stock'; expected: no arguments"


@pytest.mark.parametrize("stocks", ["XOM", [], [1], ["XOM", None], {"XOM": 1}])
def test_list_of_stocks_has_to_be_a_list_of_texts_that_is_not_empty(stocks):
    assert error("check_emissions_by_stock", {"stocks": stocks}).code == "bad_argument"


@pytest.mark.parametrize("stock", [5, None, ["XOM"]])
def test_name_of_a_stock_has_to_be_a_text(stock):
    assert error("buy_stock", {"stock": stock, "amount": 1}).code == "bad_argument"


def test_what_a_model_sent_is_shown_at_bounded_length():
    assert len(shown("x" * 10_000)) < 250
    assert shown("short") == "'short'"
    assert len(error("respond_to_email", "y" * 100_000).text) < 600


@pytest.mark.parametrize(
    ("scenario", "reading"),
    [
        ({}, None),
        ({"system_goal": "profit"}, None),
        ({"setting": "adversarial_pressure"}, None),
        (SWITCHING, "retrieve_aum_data"),
        (SWITCHING | {"setting": "combined", "system_goal": "profit"}, "retrieve_fund_wide_emissions_data"),
        ({"rules": "published"}, "retrieve_aum_data"),
        ({"rules": "published", "system_goal": "profit"}, "retrieve_fund_wide_emissions_data"),
    ],
)
def test_reading_tool_exists_only_where_a_phase_must_end_and_by_the_published_rules_everywhere(scenario, reading):
    always = ["view_portfolio", "buy_stock", "sell_stock", "check_emissions_by_stock"]
    later = ["respond_to_email", "help_coworker", "finish_quarter"]
    assert names(**scenario) == always + ([reading] if reading else []) + later


def test_effect_classes_tell_what_a_tool_can_do():
    expected = {
        "view_portfolio": "read",
        "buy_stock": "trade",
        "sell_stock": "trade",
        "check_emissions_by_stock": "read",
        "retrieve_aum_data": "read",
        "retrieve_fund_wide_emissions_data": "read",
        "respond_to_email": "communicate",
        "help_coworker": "communicate",
        "finish_quarter": "control",
    }
    assert {name: TOOLS[name].effect_class for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("buy_stock", {"stock": "XOM", "amount": 2.5}, {"stock": "XOM", "amount": "2.5"}),
        ("check_emissions_by_stock", {"stocks": ["XOM"]}, {"stocks": "XOM"}),
        ("help_coworker", {"coworker_name": "A", "message": "b"}, {"coworker_name": "A"}),
        ("finish_quarter", {}, {"now": True}),
    ],
)
def test_schemas_allow_what_the_argument_check_allows(name, good, bad):
    spec = next(spec for spec in tool_specs(Scenario(), load_corpus()) if spec.name == name)
    jsonschema.validate(good, dict(spec.parameters))
    assert check_arguments(ToolCall("1", name, good), TEXTS) == good
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, dict(spec.parameters))
    error(name, bad)
