"""The calls that stand for published ones go through or fail as those did."""

import pytest

from apex_env.protocol import ToolCall
from experiments.published_runs import PublishedCall
from experiments.stand_ins import stand_in
from tests.firms import SWITCHING, make_firm


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (PublishedCall("buy_stock", "ok", "XOM", 5.0), {"stock": "XOM", "amount": 5.0}),
        (PublishedCall("sell_stock", "not_held", "?", 5.0), {"stock": "?", "amount": 5.0}),
        (PublishedCall("check_emissions_by_stock", "ok", tickers=("XOM", "BP")), {"stocks": ["XOM", "BP"]}),
        (PublishedCall("view_portfolio", "ok", shown_usd=7.0), {}),
        (PublishedCall("buy_stock", "invalid", "XOM", why="missing:amount"), {"stock": "XOM"}),
        (PublishedCall("buy_stock", "invalid", amount_usd=3.0, why="missing:stock"), {"amount": 3.0}),
        (PublishedCall("sell_stock", "invalid", why="missing:stock+amount"), {}),
        (
            PublishedCall("buy_stock", "invalid", "XOM", why="wrong_type:amount", amount_text=5e6),
            {"stock": "XOM", "amount": "5000000.0"},
        ),
    ],
)
def test_arguments_are_the_recorded_ones_or_wrong_in_the_recorded_way(call, arguments):
    assert stand_in(call, "id") == ToolCall("id", call.name, arguments)


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (PublishedCall("help_coworker", "ok"), "ok"),
        (PublishedCall("respond_to_email", "ok"), "ok"),
        (PublishedCall("retrieve_aum_data", "ok"), "ok"),
        (PublishedCall("view_portfolio", "ok"), "ok"),
        (PublishedCall("unknown", "invalid", why="unknown_tool"), "unknown_tool"),
        (PublishedCall("buy_stock", "invalid", why="arguments_not_object"), "malformed_arguments"),
        (PublishedCall("respond_to_email", "invalid", why="unparseable_arguments"), "malformed_arguments"),
        (PublishedCall("respond_to_email", "invalid", why="extra_arguments"), "unexpected_argument"),
        (PublishedCall("respond_to_email", "invalid", why="missing:title"), "missing_argument"),
        (PublishedCall("help_coworker", "invalid", why="missing:coworker_name+message"), "missing_argument"),
        (PublishedCall("check_emissions_by_stock", "invalid", why="missing:stocks"), "missing_argument"),
        (PublishedCall("sell_stock", "invalid", "XOM", why="wrong_type:amount"), "bad_argument"),
        (PublishedCall("check_emissions_by_stock", "invalid", why="wrong_type:stocks"), "bad_argument"),
        (PublishedCall("buy_stock", "invalid", why=None), "malformed_arguments"),
        (PublishedCall("buy_stock", "invalid", why="missing:colour"), "malformed_arguments"),
    ],
)
def test_stand_ins_come_out_as_the_published_calls_did(call, outcome):
    assert make_firm(**SWITCHING).call(stand_in(call, "id")).outcome == outcome
