"""Runs a peer as a process, `python -m tests.peers --brain package.module:name`; its first line is its port."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from tests.peers.brain import load
from tests.peers.server import Peer
from tests.peers.service import Settings


def main(arguments: list[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--brain", default="tests.peers.brain:echo", help="package.module:name of a brain")
    parser.add_argument("--faults", help="package.module:name of a sequence of rules")
    parser.add_argument("--settings", help="package.module:name of a Settings value")
    parser.add_argument("--log", type=Path, help="append finished requests to this file")
    given = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    peer = Peer(
        load(given.brain),
        faults=load(given.faults) if given.faults else (),
        settings=load(given.settings) if given.settings else Settings(),
        port=given.port,
        log_path=given.log,
    )
    with peer:
        print(peer.port, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
