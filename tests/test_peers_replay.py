"""Whatever a model says, a client that sends it back as it came is never refused, and the brain sees it right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.peers import anthropic_messages, openai_chat, openai_responses
from tests.peers.examples import SCHEMA, verdict
from tests.peers.neutral import Call, Json, Reply, Thinking, Usage
from tests.peers.wire import Memory, Turn, Wire

WIRES: dict[str, Wire] = {
    wire.protocol: wire for wire in (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE)
}

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
thoughts = st.builds(Thinking, words, st.booleans())
said_calls = st.builds(
    Call, st.sampled_from(["buy_stock", "sell_stock"]), st.dictionaries(words, st.integers() | words)
)
replies = st.builds(
    Reply,
    text=words,
    calls=st.lists(said_calls, max_size=3).map(tuple),
    thinking=st.lists(thoughts, max_size=2).map(tuple),
)


class Client:
    """Keeps a conversation in the protocol's own form."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.history: list[Json] = []
        self.open_ids: list[str] = []
        self.memory = Memory()

    def body(self) -> Json:
        name = "buy_stock", "sell_stock"
        if self.wire.protocol == "chat":
            tools: list[Json] = [{"type": "function", "function": {"name": n, "parameters": SCHEMA}} for n in name]
            return {"model": "m", "messages": self.history, "tools": tools}
        if self.wire.protocol == "responses":
            tools = [{"type": "function", "name": n, "parameters": SCHEMA} for n in name]
            more: Json = {"store": False, "include": ["reasoning.encrypted_content"]}
            return {"model": "m", "input": self.history, "tools": tools, **more}
        tools = [{"name": n, "input_schema": SCHEMA} for n in name]
        more = {"max_tokens": 9, "thinking": {"type": "adaptive"}}
        return {"model": "m", "messages": self.history, "tools": tools, **more}

    def turn(self, reply: Reply, user: str, i: int) -> str | None:
        """Play one turn; gives what strict mode says against the request."""
        self.ask(user)
        said = verdict(self.wire, self.body(), memory=self.memory)
        turn = Turn(f"{i:02x}{'0' * 30}", self.body(), Usage())
        answer = self.wire.payload(turn, reply)
        self.wire.remember(turn, answer, self.memory)
        self.history += self._said(answer)
        self.open_ids = self._ids(answer)
        return said

    def ask(self, user: str) -> None:
        """Add the results of the open calls and a message of the user."""
        ids, self.open_ids = self.open_ids, []
        if self.wire.protocol == "chat":
            self.history += [{"role": "tool", "tool_call_id": one, "content": "ok"} for one in ids]
            self.history.append({"role": "user", "content": user})
        elif self.wire.protocol == "responses":
            self.history += [{"type": "function_call_output", "call_id": one, "output": "ok"} for one in ids]
            self.history.append({"role": "user", "content": user})
        else:
            blocks: list[Any] = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]
            self.history.append({"role": "user", "content": [*blocks, {"type": "text", "text": user}]})

    def _said(self, answer: Json) -> list[Json]:
        if self.wire.protocol == "chat":
            return [answer["choices"][0]["message"]]
        if self.wire.protocol == "responses":
            return list(answer["output"])
        return [{"role": "assistant", "content": answer["content"]}]

    def _ids(self, answer: Json) -> list[str]:
        if self.wire.protocol == "chat":
            return [call["id"] for call in answer["choices"][0]["message"].get("tool_calls") or []]
        if self.wire.protocol == "responses":
            return [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        return [block["id"] for block in answer["content"] if block["type"] == "tool_use"]


@pytest.mark.parametrize("protocol", WIRES)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(replies, words), min_size=1, max_size=5))
def test_a_faithful_client_is_never_refused_and_the_brain_sees_what_was_said(
    protocol: str, turns: list[tuple[Reply, str]]
) -> None:
    client = Client(WIRES[protocol])
    assert [client.turn(reply, user, i) for i, (reply, user) in enumerate(turns)] == [None] * len(turns)
    client.ask("end")
    messages, tools = client.wire.read(client.body())
    spoken = [message for message in messages if message.role == "assistant"]
    assert [message.text for message in spoken] == [reply.text for reply, _ in turns]
    assert [message.text for message in messages if message.role == "user"] == [*(user for _, user in turns), "end"]
    assert [len(message.calls) for message in spoken] == [len(reply.calls) for reply, _ in turns]
    for message, (reply, _) in zip(spoken, turns, strict=True):
        for call, said in zip(message.calls, reply.calls, strict=True):
            arguments = call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments)
            assert (call.name, arguments) == (said.name, said.arguments)
    assert [tool.name for tool in tools] == ["buy_stock", "sell_stock"]


@pytest.mark.parametrize("protocol", WIRES)
@given(replies)
def test_a_stream_holds_every_text_of_the_whole_answer(protocol: str, reply: Reply) -> None:
    wire = WIRES[protocol]
    turn = Turn("0" * 32, {"model": "m", "stream": True}, Usage())
    answer = wire.payload(turn, reply)
    frames = [frame.decode().splitlines()[-2] for frame in wire.events(turn, reply, answer)]
    data = [json.loads(frame.removeprefix("data: ")) for frame in frames if frame != "data: [DONE]"]
    text = "".join(_delta(protocol, frame) for frame in data)
    assert text == reply.text


def _delta(protocol: str, frame: Json) -> str:
    if protocol == "chat":
        return frame["choices"][0]["delta"].get("content") or ""
    if protocol == "responses":
        return frame["delta"] if frame["type"] == "response.output_text.delta" else ""
    delta = frame.get("delta") or {}
    return delta.get("text", "") if frame["type"] == "content_block_delta" else ""
