"""Token counts and the two prompt caches, with expectations worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.peers.anthropic_messages import WIRE as MESSAGES
from tests.peers.examples import messages_request
from tests.peers.neutral import Call, Reply, Thinking, Usage
from tests.peers.tokens import BlockCache, BreakpointCache, Segment, canonical, output_tokens, tokens


def text(n_tokens: int, letter: str = "a", ttl: str | None = None) -> Segment:
    return Segment(letter.encode() * (4 * n_tokens), ttl)


def test_a_token_is_four_bytes_rounded_up() -> None:
    assert [tokens(n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_canonical_json_sorts_keys_and_keeps_lone_surrogates_escaped() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
    assert canonical({"a": "\ud800"}) == b'{"a":"\\ud800"}'


def test_output_counts_text_names_arguments_and_reasoning() -> None:
    reply = Reply(text="1234", calls=(Call("buys", '{"a"'),), thinking=(Thinking("12345678"),))
    assert output_tokens(reply) == (3 + 2, 2)
    assert output_tokens(Reply(thinking=(Thinking("short"),), reasoning_tokens=500)) == (500, 500)
    assert output_tokens(Reply()) == (1, 0)


class TestOpenAI:
    def test_a_prefix_seen_before_is_cached_in_steps_of_128_from_1024_on(self) -> None:
        cache = BlockCache()
        assert cache.usage("k", [text(1200)], bills_writes=False) == Usage(fresh=1200)
        # 1,200 tokens hold 9 whole blocks of 128, that is 1,152.
        assert cache.usage("k", [text(1200), text(100, "b")], bills_writes=False) == Usage(fresh=148, cache_read=1152)

    def test_a_short_prefix_is_never_cached(self) -> None:
        cache = BlockCache()
        for _ in range(2):
            assert cache.usage("k", [text(1023)], bills_writes=False) == Usage(fresh=1023)

    def test_a_difference_ends_the_prefix(self) -> None:
        cache = BlockCache()
        cache.usage("k", [text(2000)], bills_writes=False)
        # Equal up to token 1,100, so 8 blocks.
        assert cache.usage("k", [text(1100), text(900, "b")], bills_writes=False) == Usage(fresh=976, cache_read=1024)

    def test_other_keys_and_other_settings_share_nothing(self) -> None:
        cache = BlockCache()
        cache.usage("k", [text(2000)], bills_writes=False)
        assert cache.usage("other", [text(2000)], bills_writes=False).cache_read == 0
        form = Segment(b"json", counted=False)
        assert cache.usage("k", [form, text(2000)], bills_writes=False) == Usage(fresh=2000)

    def test_writes_are_reported_where_they_are_billed(self) -> None:
        cache = BlockCache()
        assert cache.usage("k", [text(1200)], bills_writes=True) == Usage(fresh=48, cache_write_5m=1152)
        second = cache.usage("k", [text(1400)], bills_writes=True)
        assert second == Usage(fresh=1400 - 1280, cache_read=1152, cache_write_5m=128)


class TestAnthropic:
    def test_nothing_is_cached_without_a_breakpoint(self) -> None:
        cache = BreakpointCache(1024)
        for _ in range(2):
            assert cache.usage("k", [text(3000)], now_s=0) == Usage(fresh=3000)

    def test_a_breakpoint_writes_and_the_next_request_reads_it_and_writes_the_rest(self) -> None:
        cache = BreakpointCache(1024)
        first = cache.usage("k", [text(2000, "s", "5m"), text(100, "a", "5m")], now_s=0)
        assert first == Usage(cache_write_5m=2100)
        grown = [text(2000, "s", "5m"), text(100, "a"), text(50, "b", "5m"), text(10, "c")]
        assert cache.usage("k", grown, now_s=1) == Usage(fresh=10, cache_read=2100, cache_write_5m=50)

    def test_a_prefix_below_the_minimum_is_not_written(self) -> None:
        cache = BreakpointCache(1024)
        assert cache.usage("k", [text(1000, "s", "5m")], now_s=0) == Usage(fresh=1000)

    def test_an_entry_is_found_at_most_twenty_blocks_before_a_breakpoint(self) -> None:
        for n_between, found in ((19, True), (20, False)):
            cache = BreakpointCache(1024)
            cache.usage("k", [text(2000, "s", "5m")], now_s=0)
            later = [text(2000, "s"), *(text(1, "x") for _ in range(n_between - 1)), text(1, "y", "5m")]
            assert (cache.usage("k", later, now_s=1).cache_read == 2000) is found

    def test_an_entry_dies_after_its_lifetime_and_reading_prolongs_it(self) -> None:
        cache = BreakpointCache(1024)
        prompt = [text(2000, "s", "5m")]
        cache.usage("k", prompt, now_s=0)
        assert cache.usage("k", prompt, now_s=299).cache_read == 2000
        assert cache.usage("k", prompt, now_s=590).cache_read == 2000
        assert cache.usage("k", prompt, now_s=900) == Usage(cache_write_5m=2000)

    def test_lifetimes_are_told_apart(self) -> None:
        cache = BreakpointCache(1024)
        prompt = [text(2000, "s", "1h"), text(500, "a", "5m")]
        assert cache.usage("k", prompt, now_s=0) == Usage(cache_write_1h=2000, cache_write_5m=500)
        assert cache.usage("k", prompt, now_s=1000) == Usage(cache_read=2000, cache_write_5m=500)

    def test_moving_the_mark_does_not_change_the_prompt(self) -> None:
        marked = {"type": "text", "text": "x" * 4100, "cache_control": {"type": "ephemeral"}}
        plain = {"type": "text", "text": "x" * 4100}
        cache = BreakpointCache(1024)
        requests = [
            messages_request(messages=[{"role": "user", "content": [marked]}]),
            messages_request(messages=[{"role": "user", "content": [plain, marked]}]),
        ]
        first, second = (cache.usage("k", MESSAGES.segments(body), now_s=0) for body in requests)
        assert second.cache_read == first.cache_write_5m > 1024

    @given(st.lists(st.tuples(st.integers(1, 900), st.sampled_from([None, "5m", "1h"])), min_size=1, max_size=30))
    def test_the_parts_always_add_up_to_the_prompt(self, parts: list[tuple[int, str | None]]) -> None:
        cache = BreakpointCache(1024)
        prompt = [text(n, chr(97 + i), ttl) for i, (n, ttl) in enumerate(parts)]
        for now_s in (0.0, 1.0, 400.0):
            usage = cache.usage("k", prompt, now_s=now_s)
            assert usage.input == sum(n for n, _ in parts)
            assert min(usage.fresh, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h) >= 0


@pytest.mark.parametrize("bills_writes", [False, True])
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=5))
def test_openai_parts_always_add_up_to_the_prompt(bills_writes: bool, sizes: list[int]) -> None:
    cache = BlockCache()
    for n in sizes:
        usage = cache.usage("k", [text(n)], bills_writes=bills_writes)
        assert usage.input == n
        assert min(usage.fresh, usage.cache_read, usage.cache_write) >= 0
