"""The peer under the real OpenAI client: Chat Completions and Responses, whole and streamed, and its exceptions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.peers import Call, Peer, Reply, RequestView, Settings, Thinking, faults, reply_faults
from tests.peers.brain import says, script
from tests.peers.faults import Fault, at
from tests.peers.neutral import Json
from tests.peers.wire import without

TOOLS: Any = [{"type": "function", "function": {"name": "buy_stock", "parameters": {"type": "object"}}}]
RESPONSE_TOOLS: Any = [{"type": "function", "name": "buy_stock", "parameters": {"type": "object"}, "strict": False}]
HELLO: Any = [{"role": "system", "content": "s"}, {"role": "user", "content": "Quarter 1"}]
SEALED: Any = {"store": False, "include": ["reasoning.encrypted_content"]}


def trader(view: RequestView) -> Reply:
    """Buys two stocks at once, then tells what the tools said."""
    if view.n_turns == 0:
        calls = (Call("buy_stock", {"stock": "XOM"}), Call("buy_stock", {"stock": "BP"}))
        return Reply(text="I buy.", calls=calls, thinking=(Thinking("Oil is up."), Thinking("", redacted=True)))
    results = [message.text for message in view.messages if message.role == "tool"]
    return Reply(text=f"Results: {', '.join(results)}")


def using(peer: Peer, work: Callable[[AsyncOpenAI], Awaitable[Any]], **options: Any) -> Any:
    """What an asynchronous function gives with a client of the peer that does not retry."""

    async def main() -> Any:
        settings = {"api_key": "sk-test", "max_retries": 0, **options}
        async with AsyncOpenAI(base_url=peer.openai_url, **settings) as client:
            return await work(client)

    return asyncio.run(main())


def chat(messages: Any = HELLO, **more: Any) -> Callable[[AsyncOpenAI], Awaitable[Any]]:
    return lambda client: client.chat.completions.create(model="m", messages=messages, **more)


def respond(items: Any = "Quarter 1", **more: Any) -> Callable[[AsyncOpenAI], Awaitable[Any]]:
    return lambda client: client.responses.create(model="m", input=items, **more)


def test_chat_plays_a_tool_round_trip() -> None:
    with Peer(trader) as peer:

        async def play(client: AsyncOpenAI) -> Any:
            messages = list(HELLO)
            first = await chat(messages, tools=TOOLS)(client)
            messages.append(first.choices[0].message)
            for call in first.choices[0].message.tool_calls:
                stock = json.loads(call.function.arguments)["stock"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": f"bought {stock}"})
            return first, await chat(messages, tools=TOOLS)(client)

        first, second = using(peer, play)
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content == "Results: bought XOM, bought BP"
    assert second.choices[0].finish_reason == "stop"
    assert peer.log.rejections == []
    assert peer.log.prefix_share() == 1.0


def test_a_chat_stream_adds_up_to_the_whole_answer() -> None:
    with Peer(trader) as peer:

        async def both(client: AsyncOpenAI) -> Any:
            whole = await chat(tools=TOOLS)(client)
            stream = client.chat.completions.stream(
                model="m", messages=HELLO, tools=TOOLS, stream_options={"include_usage": True}
            )
            async with stream as events:
                return whole, await events.get_final_completion()

        whole, streamed = using(peer, both)
    assert streamed.choices[0].message.content == "I buy."
    assert [call.id for call in streamed.choices[0].message.tool_calls] == [
        call.id for call in whole.choices[0].message.tool_calls
    ]
    assert [call.function.arguments for call in streamed.choices[0].message.tool_calls] == [
        '{"stock": "XOM"}',
        '{"stock": "BP"}',
    ]
    assert streamed.choices[0].finish_reason == "tool_calls"
    assert streamed.usage == whole.usage


def test_responses_play_a_tool_round_trip_with_reasoning_carried_back() -> None:
    with Peer(trader) as peer:

        async def play(client: AsyncOpenAI) -> Any:
            items: list[Any] = [{"role": "user", "content": "Quarter 1"}]
            first = await respond(items, tools=RESPONSE_TOOLS, **SEALED)(client)
            items += [item.model_dump(exclude_none=True) for item in first.output]
            for item in first.output:
                if item.type == "function_call":
                    items.append({"type": "function_call_output", "call_id": item.call_id, "output": "bought"})
            return first, await respond(items, tools=RESPONSE_TOOLS, **SEALED)(client)

        first, second = using(peer, play)
    assert [item.type for item in first.output] == [
        "reasoning",
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert first.output[0].summary[0].text == "Oil is up."
    assert first.output[1].summary == []
    assert second.output_text == "Results: bought, bought"
    assert peer.log.rejections == []
    assert peer.log.prefix_share() == 1.0


def test_a_responses_stream_adds_up_to_the_whole_answer() -> None:
    with Peer(trader) as peer:

        async def both(client: AsyncOpenAI) -> Any:
            whole = await respond(tools=RESPONSE_TOOLS, **SEALED)(client)
            stream = client.responses.stream(model="m", input="Quarter 1", tools=RESPONSE_TOOLS, **SEALED)
            async with stream as events:
                numbers = [event.sequence_number async for event in events if hasattr(event, "sequence_number")]
                return whole, await events.get_final_response(), numbers

        whole, streamed, numbers = using(peer, both)
    parsed = [item.to_dict() for item in streamed.output]
    assert without(parsed, "parsed", "parsed_arguments") == [item.to_dict() for item in whole.output]
    assert streamed.usage == whole.usage
    assert numbers == list(range(len(numbers)))


def test_openai_input_tokens_include_the_cached_ones() -> None:
    long = [{"role": "system", "content": "x" * 8000}, {"role": "user", "content": "q"}]
    with Peer(says("ok"), settings=Settings(bills_cache_writes=True)) as peer:

        async def twice(client: AsyncOpenAI) -> Any:
            return [(await chat(long)(client)).usage for _ in range(2)]

        first, second = using(peer, twice)
    # {"content":"…","role":"system"} is 8,031 bytes, {"content":"q","role":"user"} 29: 2,015 tokens, 15 whole blocks.
    assert [usage.prompt_tokens for usage in (first, second)] == [2015, 2015]
    assert first.prompt_tokens_details.cache_write_tokens == 1920
    assert (first.prompt_tokens_details.cached_tokens, second.prompt_tokens_details.cached_tokens) == (0, 1920)


ERRORS: list[tuple[Fault, type[openai.APIError], int | None, str | None]] = [
    (faults.rate_limited(), openai.RateLimitError, 429, "rate_limit_exceeded"),
    (faults.server_error(), openai.InternalServerError, 500, None),
    (faults.unavailable(), openai.InternalServerError, 503, None),
    (faults.overloaded(), openai.InternalServerError, 529, None),
    (faults.unauthorized(), openai.AuthenticationError, 401, "invalid_api_key"),
    (faults.forbidden(), openai.PermissionDeniedError, 403, None),
    (faults.model_gone(), openai.NotFoundError, 404, "model_not_found"),
    (faults.bad_parameter("temperature"), openai.BadRequestError, 400, "unsupported_parameter"),
    (faults.context_too_long(), openai.BadRequestError, 400, "context_length_exceeded"),
    (faults.drop_before(), openai.APIConnectionError, None, None),
    (faults.drop_after(), openai.APIConnectionError, None, None),
    (faults.drop_after(0.5), openai.APIConnectionError, None, None),
    (faults.stall(), openai.APITimeoutError, None, None),
]


@pytest.mark.parametrize("ask", [chat, respond])
@pytest.mark.parametrize(("fault", "kind", "status", "code"), ERRORS, ids=lambda value: getattr(value, "name", None))
def test_service_faults_become_exceptions_of_the_sdk(
    ask: Any, fault: Fault, kind: type[openai.APIError], status: int | None, code: str | None
) -> None:
    with Peer(says("ok"), faults=[at(fault, 0)]) as peer:
        with pytest.raises(kind) as caught:
            using(peer, ask(), timeout=0.3)
        assert using(peer, ask()).id
    assert getattr(caught.value, "status_code", None) == status
    assert caught.value.code == code
    assert len(peer.log) == 2
    assert peer.log.faults == {fault.name: 1}


def test_a_bad_parameter_is_named() -> None:
    with Peer(says("ok"), settings=Settings(unsupported=frozenset({"temperature"}))) as peer:
        with pytest.raises(openai.BadRequestError) as caught:
            using(peer, chat(temperature=0.5))
        assert using(peer, chat()).choices[0].message.content == "ok"
    assert caught.value.param == "temperature"
    assert peer.log.outcomes == {"rejected": 1, "answered": 1}


def test_a_wait_is_named_in_seconds_milliseconds_or_as_a_date() -> None:
    waits: list[Any] = ["seconds", "ms", "date"]
    rules = [at(faults.rate_limited(2.5, form), i) for i, form in enumerate(waits)]
    found: list[Json] = []
    with Peer(says("ok"), faults=rules) as peer:
        for _ in waits:
            with pytest.raises(openai.RateLimitError) as caught:
                using(peer, chat())
            found.append(dict(caught.value.response.headers))
    assert found[0]["retry-after"] == "2.5"
    assert (found[1]["retry-after-ms"], found[1]["retry-after"]) == ("2500", "3")
    assert found[2]["retry-after"].endswith(" GMT")


@pytest.mark.parametrize("fault", [faults.error_body_with_200(), faults.failed_with_200()], ids=lambda f: f.name)
def test_an_error_with_status_200_reaches_the_caller_as_an_odd_body(fault: Fault) -> None:
    with Peer(says("ok"), faults=[at(fault, 0, 1)]) as peer:
        assert "error" in using(peer, chat()).model_extra
        answer = using(peer, respond())
    assert answer.error
    assert answer.status == ("failed" if fault.name == "200-failed" else None)


def test_an_error_in_the_middle_of_a_stream_is_raised() -> None:
    with Peer(says("ok " * 40), faults=[at(faults.error_body_with_200(), 0, 1)]) as peer:
        for ask in (chat, respond):

            async def drain(client: AsyncOpenAI, ask: Any = ask) -> int:
                return len([event async for event in await ask(stream=True)(client)])

            with pytest.raises(openai.APIError, match="Provider returned error"):
                using(peer, drain)


def test_a_page_with_status_200_is_not_taken_for_an_answer() -> None:
    with Peer(says("ok"), faults=[at(faults.not_json(), 0)]) as peer:
        assert "Bad Gateway" in str(using(peer, chat()))


def test_chat_shows_what_went_wrong_with_the_reply() -> None:
    strikes = [
        reply_faults.cut_call(),
        reply_faults.cut_call("calls"),
        reply_faults.refusal("No."),
        reply_faults.budget_eaten(),
        reply_faults.content(None),
        reply_faults.call_ids("duplicate"),
        reply_faults.call_ids("empty"),
        reply_faults.surrogates(),
    ]
    replies = script([Reply(text="x", calls=(Call("buy_stock", {"stock": "XOM", "amount": 5.0}),))])
    with Peer(replies, faults=[at(fault, i) for i, fault in enumerate(strikes)]) as peer:
        answers = [using(peer, chat(tools=TOOLS)) for _ in strikes]
    cut, labelled, refused, eaten, empty, doubled, nameless, odd = (answer.choices[0] for answer in answers)
    assert (cut.finish_reason, labelled.finish_reason) == ("length", "tool_calls")
    assert cut.message.tool_calls[0].function.arguments == labelled.message.tool_calls[0].function.arguments
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.message.tool_calls[0].function.arguments)
    assert (refused.message.refusal, refused.message.content, refused.finish_reason) == ("No.", None, "stop")
    assert (eaten.message.content, eaten.finish_reason) == ("", "length")
    assert answers[3].usage.completion_tokens_details.reasoning_tokens == 4096
    assert (empty.message.content, empty.message.tool_calls) == (None, None)
    assert [call.id for call in doubled.message.tool_calls] == ["call_same", "call_same"]
    assert [call.id for call in nameless.message.tool_calls] == [""]
    assert "\ud800" in odd.message.content
    assert "\ud800" in json.loads(odd.message.tool_calls[0].function.arguments)["note"]


def test_responses_show_what_went_wrong_with_the_reply() -> None:
    strikes = [
        reply_faults.cut_call(),
        reply_faults.refusal("No."),
        reply_faults.budget_eaten(),
        reply_faults.content(None),
    ]
    with Peer(trader, faults=[at(fault, i) for i, fault in enumerate(strikes)]) as peer:
        cut, refused, eaten, empty = (using(peer, respond(tools=RESPONSE_TOOLS)) for _ in strikes)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert cut.output[-1].status == "incomplete"
    assert refused.output[0].content[0].refusal == "No."
    assert (eaten.status, [item.type for item in eaten.output]) == ("incomplete", ["reasoning"])
    assert (empty.status, empty.output) == ("completed", [])
