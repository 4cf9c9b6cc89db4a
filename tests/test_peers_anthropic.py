"""The peer under the real Anthropic client: whole and streamed, thinking, caching, and errors as exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from tests.peers import Call, Peer, Reply, RequestView, Settings, Thinking, Usage, faults, reply_faults
from tests.peers.brain import says
from tests.peers.faults import Fault, at

TOOLS: Any = [{"name": "buy_stock", "input_schema": {"type": "object"}}]
HELLO: Any = [{"role": "user", "content": "Quarter 1"}]


def trader(view: RequestView) -> Reply:
    """Thinks and buys two stocks at once, then tells what the tools said."""
    if view.n_turns == 0:
        calls = (Call("buy_stock", {"stock": "XOM"}), Call("buy_stock", {"stock": "BP"}))
        return Reply(text="I buy.", calls=calls, thinking=(Thinking("Oil is up."), Thinking("secret", redacted=True)))
    results = [
        f"{message.text}{'!' if message.is_error else ''}" for message in view.messages if message.role == "tool"
    ]
    return Reply(text=f"Results: {', '.join(results)}")


def using(peer: Peer, work: Callable[[AsyncAnthropic], Awaitable[Any]], **options: Any) -> Any:
    """What an asynchronous function gives with a client of the peer that does not retry."""

    async def main() -> Any:
        settings = {"api_key": "sk-test", "max_retries": 0, **options}
        async with AsyncAnthropic(base_url=peer.url, **settings) as client:
            return await work(client)

    return asyncio.run(main())


def ask(messages: Any = HELLO, **more: Any) -> Callable[[AsyncAnthropic], Awaitable[Any]]:
    settings: Any = {"model": "m", "max_tokens": 2048, **more}
    return lambda client: client.messages.create(messages=messages, **settings)


def results(content: Any) -> list[Any]:
    """A result for each tool use, the second an error."""
    uses = [block for block in content if block.type == "tool_use"]
    return [
        {"type": "tool_result", "tool_use_id": use.id, "content": use.input["stock"], "is_error": i == 1}
        for i, use in enumerate(uses)
    ]


def test_a_tool_round_trip_carries_thinking_back() -> None:
    with Peer(trader) as peer:

        async def play(client: AsyncAnthropic) -> Any:
            first = await ask(tools=TOOLS, thinking={"type": "adaptive"})(client)
            messages = [*HELLO, {"role": "assistant", "content": first.content}]
            messages.append({"role": "user", "content": results(first.content)})
            return first, await ask(messages, tools=TOOLS, thinking={"type": "adaptive"})(client)

        first, second = using(peer, play)
    assert [block.type for block in first.content] == ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]
    assert first.stop_reason == "tool_use"
    assert (second.content[0].text, second.stop_reason) == ("Results: XOM, BP!", "end_turn")
    assert peer.log.rejections == []
    assert peer.log.prefix_share() == 1.0


def test_a_stream_adds_up_to_the_whole_answer() -> None:
    with Peer(trader) as peer:

        async def both(client: AsyncAnthropic) -> Any:
            whole = await ask(tools=TOOLS)(client)
            async with client.messages.stream(model="m", max_tokens=2048, messages=HELLO, tools=TOOLS) as stream:
                return whole, await stream.get_final_message()

        whole, streamed = using(peer, both)
    assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in whole.content]
    assert (streamed.stop_reason, streamed.id) == (whole.stop_reason, whole.id)
    assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_anthropic_input_tokens_leave_out_the_cached_ones() -> None:
    system: Any = [{"type": "text", "text": "x" * 8000, "cache_control": {"type": "ephemeral"}}]
    with Peer(says("ok")) as peer:

        async def twice(client: AsyncAnthropic) -> Any:
            return [(await ask(system=system)(client)).usage for _ in range(2)]

        first, second = using(peer, twice)
    # {"text":"…","type":"text"} is 8,025 bytes: 2,007 tokens. ["user",{"text":"Quarter 1","type":"text"}] is 43 more.
    assert (first.input_tokens, first.cache_creation_input_tokens, first.cache_read_input_tokens) == (10, 2007, 0)
    assert (second.input_tokens, second.cache_creation_input_tokens, second.cache_read_input_tokens) == (10, 0, 2007)
    assert first.cache_creation.ephemeral_5m_input_tokens == 2007


def test_usage_of_the_brain_is_reported_as_it_is() -> None:
    reply = Reply(text="ok", usage=Usage(fresh=3, cache_write_5m=12_304, output=550))
    with Peer(lambda view: reply) as peer:
        usage = using(peer, ask()).usage
    assert (usage.input_tokens, usage.cache_creation_input_tokens, usage.output_tokens) == (3, 12_304, 550)


ERRORS: list[tuple[Fault, type[anthropic.APIError], int | None, str | None]] = [
    (faults.rate_limited(), anthropic.RateLimitError, 429, "rate_limit_error"),
    (faults.server_error(), anthropic.InternalServerError, 500, "api_error"),
    (faults.unavailable(), anthropic.InternalServerError, 503, "api_error"),
    (faults.overloaded(), anthropic.InternalServerError, 529, "overloaded_error"),
    (faults.unauthorized(), anthropic.AuthenticationError, 401, "authentication_error"),
    (faults.forbidden(), anthropic.PermissionDeniedError, 403, "permission_error"),
    (faults.model_gone(), anthropic.NotFoundError, 404, "not_found_error"),
    (faults.bad_parameter("temperature"), anthropic.BadRequestError, 400, "invalid_request_error"),
    (faults.context_too_long(), anthropic.BadRequestError, 400, "invalid_request_error"),
    (faults.drop_before(), anthropic.APIConnectionError, None, None),
    (faults.drop_after(), anthropic.APIConnectionError, None, None),
    (faults.drop_after(0.5), anthropic.APIConnectionError, None, None),
    (faults.stall(), anthropic.APITimeoutError, None, None),
]


@pytest.mark.parametrize(("fault", "kind", "status", "said"), ERRORS, ids=lambda value: getattr(value, "name", None))
def test_service_faults_become_exceptions_of_the_sdk(
    fault: Fault, kind: type[anthropic.APIError], status: int | None, said: str | None
) -> None:
    with Peer(says("ok"), faults=[at(fault, 0)]) as peer:
        with pytest.raises(kind) as caught:
            using(peer, ask(), timeout=0.3)
        assert using(peer, ask()).content[0].text == "ok"
    assert getattr(caught.value, "status_code", None) == status
    body: Any = caught.value.body
    assert (body["error"]["type"] if body else None) == said
    assert len(peer.log) == 2


def test_a_prompt_over_the_context_window_is_refused() -> None:
    with Peer(says("ok"), settings=Settings(context_tokens=100)) as peer:
        assert using(peer, ask()).content[0].text == "ok"
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 109 tokens > 100 maximum"):
            # ["user",{"text":"…","type":"text"}] is 34 bytes around 400.
            using(peer, ask([{"role": "user", "content": "x" * 400}]))
    assert peer.log.outcomes == {"answered": 1, "rejected": 1}


def test_an_error_in_the_middle_of_a_stream_is_raised() -> None:
    with Peer(says("ok " * 40), faults=[at(faults.error_body_with_200(), 0)]) as peer:

        async def drain(client: AsyncAnthropic) -> int:
            return len([event async for event in await ask(stream=True)(client)])

        with pytest.raises(anthropic.APIStatusError, match="Provider returned error"):
            using(peer, drain)


def test_a_stream_that_is_cut_is_raised() -> None:
    with Peer(says("ok " * 40), faults=[at(faults.drop_after(0.5), 0)]) as peer:

        async def drain(client: AsyncAnthropic) -> int:
            return len([event async for event in await ask(stream=True)(client)])

        with pytest.raises(Exception, match="peer closed connection|incomplete|[Cc]onnection error"):
            using(peer, drain)
    assert (peer.log[0].accepted, peer.log[0].answered, peer.log[0].outcome) == (True, False, "dropped_after")


def test_a_call_cut_short_has_an_empty_input_and_its_text_only_in_a_stream() -> None:
    fault = reply_faults.cut_call()
    with Peer(trader, faults=[at(fault, 0, 2), at(reply_faults.cut_call("calls"), 1)]) as peer:
        cut, labelled = (using(peer, ask(tools=TOOLS)) for _ in range(2))

        async def drain(client: AsyncAnthropic) -> str:
            events = [event async for event in await ask(tools=TOOLS, stream=True)(client)]
            deltas = [event.delta for event in events if event.type == "content_block_delta"]
            return "".join(delta.partial_json for delta in deltas if delta.type == "input_json_delta")

        text = using(peer, drain)
    assert (cut.stop_reason, cut.content[-1].input) == ("max_tokens", {})
    assert (labelled.stop_reason, labelled.content[-1].input) == ("tool_use", {})
    assert text == '{"stock": "XOM"}{"stock'


@pytest.mark.parametrize(
    ("kind", "arrives"),
    [
        ("trailing junk", '{}""'),
        ("empty string", {}),
        ("null", None),
        ("string of a list", "[]"),
        ("string of a number", "5"),
        ("missing brace", {}),
        ("list", []),
    ],
)
def test_broken_arguments_arrive_as_what_they_parse_to(kind: str, arrives: Any) -> None:
    fault = reply_faults.raw_arguments(reply_faults.BROKEN_ARGUMENTS[kind])
    with Peer(trader, faults=[at(fault, 0)]) as peer:
        message = using(peer, ask(tools=TOOLS))
    assert [block.input for block in message.content if block.type == "tool_use"] == [arrives, {"stock": "BP"}]


def test_refusals_eaten_budgets_and_empty_turns_have_their_stop_reasons() -> None:
    strikes = [reply_faults.refusal("No."), reply_faults.budget_eaten(), reply_faults.content(None)]
    with Peer(trader, faults=[at(fault, i) for i, fault in enumerate(strikes)]) as peer:
        refused, eaten, empty = (using(peer, ask(tools=TOOLS)) for _ in strikes)
    assert (refused.stop_reason, refused.content, refused.stop_details.explanation) == ("refusal", [], "No.")
    assert (eaten.stop_reason, [block.type for block in eaten.content]) == ("max_tokens", ["thinking"])
    assert (empty.stop_reason, empty.content) == ("end_turn", [])
