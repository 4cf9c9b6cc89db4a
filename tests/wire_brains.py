"""Brains and settings of peers that run as a process: `python -m tests.peers --brain tests.wire_brains:inertial`."""

from __future__ import annotations

from tests.peers import Call, Reply, RequestView, Settings
from tests.wire import scripted_brain

inertial = scripted_brain("inertial", seed=1)

STEADY = Settings(cache="off", latency_s=0.01, keep_bodies=False)
"""Answers depend on the request alone, and come after ten milliseconds."""

SLOW = Settings(cache="off", latency_s=0.5, keep_bodies=False)
"""Answers come after half a second."""

STALLED = Settings(cache="off", latency_s=60, keep_bodies=False)
"""No answer comes while a test lasts."""

QUICK = Settings(cache="off", keep_bodies=False)
"""Answers come at once."""


def nodding(view: RequestView) -> Reply:
    """Says a word."""
    return Reply(text="Yes.")


def finishing(view: RequestView) -> Reply:
    """Closes every quarter at once."""
    return Reply(text="Done.", calls=(Call("finish_quarter", {}),))
