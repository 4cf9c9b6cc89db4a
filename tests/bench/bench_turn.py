"""What the harness adds to a turn beyond the bare client, against a peer that answers at once."""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from apex_env.protocol import ToolCall
from experiments.chat import Message, Position, Prompt, user
from experiments.models import build_model
from experiments.models.litellm_adapter import library
from experiments.models.provider import RemoteModel
from experiments.models.rendering import serialised
from experiments.run_spec import ModelConfig
from tests.peer_process import PeerProcess, peer_process
from tests.wire import BY_LITELLM, DIRECT, KEY, KEY_ENV, TOOLS, Route

HISTORIES = (10, 500, 2000)
N_TURNS = 40
N_REPEATS = 5
ROUTES = DIRECT | {"litellm": BY_LITELLM["litellm"]}


def history(n_messages: int) -> list[Message]:
    """Quarters of a briefing, a turn with a call, its result, and a text, as long as those of runs are."""
    messages: list[Message] = []
    while len(messages) < n_messages:
        place = len(messages)
        call = ToolCall(f"c{place}", "buy_stock", {"stock": "XOM", "amount": 1_000_000.0})
        messages += [
            user(f"Quarter {place}. " + "The market is open. " * 50),
            Message("assistant", "I look at the fund. " * 10, (call,)),
            Message("tool", "Bought. " * 25, call_id=call.call_id),
            Message("assistant", "That is done. " * 10),
        ]
    return [*messages[: n_messages // 4 * 4], user("Go on.")]


def prompts(n_messages: int) -> list[Prompt]:
    """Consecutive turns: each has the messages of the one before, and two more."""
    said = history(n_messages)
    found = []
    for turn in range(N_TURNS + 1):
        found.append(Prompt("You manage a fund. " * 100, TOOLS, list(said), Position(1, 1, turn)))
        said += [Message("assistant", f"Turn {turn}."), user("Go on.")]
    return found


async def cpu_ms(work: Callable[[Prompt], Awaitable[object]], turns: Sequence[Prompt]) -> float:
    """Processor time of this process for one turn; the peer is another process."""
    await work(turns[0])
    began = time.process_time()
    for prompt in turns[1:]:
        await work(prompt)
    return (time.process_time() - began) / (len(turns) - 1) * 1000


async def measured(model: RemoteModel, n_messages: int) -> tuple[float, float, float]:
    """Time of a turn by the harness, by its client alone with the same requests, and of serialising a request."""
    turns = prompts(n_messages)
    bodies = [model.wire.request(prompt) for prompt in turns]
    alone_client = bare_client(
        model, {id(prompt): serialised(body) for prompt, body in zip(turns, bodies, strict=True)}
    )
    whole, alone = [], []
    # What is kept ready here is more than a run ever holds; looking through it again and again is no turn's work.
    gc.collect()
    gc.freeze()
    for _ in range(N_REPEATS):
        whole.append(await cpu_ms(model.complete, turns))
        alone.append(await cpu_ms(alone_client, turns))
    began = time.process_time()
    for body in bodies:
        serialised(body)
    return min(whole), min(alone), (time.process_time() - began) / len(bodies) * 1000


def bare_client(model: RemoteModel, data: Mapping[int, bytes]) -> Callable[[Prompt], Awaitable[object]]:
    """A call of the client that the adapter uses: the SDK's post, or litellm with a request of its own."""
    if model.config.adapter != "litellm":
        return lambda prompt: model.wire.send(data[id(prompt)])
    made = {place: json.loads(body) for place, body in data.items()}
    service = model.service
    fields = {"api_key": KEY, "api_base": service.base_url, "timeout": service.timeout_s, "num_retries": 0}
    return lambda prompt: library().acompletion(**made[id(prompt)], **fields, max_retries=0)


def row(name: str, route: Route, peer: PeerProcess, n_messages: int) -> str:
    base = peer.url if route.adapter == "anthropic" else f"{peer.url}/v1"
    service = {"base_url": base, "api_key_env": KEY_ENV}
    model = build_model(ModelConfig("m", route.adapter, route.model, route.params, service))
    assert isinstance(model, RemoteModel)
    whole, bare, serialising = asyncio.run(measured(model, n_messages))
    added = whole - bare - serialising
    return f"{name:<12}{n_messages:>10,}{whole:>12.2f}{bare:>12.2f}{serialising:>14.2f}{added:>10.2f}"


def main() -> None:
    print("CPU ms a turn; target: less than 1 added beyond the bare client and serialising the request")
    print(f"{'client':<12}{'messages':>10}{'harness':>12}{'bare':>12}{'serialising':>14}{'added':>10}")
    with tempfile.TemporaryDirectory() as folder, peer_process(Path(folder), brain="nodding", settings="QUICK") as peer:
        for name, route in ROUTES.items():
            for n_messages in HISTORIES:
                print(row(name, route, peer, n_messages), flush=True)
