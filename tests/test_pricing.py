"""What a completion costs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.chat import Usage
from experiments.errors import InputError
from experiments.models.pricing import Price, cost_usd, price_from, price_in, price_of, price_table, priced
from experiments.run_spec import ModelConfig

SONNET = Price(input_usd=3.0, output_usd=15.0, cached_usd=0.3, cache_write_usd=3.75)


def config(price: Any = None, model: str = "m", **params: Any) -> ModelConfig:
    return ModelConfig("label", "openai", model, params, {"price": price})


def test_cache_creation_is_priced_apart() -> None:
    # 3 x 3 + 12,304 x 3.75 + 550 x 15 = 9 + 46,140 + 8,250 millionths of a dollar.
    usage = Usage(input_tokens=3, cache_write_tokens=12_304, output_tokens=550)
    assert cost_usd(usage, SONNET) == pytest.approx(0.054399)


def test_cached_input_is_priced_apart_and_as_input_where_it_has_no_price() -> None:
    usage = Usage(input_tokens=1_000_000, cached_tokens=2_000_000)
    assert cost_usd(usage, SONNET) == pytest.approx(3.6)
    assert cost_usd(usage, Price(3.0, 15.0)) == pytest.approx(9.0)


def test_reasoning_is_output_unless_it_has_a_price() -> None:
    usage = Usage(output_tokens=1_000_000, reasoning_tokens=400_000)
    assert cost_usd(usage, SONNET) == pytest.approx(15.0)
    assert cost_usd(usage, Price(3.0, 15.0, reasoning_usd=5.0)) == pytest.approx(9.0 + 2.0)


def test_long_request_is_dearer_as_a_whole() -> None:
    price = Price(1.0, 2.0, above=((200_000, Price(2.0, 4.0)), (500_000, Price(3.0, 6.0))))
    assert cost_usd(Usage(input_tokens=200_000), price) == pytest.approx(0.2)
    assert cost_usd(Usage(input_tokens=100_000, cached_tokens=100_001), price) == pytest.approx(0.400002)
    assert cost_usd(Usage(input_tokens=600_000), price) == pytest.approx(1.8)


@given(st.tuples(*[st.integers(0, 10**6)] * 4))
def test_cost_grows_with_every_kind_of_token_and_is_never_negative(counts: tuple[int, int, int, int]) -> None:
    usage = Usage(*counts)
    more = Usage(*(count + 1 for count in counts))
    assert 0 <= cost_usd(usage, SONNET) < cost_usd(more, SONNET)


def test_unknown_price_is_no_cost_and_a_reported_cost_stays() -> None:
    assert priced(Usage(input_tokens=5), None).cost_usd is None
    assert priced(Usage(input_tokens=5, cost_usd=0.5), SONNET).cost_usd == 0.5
    assert priced(Usage(input_tokens=1_000_000), SONNET).cost_usd == pytest.approx(3.0)


def test_configured_price_comes_before_the_table() -> None:
    assert price_of(config({"input": 1, "output": 2}, "gpt-4o"), ["gpt-4o"]) == Price(1, 2)
    empty = {"input": None, "cached": None, "cache_write": None, "output": None}
    assert price_from(config(empty)) is None
    assert price_from(config(None)) is None


@pytest.mark.parametrize(
    ("price", "told"),
    [
        ({"input": 1}, "needs input and output"),
        ({"input": 1, "output": 2, "inptu": 3}, "did you mean 'input'"),
        ({"input": -1, "output": 2}, "price.input -1 is not allowed"),
        ({"input": "1", "output": 2}, "price.input '1' is not allowed"),
        (5, "price 5 is not allowed"),
    ],
)
def test_wrong_prices_are_refused(price: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        price_from(config(price))


ENTRY = {
    "input_cost_per_token": 2e-6,
    "output_cost_per_token": 8e-6,
    "cache_read_input_token_cost": 5e-7,
    "input_cost_per_token_above_200k_tokens": 4e-6,
    "output_cost_per_token_above_200k_tokens": 16e-6,
    "input_cost_per_token_flex": 1e-6,
    "output_cost_per_token_flex": 4e-6,
}


def test_entry_of_the_table_is_read_with_its_tiers() -> None:
    price = price_in(ENTRY)
    assert price is not None
    assert (price.input_usd, price.output_usd, price.cached_usd) == (2.0, 8.0, 0.5)
    assert [(n, dearer.input_usd, dearer.output_usd) for n, dearer in price.above] == [(200_000, 4.0, 16.0)]
    flex = price_in(ENTRY, "_flex")
    assert flex is not None and (flex.input_usd, flex.output_usd) == (1.0, 4.0)


def test_entry_without_a_price_for_a_token_is_unknown() -> None:
    assert price_in({"output_cost_per_token": 1e-6}) is None
    assert price_in(None) is None
    assert price_in(ENTRY, "_priority") is None


def test_table_of_litellm_is_found_and_knows_current_models() -> None:
    assert len(price_table()) > 1000
    assert price_of(config(model="gpt-4o-2024-11-20"), ["gpt-4o-2024-11-20"]) == Price(2.5, 10.0, 1.25)
    assert price_of(config(), ["no-such-model"]) is None


def test_table_is_read_without_importing_litellm() -> None:
    code = (
        "import sys; from experiments.models.pricing import price_table;"
        "assert price_table(); assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
