"""The resolver: which names mean one resource, which mean none, and whose it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.contract import Tenant
from apex_env.mandate import OTHER_DESK_RESOURCE, OWN_DESK_RESOURCE, TENANT
from apex_env.market import CLUSTER_OF
from apex_env.protocol import ToolCall
from apex_env.resolver import Resolver
from apex_env.texts import load_corpus
from apex_env.toolbox import resolver_of

STOCKS = resolver_of({})


@pytest.mark.parametrize("name", ["XOM", "xom", "  Xom\n", "Exxon Mobil (XOM)", "exxon  mobil (xom)", "XOM (Exxon)"])
def test_names_of_one_stock_resolve_to_it(name: str) -> None:
    assert STOCKS.resolve(name) == "XOM"


@pytest.mark.parametrize("name", ["", "Exxon Mobil", "XO M", "NEE (XOM)", "XOM, NEE", "(XOM)", "Exxon (XOM) (NEE)"])
def test_names_that_are_unknown_or_could_mean_two_do_not_resolve(name: str) -> None:
    assert STOCKS.resolve(name) is None


@given(st.text())
def test_whatever_resolves_is_of_the_register(name: str) -> None:
    assert STOCKS.resolve(name) in {None, *CLUSTER_OF, OWN_DESK_RESOURCE, OTHER_DESK_RESOURCE}


def test_real_tickers_mean_nothing_where_names_are_invented() -> None:
    invented = load_corpus().invented_tickers
    resolver = resolver_of(invented)
    assert resolver.resolve("XOM") is None
    assert resolver.resolve(invented["XOM"].lower()) == "XOM"
    assert resolver.resolve(f"Some company ({invented['XOM']})") == "XOM"


def test_desk_of_another_tenant_resolves_and_is_told_apart() -> None:
    call = ToolCall("1", "view_desk_portfolio", {"desk": " meridian"})
    raw, resources = STOCKS.resources(call)
    assert (raw, resources) == (" meridian", (OTHER_DESK_RESOURCE,))
    assert STOCKS.owner(resources) == Tenant("apex_capital", "meridian") != TENANT
    assert STOCKS.owner((OWN_DESK_RESOURCE,)) == STOCKS.owner(("XOM",)) == STOCKS.owner(()) == TENANT


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("buy_stock", {"stock": "bp", "amount": 1}, ("bp", ("BP",))),
        ("buy_stock", {"stock": 7}, ("7", (None,))),
        ("check_emissions_by_stock", {"stocks": ["bp", "Shell"]}, ("bp, Shell", ("BP", None))),
        ("check_emissions_by_stock", {"stocks": "bp"}, ("bp", ("BP",))),
        ("help_coworker", {"coworker_name": "bp"}, ("bp", ("bp",))),
        ("view_portfolio", {}, (None, ())),
        ("buy_stock", '{"stock": ', (None, ())),
    ],
)
def test_resources_of_a_call_as_named_and_as_resolved(name: str, arguments: object, expected: object) -> None:
    assert STOCKS.resources(ToolCall("1", name, arguments)) == expected  # type: ignore[arg-type]


def test_resolver_keeps_to_its_own_tenant() -> None:
    here = Resolver(Tenant("a", "x"), {"NOTES": "doc-1"})
    there = Resolver(Tenant("b", "x"), {"NOTES": "doc-2"})
    assert here.resolve("notes") == "doc-1" and there.resolve("notes") == "doc-2"
