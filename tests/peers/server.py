"""Serves a peer on 127.0.0.1, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.peers import anthropic_messages, openai_chat, openai_responses
from tests.peers.faults import Rule, Schedule
from tests.peers.log import PeerLog
from tests.peers.neutral import Brain
from tests.peers.service import Outgoing, Service, Settings
from tests.peers.wire import Wire

WIRES = (openai_chat.WIRE, openai_responses.WIRE, anthropic_messages.WIRE)
_MAX_BODY_BYTES = 256 * 2**20
_START_TIMEOUT_S = 30.0
_SHUTDOWN_S = 0.05


class Peer:
    """A loopback provider that speaks all three protocols at one address.

    A context manager: serving while the block runs. It may be stopped and started again at the same port, and keeps
    its log, caches and memory. What goes wrong in the brain or the peer itself is raised when the block ends.

    Args:
        brain: Decides the replies.
        faults: Rules; the first that strikes decides.
        settings: Behaviour where no fault strikes.
        port: 0 for a free one.
        log_path: Where finished requests are appended as JSON lines as well.
    """

    def __init__(
        self,
        brain: Brain,
        *,
        faults: Iterable[Rule] = (),
        settings: Settings | None = None,
        port: int = 0,
        log_path: Path | None = None,
    ) -> None:
        self.log = PeerLog(path=log_path)
        self.crashes: list[Exception] = []
        """Exceptions of the brain or of the peer."""
        self.strays: list[str] = []
        """Method and path of requests that fit no protocol."""
        self.port = port
        self._service = Service(brain, schedule=Schedule(tuple(faults)), settings=settings or Settings(), log=self.log)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._failed: Exception | None = None

    @property
    def url(self) -> str:
        """The address without a path: the base URL for Anthropic's client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's client."""
        return f"{self.url}/v1"

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._service.settings

    def change(self, *, faults: Iterable[Rule] | None = None, **settings: Any) -> None:
        """Put other rules or other settings (fields of `Settings`) in force, from the next request on."""
        if faults is not None:
            self._service.schedule = Schedule(tuple(faults))
        self._service.settings = replace(self._service.settings, **settings)

    def start(self) -> Peer:
        """Serve until `stop`.

        Raises:
            OSError: The port is taken.
            RuntimeError: It serves already.
        """
        if self._thread is not None:
            raise RuntimeError(f"the peer at {self.url} serves already")
        self._ready.clear()
        self._failed = None
        self._thread = threading.Thread(target=self._run, name="peer", daemon=True)
        self._thread.start()
        self._ready.wait(_START_TIMEOUT_S)
        if self._failed is not None:
            self._thread.join()
            self._thread = None
            raise self._failed
        return self

    def stop(self) -> None:
        """Stop serving; open requests lose their connection. Does nothing if it does not serve."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Peer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.crashes and error is None:
            raise self.crashes[0]

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # shown by `start`, in the thread of the caller
            self._failed = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        for wire in WIRES:
            app.router.add_post(wire.path, self._handler(wire))
        app.router.add_get("/v1/models", self._models)
        app.router.add_route("*", "/{path:.*}", self._stray)
        # Cancelled handlers tell apart what was sent from what a client did not wait for.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True)
            await site.start()
            self.port = runner.addresses[0][1]
            self._ready.set()
            await self._stopping.wait()
        finally:
            await runner.cleanup()

    def _handler(self, wire: Wire) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            raw = await request.read()
            try:
                out = await self._service.respond(wire, request.headers, raw)
            except Exception as error:  # raised again when the block of the peer ends
                self.crashes.append(error)
                return web.json_response({"error": {"message": f"the peer crashed: {error!r}"}}, status=500)
            return await self._send(request, out)

        return handle

    async def _send(self, request: web.Request, out: Outgoing) -> web.StreamResponse:
        entry = out.entry

        def close() -> None:
            """Just before the last byte, so that a client that has its answer finds it in the log."""
            entry.status = out.status if out.sent_frac >= 1.0 else None
            entry.answered = entry.outcome == "answered"
            self.log.finish(entry, time.time())

        try:
            if out.wait_s:
                await asyncio.sleep(out.wait_s)
            return await _written(request, out, close)
        except (asyncio.CancelledError, ConnectionError):
            if entry.outcome in ("answered", "rejected", "error"):
                entry.outcome, entry.answered = "client_gone", False
            self.log.finish(entry, time.time())
            raise

    async def _models(self, request: web.Request) -> web.StreamResponse:
        names = sorted(self.settings.models or {"peer-model"})
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    async def _stray(self, request: web.Request) -> web.StreamResponse:
        self.strays.append(f"{request.method} {request.path}")
        return web.json_response({"error": {"message": f"no such path: {request.path}"}}, status=404)


async def _written(request: web.Request, out: Outgoing, close: Callable[[], None]) -> web.StreamResponse:
    """Send the answer or the part of it that is to go out.

    Raises:
        ConnectionError: The client was gone before the end.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client is gone")
    if out.sent_frac <= 0.0:
        close()
        transport.abort() if out.reset else transport.close()
        return web.Response()
    kind = "application/json" if out.events is None else "text/event-stream"
    response = web.StreamResponse(status=out.status, headers={"content-type": kind, **out.headers})
    pieces = [out.body] if out.events is None else out.events
    n_bytes = sum(map(len, pieces))
    if out.events is None:
        response.content_length = n_bytes
    await response.prepare(request)
    if out.sent_frac < 1.0:
        await response.write(b"".join(pieces)[: int(n_bytes * out.sent_frac)])
        close()
        transport.close()
        return response
    for piece in pieces[:-1]:
        await response.write(piece)
    close()
    await response.write(pieces[-1])
    await response.write_eof()
    return response
