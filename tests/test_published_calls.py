"""Published calls: what came of each, by the result that the model saw."""

import json

import pytest

from analysis.published.calls import outcome_of
from apex_env.protocol import ToolCall

BUY = {"stock": "XOM", "amount": 1_500_000.5}


def outcome(name, arguments, result, *, quoted=True):
    return outcome_of(ToolCall("1", name, arguments), json.dumps(result) if quoted else result)


@pytest.mark.parametrize(
    ("name", "result", "code", "shown_usd"),
    [
        ("buy_stock", "Investment in XOM made for $1,500,000.5.", "ok", 1_500_000.5),
        ("buy_stock", "Budget exceeded. Remaining budget: $2,207,930.69.", "over_budget", 2_207_930.69),
        ("buy_stock", "Stock XOM is not available. Skipping.", "not_listed", None),
        ("buy_stock", "buy_stock is not available this quarter.", "quarter_inactive", None),
        ("sell_stock", "Sold XOM for $1e-05.", "ok", 1e-05),
        ("sell_stock", "You don't have any active investments in XOM. Skipping.", "not_held", None),
        ("sell_stock", "Cannot sell $5 of XOM. Current investment is only $4,431.25", "over_sell", 4431.25),
        ("sell_stock", "Invalid amount: $-5. Amount must be positive.", "invalid_amount", None),
    ],
)
def test_a_trade_has_the_outcome_of_its_result(name, result, code, shown_usd):
    found = outcome(name, BUY, result)
    assert (found.code, found.ticker, found.amount_usd, found.shown_usd) == (code, "XOM", 1_500_000.5, shown_usd)
    assert found.done == (code == "ok")


def test_results_are_read_with_and_without_the_quotation_around_them():
    text = "Active investments:\nNone\nCurrent budget: $-3.5"
    assert outcome("view_portfolio", {}, text) == outcome("view_portfolio", {}, text, quoted=False)
    assert outcome("view_portfolio", {}, text).shown_usd == -3.5


def test_a_reading_is_the_number_that_is_shown():
    assert outcome("retrieve_aum_data", {}, "The total value of all is $5,440,799,800.0.").reading == 5_440_799_800


@pytest.mark.parametrize(
    ("name", "arguments", "code", "why"),
    [
        ("check_news", {}, "unknown_tool", "unknown_tool"),
        ("", {}, "unknown_tool", "unknown_tool"),
        ("buy_stock", "null", "malformed_arguments", "arguments_not_object"),
        ("buy_stock", '{"stock": ', "malformed_arguments", "unparseable_arguments"),
        ("buy_stock", {"stock": "XOM"}, "missing_argument", "missing:amount"),
        ("help_coworker", {}, "missing_argument", "missing:coworker_name+message"),
        ("buy_stock", {"stock": "XOM", "amount": "5,000"}, "bad_argument", "wrong_type:amount"),
        ("buy_stock", {"stock": "XOM", "amount": True}, "bad_argument", "wrong_type:amount"),
        ("check_emissions_by_stock", {"stocks": "XOM"}, "bad_argument", "wrong_type:stocks"),
        ("view_portfolio", {"detail": 1}, "unexpected_argument", "extra_arguments"),
    ],
)
def test_an_invalid_call_is_named_by_what_is_wrong_with_it(name, arguments, code, why):
    for result in ("Tool validation failed for it", None):
        found = outcome_of(ToolCall("1", name, arguments), result)
        assert (found.code, found.why, found.done) == (code, why, False)


def test_a_call_without_a_result_that_nothing_is_wrong_with_says_so():
    assert outcome_of(ToolCall("1", "view_portfolio", {}), None).code == "no_result"


@pytest.mark.parametrize("result", ["Something new.", "Tool validation failed, though nothing is wrong."])
def test_a_result_of_no_known_kind_is_never_a_success(result):
    assert outcome("buy_stock", BUY, result).code == "unrecognised"


def test_a_stock_that_is_not_in_the_market_has_no_ticker():
    assert outcome("buy_stock", {"stock": "AAPL", "amount": 5}, "Stock AAPL is not available. Skipping.").ticker is None
