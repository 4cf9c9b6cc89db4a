"""Loopback providers: real HTTP servers on 127.0.0.1 that stand in for model services in tests.

One `Peer` speaks OpenAI Chat Completions (`/v1/chat/completions`), OpenAI Responses (`/v1/responses`) and Anthropic
Messages (`/v1/messages`), streamed or not. A brain decides what the model says, in neutral words:

    from tests.peers import Call, Peer, Reply, RequestView

    def brain(view: RequestView) -> Reply:
        if view.n_turns == 0:
            return Reply(text="I buy.", calls=(Call("buy_stock", {"stock": "XOM", "amount": 5.0}),))
        return Reply(text=f"The tool said: {view.last('tool').text}")

    with Peer(brain) as peer:
        AsyncOpenAI(base_url=peer.openai_url, api_key="k", max_retries=0)
        AsyncAnthropic(base_url=peer.url, api_key="k", max_retries=0)
        litellm.acompletion(model="anthropic/m", api_base=peer.url, api_key="k", ...)
        litellm.acompletion(model="openai/m", api_base=peer.openai_url, api_key="k", ...)
    assert peer.log.rejections == []          # every request was one that the real service takes

A brain should depend on the view alone. Then ids, signatures and answers are functions of the request: asked again,
also after a restart, the peer says the same to the byte. Only cached tokens depend on what came before
(`Settings(cache="off")` ends that, too).

**Faults** strike by place, predicate, attempt or seeded chance; the first rule that strikes decides:

    from tests.peers import faults, reply_faults

    Peer(brain, faults=[
        faults.at(faults.rate_limited(2.0, "date"), 0, 3),
        faults.first_attempts(faults.overloaded()),
        faults.chance(faults.drop_after(sent_frac=0.5), 0.1, seed=7),
        faults.when(reply_faults.cut_call(label="calls"), lambda arrival: arrival.protocol == "messages", times=1),
    ])

`faults` has what the service does wrong, `reply_faults` what the model says wrong. A `drop_before` has no answer, a
`drop_after` has one that is lost. Standing conditions are `Settings`: unsupported parameters, a context window, valid
keys, known models, latency.

**Strict mode** (default) refuses with a 400 what the real services refuse, in their words. Where services or models
differ, the strictest is played, so that what passes here passes there.

**Usage** is a token for four bytes of prompt, in each provider's own accounting: OpenAI's input includes cached
tokens, Anthropic's leaves them out. Prompt caches are played on what the peer has seen: by 128-token blocks for
OpenAI, at `cache_control` marks for Anthropic.

**The log** (`peer.log`) has each request with headers (keys too), body, fault and outcome, counters, and the share of
requests that keep the previous conversation as their prefix.

As a process, for tests that kill: `python -m tests.peers --brain package.module:name --log FILE` prints its port and
appends finished requests to the file (`read_log`).
"""

from tests.peers.log import Entry, PeerLog, read_log
from tests.peers.neutral import (
    Arrival,
    Brain,
    Call,
    Reply,
    RequestView,
    SeenCall,
    SeenMessage,
    SeenTool,
    Thinking,
    Usage,
)
from tests.peers.server import Peer
from tests.peers.service import Settings

__all__ = [
    "Arrival",
    "Brain",
    "Call",
    "Entry",
    "Peer",
    "PeerLog",
    "Reply",
    "RequestView",
    "SeenCall",
    "SeenMessage",
    "SeenTool",
    "Settings",
    "Thinking",
    "Usage",
    "read_log",
]
