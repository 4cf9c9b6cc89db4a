"""The peer under litellm's asynchronous client, by its OpenAI and its Anthropic route."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.peers import Call, Peer, Reply, RequestView, Thinking, faults
from tests.peers.brain import says
from tests.peers.faults import Fault, at
from tests.peers.neutral import Json

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")

TOOLS: Any = [
    {"type": "function", "function": {"name": "buy_stock", "parameters": {"type": "object", "properties": {}}}}
]
HELLO: Any = [{"role": "system", "content": "s"}, {"role": "user", "content": "Quarter 1"}]
ROUTES = ["openai", "anthropic"]


def trader(view: RequestView) -> Reply:
    """Buys two stocks at once, then tells what the tools said."""
    if view.n_turns == 0:
        calls = (Call("buy_stock", {"stock": "XOM"}), Call("buy_stock", {"stock": "BP"}))
        return Reply(text="I buy.", calls=calls, thinking=(Thinking("Oil is up."),))
    results = [message.text for message in view.messages if message.role == "tool"]
    return Reply(text=f"Results: {', '.join(results)}")


@pytest.fixture(autouse=True)
def _prices_from_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched when litellm is imported, which takes seconds and so is left to the tests that need it."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def library() -> Any:
    import litellm

    litellm.suppress_debug_info = True
    return litellm


async def ask(peer: Peer, route: str, messages: Any = HELLO, **more: Any) -> Any:
    places = {"openai": ("openai/m", peer.openai_url), "anthropic": ("anthropic/claude-sonnet-4-5", peer.url)}
    model, base = places[route]
    settings: Json = {"api_key": "sk-test", "max_retries": 0, "num_retries": 0, **more}
    return await library().acompletion(model=model, api_base=base, messages=messages, **settings)


def history(message: Any) -> list[Json]:
    """The messages that follow a turn with calls; thinking goes back where there was some."""
    said: Json = {"role": "assistant", "content": message.content}
    said["tool_calls"] = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
    if getattr(message, "thinking_blocks", None):
        said["thinking_blocks"] = message.thinking_blocks
    return [said, *({"role": "tool", "tool_call_id": call.id, "content": "bought"} for call in message.tool_calls)]


@pytest.mark.parametrize("route", ROUTES)
def test_a_tool_round_trip(route: str) -> None:
    more: Json = {"tools": TOOLS}
    if route == "anthropic":
        more |= {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
    with Peer(trader) as peer:

        async def play() -> Any:
            first = await ask(peer, route, **more)
            return first, await ask(peer, route, [*HELLO, *history(first.choices[0].message)], **more)

        first, second = asyncio.run(play())
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content == "Results: bought, bought"
    assert peer.log.rejections == []
    assert peer.log.prefix_share() == 1.0


@pytest.mark.parametrize("route", ROUTES)
def test_a_stream_adds_up_to_the_whole_answer(route: str) -> None:
    with Peer(trader) as peer:

        async def both() -> Any:
            whole = await ask(peer, route, tools=TOOLS)
            chunks = [chunk async for chunk in await ask(peer, route, tools=TOOLS, stream=True)]
            return whole, library().stream_chunk_builder(chunks)

        whole, streamed = asyncio.run(both())
    calls = [
        [(call.id, call.function.arguments) for call in each.choices[0].message.tool_calls]
        for each in (whole, streamed)
    ]
    assert calls[0] == calls[1]
    assert streamed.choices[0].message.content == "I buy."


ERRORS: list[tuple[Fault, str]] = [
    (faults.rate_limited(), "RateLimitError"),
    (faults.server_error(), "InternalServerError"),
    (faults.unavailable(), "ServiceUnavailableError"),
    (faults.unauthorized(), "AuthenticationError"),
    (faults.model_gone(), "NotFoundError"),
    (faults.bad_parameter("temperature"), "BadRequestError"),
    (faults.context_too_long(), "ContextWindowExceededError"),
    (faults.drop_before(), "InternalServerError"),
    (faults.drop_after(0.5), "InternalServerError"),
    (faults.stall(), "Timeout"),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("fault", "kind"), ERRORS, ids=lambda value: getattr(value, "name", None))
def test_service_faults_become_exceptions_of_litellm(route: str, fault: Fault, kind: str) -> None:
    with Peer(says("ok"), faults=[at(fault, 0)]) as peer:
        with pytest.raises(getattr(library(), kind)):
            asyncio.run(ask(peer, route, timeout=1))
    assert len(peer.log) == 1


@pytest.mark.parametrize(("route", "status"), [("openai", 529), ("anthropic", 500)])
def test_overload_keeps_its_status_by_one_route_only(route: str, status: int) -> None:
    with Peer(says("ok"), faults=[at(faults.overloaded(), 0)]) as peer:
        with pytest.raises(Exception, match="Overloaded") as caught:
            asyncio.run(ask(peer, route))
    assert getattr(caught.value, "status_code", None) == status


@pytest.mark.parametrize("route", ROUTES)
def test_the_wait_that_the_service_asks_for_is_in_the_headers(route: str) -> None:
    with Peer(says("ok"), faults=[at(faults.rate_limited(2.5, "ms"), 0)]) as peer:
        with pytest.raises(library().RateLimitError) as caught:
            asyncio.run(ask(peer, route))
    assert dict(caught.value.litellm_response_headers)["retry-after-ms"] == "2500"
