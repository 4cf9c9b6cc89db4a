"""Owns rebuilding: from a record back to the firm and the conversation, by replaying the calls and checking them.

Resume is rebuilding and going on; branching is the same from a parent at some quarter; a borrowed history is the same
with another model's parent. A replay that disagrees with what was recorded means that the record was changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from apex_env.firm import ApexFirm, Opening
from apex_env.guard import UNDECIDED
from apex_env.protocol import ToolCall, ToolResult
from experiments.chat import Message, Usage, user
from experiments.errors import StaleContract, Tampered
from experiments.record import Line, Record
from experiments.rollout import Dialogue
from experiments.turn_lines import call_line


@dataclass(frozen=True, slots=True)
class Cut:
    """A run at the close of one of its quarters: what a child goes on from."""

    run_id: str
    quarter: int
    sha256: str
    """Of the parent's lines up to that close."""
    messages: tuple[Message, ...]
    opening: Opening
    reported: tuple[int, int] | None = None
    """Tokens that the provider reported: of the first request, and of the last request with its answer."""


def rebuild(record: Record, firm: ApexFirm, dialogue: Dialogue, *, cuts: Collection[int] = ()) -> dict[int, Cut]:
    """Replay a record into a fresh firm and conversation, which stand where the record ends afterwards.

    Args:
        record: the record.
        firm: the run's firm before its first quarter.
        dialogue: the run's conversation before its first quarter: empty, or with the history that a child is shown.
        cuts: quarters at whose close the run is to be cut.

    Returns:
        The cuts asked for that the record reaches, by quarter.

    Raises:
        StaleContract: where calls were decided on under another contract than the one in force now.
        Tampered: naming file and line where the replay and the record disagree.
    """
    found: dict[int, Cut] = {}
    sizes: list[tuple[int, int]] = []
    for number, line in enumerate(record.lines, 1):
        try:
            _replay(line, firm, dialogue)
        except _Stale as error:
            raise StaleContract(f"{record.path}, line {number}: stale_goal_version: {error}") from None
        except _Disagreement as error:
            raise Tampered(f"{record.path}, line {number}: the record was changed: {error}") from None
        except (KeyError, TypeError, IndexError, AttributeError, RuntimeError) as error:
            raise Tampered(f"{record.path}, line {number}: not a line that this run can have: {error!r}") from error
        if line["type"] == "turn" and line.get("usage"):
            usage = Usage(**line["usage"])
            sizes.append((usage.context_tokens, usage.context_tokens + usage.output_tokens))
        if line["type"] == "closed" and line["quarter"] in cuts:
            quarter = line["quarter"]
            found[quarter] = Cut(
                run_id=record.header["run_id"],
                quarter=quarter,
                sha256=record.sha256_up_to_close(quarter),
                messages=tuple(dialogue.messages),
                opening=firm.opening(),
                reported=(sizes[0][0], sizes[-1][1]) if sizes else None,
            )
    return found


def messages_sha256(messages: Sequence[Message]) -> str:
    """Return the SHA-256 of a conversation in a canonical form."""
    text = json.dumps([message.to_json() for message in messages], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _Disagreement(Exception):
    """A line says something else than its replay."""


class _Stale(Exception):
    """A call was decided on under another contract than the one in force now."""


def _replay(line: Line, firm: ApexFirm, dialogue: Dialogue) -> None:
    kind = line["type"]
    if kind == "opened":
        observation = firm.open()
        _compare("text", line["text"], observation.text)
        _compare("state", line["state"], json.loads(json.dumps(observation.state)))
        dialogue.messages.append(user(observation.text))
        dialogue.begin_period()
    elif kind == "revision":
        dialogue.revised_in = line["quarter"]
    elif kind == "turn" and line["by"] == "model":
        _replay_turn(line, firm, dialogue)
    elif kind == "turn":
        if line["kind"] == "forced":
            firm.force_close()
            dialogue.n_forced_in_a_row += 1
        dialogue.messages.append(user(line["text"]))
    elif kind == "interview":
        dialogue.interviewed.add((line["quarter"], line["topic"]))
    elif kind == "closed":
        if not firm.closed:
            raise _Disagreement(f"quarter {firm.period} is closed here, but its calls leave it open")
        for name, value in json.loads(json.dumps(firm.snapshot())).items():
            _compare(f"books, {name}", line["state"].get(name), value)
        dialogue.in_period = False


def _replay_turn(line: Line, firm: ApexFirm, dialogue: Dialogue) -> None:
    calls = tuple(ToolCall(call["id"], call["tool"], call["arguments"]) for call in line["calls"])
    for call, entry in zip(calls, line["calls"], strict=True):
        _check_policy(entry["decision"]["policy_version"], firm)
        result = firm.call(call) if line["stop"] != "length" else ToolResult(entry["result"], "cut_off")
        replayed = call_line(call, result, entry["command_id"], entry["sent_id"], dialogue.attempt(call, result))
        del replayed["attempt"]  # It moves nothing, and records of before it was counted hold 1.
        for name, value in json.loads(json.dumps(replayed)).items():
            if name != "decision" or entry["decision"]["policy_version"] != UNDECIDED.policy_version:
                _compare(f"call {entry['command_id']}, {name}", entry.get(name), value)
    sent = Message.from_json(line["message"])
    dialogue.messages.append(Message("assistant", sent.text, calls, native=sent.native))
    dialogue.messages.extend(Message("tool", entry["result"], call_id=entry["id"]) for entry in line["calls"])
    dialogue.taken_ids.update(call.call_id for call in calls)
    dialogue.turn = line["turn"] + 1
    dialogue.refused = line["stop"] == "refusal"
    if firm.closed:
        dialogue.n_forced_in_a_row = 0


def _check_policy(recorded: str, firm: ApexFirm) -> None:
    """Refuse to go on under another contract than the one that a call was decided by; nothing else is looked at before.

    Calls that no guard decided on were bound to no contract.
    """
    contract = firm.guard.contract
    if UNDECIDED.policy_version not in (recorded, firm.guard.policy_version) and recorded != firm.guard.policy_version:
        raise _Stale(f"decided by {recorded}, and {contract.reference} is {firm.guard.policy_version} now")


def _compare(what: str, recorded: Any, replayed: Any) -> None:
    if recorded != replayed:
        raise _Disagreement(f"{what}: recorded {_shown(recorded)}, replayed {_shown(replayed)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:120] + "..."
