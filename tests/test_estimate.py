from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.chat import Usage
from experiments.estimate import Basis, Takes, embedded, from_paper, measured, takes
from experiments.glance import Glance, glance_at
from experiments.models.pricing import Price
from experiments.runner import record_path
from experiments.spending import Spent
from experiments.treatment import Treatment
from tests.path import plan, sweep_runs

PRICE = Price(input_usd=1.0, output_usd=4.0, cached_usd=0.1)
"""US dollars for a million tokens."""
STEADY = Basis("by hand", n_turns_per_quarter=2, s_per_turn=3, first_tokens=1000, growth=((0, 0), (1, 200)))
"""Contexts 1000, 1100, 1200, 1300 tokens in two quarters."""


def test_each_request_sends_the_whole_conversation_and_reads_the_one_before_from_the_cache() -> None:
    taken = takes(STEADY, PRICE, start=0, n_quarters=2)
    assert (taken.n_quarters, taken.n_turns, taken.model_s) == (2, 4, 12)
    assert taken.usage.context_tokens == 1000 + 1100 + 1200 + 1300
    assert taken.usage.cached_tokens == 0 + 1000 + 1100 + 1200
    assert taken.cost_usd == pytest.approx((1300 * 1.0 + 3300 * 0.1) / 1e6)
    assert taken.uncached_usd == pytest.approx(4600 * 1.0 / 1e6)


def test_writes_to_the_cache_are_paid_where_they_have_a_price() -> None:
    taken = takes(
        STEADY, Price(input_usd=1.0, output_usd=4.0, cached_usd=0.1, cache_write_usd=2.0), start=0, n_quarters=2
    )
    assert taken.usage == Usage(cached_tokens=3300, cache_write_tokens=1300, cost_usd=taken.usage.cost_usd)
    assert taken.cost_usd == pytest.approx((1300 * 2.0 + 3300 * 0.1) / 1e6)


def test_conversation_that_has_begun_is_sent_from_the_first_request_on() -> None:
    assert takes(STEADY, PRICE, start=10, n_quarters=1).usage.context_tokens == 3000 + 3100


def test_questions_are_asked_at_the_end_of_the_conversation() -> None:
    taken = takes(STEADY, PRICE, start=0, n_quarters=2, n_questions=2)
    assert (taken.n_turns, taken.model_s) == (6, 18)
    assert taken.usage.context_tokens == 1000 + 1100 + 1200 + 1300 + 1400 + 1400
    assert takes(STEADY, PRICE, start=2, n_quarters=0, n_questions=1).usage.context_tokens == 1400


def test_measured_share_of_cached_input_is_taken_where_there_is_one() -> None:
    basis = Basis("by hand", 1, 0, first_tokens=1000, cached_frac=0.25, output_tokens=50)
    taken = takes(basis, PRICE, start=0, n_quarters=2)
    assert taken.usage.cached_tokens == 500
    assert taken.cost_usd == pytest.approx((1500 * 1.0 + 500 * 0.1 + 100 * 4.0) / 1e6)


def test_writes_to_the_cache_are_paid_as_far_as_they_were_measured() -> None:
    price = replace(PRICE, cache_write_usd=1.25)
    basis = Basis("by hand", 1, 0, first_tokens=1000, cached_frac=0.25, written_frac=0.5, output_tokens=0)
    for written_frac, usd in ((0.5, 250 * 1.0 + 250 * 0.1 + 500 * 1.25), (0.0, 750 * 1.0 + 250 * 0.1)):
        taken = takes(replace(basis, written_frac=written_frac), price, start=0, n_quarters=1)
        assert taken.cost_usd == pytest.approx(usd / 1e6)
        assert taken.usage.context_tokens == 1000


def test_unknown_price_gives_an_unknown_cost_that_stays_unknown_in_sums() -> None:
    unknown = takes(STEADY, None, start=0, n_quarters=1)
    assert unknown.cost_usd is None
    assert (unknown + takes(STEADY, PRICE, start=0, n_quarters=1)).cost_usd is None
    assert (Takes() + takes(STEADY, PRICE, start=0, n_quarters=1)).cost_usd is not None


def test_prices_of_long_requests_count_request_by_request() -> None:
    dear_above_1150 = Price(1.0, 4.0, above=((1150, Price(10.0, 40.0)),))
    taken = takes(STEADY, dear_above_1150, start=0, n_quarters=2)
    assert taken.uncached_usd == pytest.approx((1000 + 1100 + 10 * (1200 + 1300)) / 1e6)


def test_table_of_the_paper_gives_the_growth_of_its_own_models_and_the_mean_for_others() -> None:
    mini = from_paper("gpt-4o-mini-2024-07-18", first_tokens=1200)
    # 2 quarters: 2,521 tokens; 4: 4,219; so 823 before the first quarter.
    assert mini.growth[:3] == ((0, 0), (2, 2521 - 823), (4, 4219 - 823))
    assert mini.first_tokens == 1200
    assert "gpt-4o-mini" in mini.told
    assert from_paper("openrouter/anthropic/claude-3-5-haiku-20241022", 0).growth[1] == (2, 3344 - (2 * 3344 - 5874))
    other = from_paper("somebody/new", first_tokens=0)
    assert other.growth[-1] == (64, 90827 - (2 * 2933 - 5048))
    assert "mean of its four models" in other.told


def test_growth_goes_on_beyond_the_table_as_at_its_end() -> None:
    basis = Basis("by hand", 1, 0, growth=((0, 0), (2, 20), (4, 60)))
    contexts = [takes(basis, None, start=quarter, n_quarters=1).usage.context_tokens for quarter in (0, 1, 2, 3, 4, 6)]
    assert contexts == [0, 10, 20, 40, 60, 100]


def counted(n_quarters: int, n_turns: int, first: int, last: int) -> Glance:
    """A record whose last request is the first turn of its last quarter."""
    glance = Glance(Path("r.jsonl"))
    glance.n_closed, glance.n_model_turns, glance.latency_s = n_quarters, n_turns, 2.0 * n_turns
    glance.usage = Usage(input_tokens=100 * n_turns, cached_tokens=300 * n_turns, output_tokens=7 * n_turns)
    glance.spent = Spent(n_turns, 407 * n_turns)
    contexts = glance.contexts
    contexts.first_tokens, contexts.first_at, contexts.last_tokens, contexts.last_at = (
        first,
        1.0,
        last,
        float(n_quarters),
    )
    return glance


def test_measured_basis_is_that_of_the_records() -> None:
    basis = measured([counted(5, 15, first=900, last=2900), Glance(Path("empty.jsonl"))])
    assert basis is not None
    assert basis.n_turns_per_quarter == 3
    assert basis.s_per_turn == 2
    assert basis.first_tokens == 900
    assert basis.growth == ((0, 0), (1, 500))
    assert basis.output_tokens == 7
    assert (basis.cached_frac, basis.written_frac) == (0.75, 0)
    assert basis.told.startswith("measured on 1 records of this model with 5 quarters; 75%")


def test_records_without_counted_tokens_are_no_basis() -> None:
    assert measured([]) is None
    assert measured([Glance(Path("empty.jsonl"))]) is None


def test_embedded_agent_costs_nothing_and_its_turns_are_measured(tmp_path: Path) -> None:
    assert embedded([]).n_turns_per_quarter == 2
    (run,) = plan("silent", Treatment(n_evaluation=5, turn_limit=3), seeds=[1])
    sweep_runs(tmp_path, [run])
    basis = embedded([glance_at(record_path(tmp_path, run))])
    assert basis.n_turns_per_quarter == 3
    assert takes(basis, Price(0, 0), start=0, n_quarters=2).usage.context_tokens == 0
