"""What a service can do wrong, over the wire: what can pass is asked again, and nothing else is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.chat import Completion
from experiments.errors import ContextLimit, ProviderError, SweepStop
from experiments.models import build_model
from experiments.models.provider import RemoteModel
from tests.peers import Peer, Reply, Usage, faults
from tests.peers.brain import says
from tests.peers.faults import Fault, at, first_attempts, when
from tests.wire import DIRECT, HELLO, KEY, KEY_ENV, LITELLM_WARNINGS, ROUTES, ask, config_of, converse_often, prompt_of

pytestmark = pytest.mark.filterwarnings(LITELLM_WARNINGS)

PASSING = [
    faults.rate_limited(0.001, "ms"),
    faults.rate_limited(0.001, "none"),
    faults.server_error(),
    faults.unavailable(),
    faults.overloaded(),
    faults.error_body_with_200(),
    faults.failed_with_200(),
    faults.not_json(),
    faults.drop_before(),
    faults.drop_after(0.0),
    faults.drop_after(0.5),
]


def always(fault: Fault) -> list[Any]:
    return [when(fault, lambda arrival: True)]


def failing(route: str, peer: Peer, **changes: Any) -> Exception:
    """What a completion raises."""
    with pytest.raises((ContextLimit, ProviderError, SweepStop)) as caught:
        ask(route, peer, **changes)
    return caught.value


@pytest.mark.parametrize("route", ROUTES)
def test_what_can_pass_is_asked_again_and_the_attempts_are_kept(route: str) -> None:
    rules = [at(fault, 3 * place, 3 * place + 1) for place, fault in enumerate(PASSING)]
    with Peer(says("ok"), faults=rules) as peer:
        played = converse_often(route, peer, 1, len(PASSING))
    assert len(peer.log) == 3 * len(PASSING)
    for fault, (completion,) in zip(PASSING, played, strict=True):
        assert completion.message.text == "ok"
        assert len(completion.attempts) == 2, fault.name
        assert all(attempt.error and attempt.wait_s >= 0 for attempt in completion.attempts)


ODD_BODIES: dict[str, Any] = {
    "chat": {"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": "many"}},
    "responses": {"status": "completed", "output": [{"type": "message", "content": 5}]},
    "anthropic": {"content": [], "usage": {"input_tokens": "many"}},
}


@pytest.mark.parametrize("route", ODD_BODIES)
def test_body_of_a_form_that_nobody_described_ends_its_run_only(route: str) -> None:
    async def send(data: bytes) -> Any:
        return ODD_BODIES[route]

    with Peer(says("ok")) as peer:
        model = build_model(config_of(route, peer, max_tries=2))
    assert isinstance(model, RemoteModel)
    odd = replace(model, wire=replace(model.wire, send=send))
    with pytest.raises(ProviderError, match="a body of an unknown form: .*; given up after 2 tries"):
        asyncio.run(odd.complete(prompt_of()))


@pytest.mark.parametrize("route", ROUTES)
def test_status_of_an_overload_is_recovered(route: str) -> None:
    with Peer(says("ok"), faults=[first_attempts(faults.overloaded())]) as peer:
        (attempt,) = ask(route, peer).attempts
    assert attempt.status == 529


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fault", [faults.drop_before(), faults.stall()], ids=["dropped", "stalled"])
def test_lost_connections_and_time_outs_have_no_status(route: str, fault: Fault) -> None:
    with Peer(says("ok"), faults=[first_attempts(fault)]) as peer:
        (attempt,) = ask(route, peer, timeout_s=0.5).attempts
    assert attempt.status is None


@pytest.mark.parametrize("route", ROUTES)
def test_number_of_requests_is_that_of_the_policy(route: str) -> None:
    with Peer(says("ok"), faults=always(faults.server_error())) as peer:
        error = failing(route, peer, max_tries=3)
    assert len(peer.log) == 3
    assert isinstance(error, ProviderError)
    assert "500" in str(error) and "given up after 3 tries" in str(error)


def waited_s(route: str, fault: Fault) -> float:
    """Time between a failure and the next request, as the service saw it."""
    with Peer(says("ok"), faults=[at(fault, 0)]) as peer:
        ask(route, peer)
    done_s = peer.log[0].done_s
    assert done_s is not None
    return peer.log[1].arrived_s - done_s


@pytest.mark.parametrize("route", ROUTES)
def test_pause_that_the_service_asks_for_in_milliseconds_is_kept(route: str) -> None:
    assert 0.3 <= waited_s(route, faults.rate_limited(0.3, "ms")) < 5


@pytest.mark.parametrize("route", ["chat", "anthropic", "litellm"])
def test_pause_that_the_service_asks_for_in_seconds_is_kept(route: str) -> None:
    assert 0.4 <= waited_s(route, faults.rate_limited(0.4, "seconds")) < 5


def test_pause_that_the_service_asks_for_until_a_date_is_kept() -> None:
    # Dates have whole seconds: the peer rounds up, so at least what is asked for is left.
    assert 0.2 <= waited_s("chat", faults.rate_limited(0.3, "date")) < 5


def test_longer_pause_than_the_policy_has_time_for_is_not_begun() -> None:
    with Peer(says("ok"), faults=always(faults.rate_limited(7200.0))) as peer:
        error = failing("chat", peer, retry_for_s=1)
    assert len(peer.log) == 1
    assert "given up after 1 try" in str(error) and "asks to wait 7200 s" in str(error)


FINAL: list[tuple[Fault, type[Exception], str]] = [
    (faults.bad_parameter("temperature"), ProviderError, "400"),
    (faults.unauthorized(), SweepStop, KEY_ENV),
    (faults.forbidden(), SweepStop, KEY_ENV),
    (faults.model_gone(), ProviderError, "does not serve this model"),
    (faults.context_too_long(), ContextLimit, "400"),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("fault", "kind", "told"), FINAL, ids=lambda value: getattr(value, "name", None))
def test_what_cannot_pass_is_asked_once_and_ends_as_what_it_is(
    route: str, fault: Fault, kind: type[Exception], told: str
) -> None:
    with Peer(says("ok"), faults=always(fault)) as peer:
        error = failing(route, peer)
    assert len(peer.log) == 1
    assert type(error) is kind
    assert told in str(error)


@pytest.mark.parametrize("route", ROUTES)
def test_conversation_beyond_the_window_is_a_context_limit(route: str) -> None:
    with Peer(says("ok")) as peer:
        peer.change(context_tokens=10)
        assert isinstance(failing(route, peer), ContextLimit)


@pytest.mark.parametrize(
    ("route", "param", "value", "field"),
    [
        ("chat", "temperature", 0.5, "params.temperature"),
        ("chat", "max_tokens", 99, "params.max_tokens"),
        ("responses", "temperature", 0.5, "params.temperature"),
        ("anthropic", "temperature", 0.5, "params.temperature"),
        ("litellm", "temperature", 0.5, "params.temperature"),
        ("litellm anthropic", "top_p", 0.5, "params.top_p"),
    ],
)
def test_parameter_that_the_model_refuses_is_named_as_a_field(route: str, param: str, value: Any, field: str) -> None:
    with Peer(says("ok")) as peer:
        peer.change(unsupported=frozenset({param}))
        error = failing(route, peer, **{param: value})
        assert ask(route, peer).message.text == "ok"
    assert f"set {field} of this model to null" in str(error)


@pytest.mark.parametrize("route", ROUTES)
def test_usage_is_in_one_accounting_and_priced_with_its_cache(route: str) -> None:
    usage = Usage(fresh=3, cache_write_5m=12_304, output=550)
    price = {"input": 3.0, "cached": 0.3, "cache_write": 3.75, "output": 15.0}
    with Peer(lambda view: Reply(text="ok", usage=usage)) as peer:
        got = ask(route, peer, price=price).usage
    assert got is not None
    assert (got.input_tokens, got.cache_write_tokens, got.output_tokens) == (3, 12_304, 550)
    assert got.cost_usd == pytest.approx(0.0544, abs=5e-5)


@pytest.mark.parametrize("route", ROUTES)
def test_input_read_from_the_cache_is_no_other_input(route: str) -> None:
    with Peer(lambda view: Reply(text="ok", usage=Usage(fresh=100, cache_read=2048, output=7, reasoning=5))) as peer:
        got = ask(route, peer).usage
    assert got is not None
    assert (got.input_tokens, got.cached_tokens, got.output_tokens, got.reasoning_tokens) == (100, 2048, 7, 5)


@pytest.mark.parametrize("route", DIRECT)
def test_unknown_price_is_no_cost(route: str) -> None:
    with Peer(says("ok")) as peer:
        usage = ask(route, peer).usage
    assert usage is not None and usage.cost_usd is None


async def at_once(model_of: Callable[[], Any], n: int) -> list[Completion]:
    return list(await asyncio.gather(*(model_of().complete(prompt_of(HELLO)) for _ in range(n))))


def most_at_once(peer: Peer) -> int:
    events = sorted(
        [(entry.arrived_s, 1) for entry in peer.log] + [(entry.done_s or entry.arrived_s, -1) for entry in peer.log]
    )
    now = most = 0
    for _, step in events:
        now += step
        most = max(most, now)
    return most


@pytest.mark.parametrize("route", ["chat", "anthropic"])
def test_requests_of_all_runs_share_the_limit_of_those_at_once(route: str) -> None:
    with Peer(says("ok")) as peer:
        peer.change(latency_s=0.05)
        config = config_of(route, peer, concurrency=3)
        asyncio.run(at_once(lambda: build_model(config), 12))
    assert most_at_once(peer) <= 3


def test_without_a_limit_runs_ask_at_once() -> None:
    with Peer(says("ok")) as peer:
        peer.change(latency_s=0.2)
        config = config_of("chat", peer)
        asyncio.run(at_once(lambda: build_model(config), 12))
    assert most_at_once(peer) > 3


def test_runs_share_one_connection_pool_and_close_it() -> None:
    # An unclosed client or connection would be a ResourceWarning, which is an error here.
    for _ in range(2):
        with Peer(says("ok")) as peer:
            config = config_of("chat", peer)
            asyncio.run(at_once(lambda: build_model(config), 4))  # noqa: B023
        assert len(peer.log) == 4


@pytest.mark.parametrize("route", ROUTES)
def test_failing_calls_are_logged_raw_and_without_keys(route: str, tmp_path: Path) -> None:
    with Peer(says("ok"), faults=[first_attempts(faults.unavailable(), 2)]) as peer:
        ask(route, peer, log_api="errors", log_dir=str(tmp_path / "_api"))
    (file,) = (tmp_path / "_api").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["status"] for line in lines] == [503, 503]
    assert "Quarter 1" in json.dumps(lines[0]["request"])
    assert "overloaded or not ready" in lines[0]["response"]
    assert any("request-id" in name for name in lines[0]["response_headers"])
    assert KEY not in file.read_text()


@pytest.mark.parametrize("route", ROUTES)
def test_key_that_a_service_repeats_is_in_no_error_attempt_or_log(route: str, tmp_path: Path) -> None:
    told = faults.ApiError(503, f"overloaded, key {KEY}, header Authorization: Bearer {KEY}")
    leak = Fault("leak", "error", lambda protocol: told)
    changes = {"log_api": "errors", "log_dir": str(tmp_path), "max_tries": 2}
    with Peer(says("ok"), faults=[first_attempts(leak)]) as peer:
        completion = ask(route, peer, **changes)
    with Peer(says("ok"), faults=always(leak)) as peer:
        error = failing(route, peer, **changes)
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "overloaded" in written
    for text in (str(error), repr(completion), written):
        assert KEY not in text
