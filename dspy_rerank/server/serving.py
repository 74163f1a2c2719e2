"""Listening: uvicorn with signals that drain, and connections that must say something soon."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import InputError
from .service import GRACE, Service

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    app: FastAPI, *, host: str = "127.0.0.1", port: int = 8787,
    listening: Callable[[str], None] = lambda url: None,
) -> None:  # fmt: skip
    """Serve until SIGTERM or SIGINT; requests under way are answered first.

    A second SIGINT does not wait for them. Call it from the main thread.

    Args:
        app: Made by :func:`dspy_rerank.server.create_app`.
        host: Address to listen at.
        port: Port to listen at; 0 is any that is free.
        listening: Called once with the address, when connections are accepted.

    Raises:
        InputError: The address cannot be listened at.
    """
    listener = bound(host, port)
    server = server_of(app)
    # A signal before uvicorn listens for them counts, and after draining it ends nothing more.
    before = {number: signal.signal(number, server.handle_exit) for number in SIGNALS}
    try:
        listening(url_of(listener))
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        listener.close()


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server for the application, whose ``run(sockets=[...])`` also works off the main thread."""
    service: Service = app.state.service
    config = uvicorn.Config(
        app, http=_protocol(service.limits.upload_seconds), ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, proxy_headers=False,
        timeout_keep_alive=65, timeout_graceful_shutdown=_longest(service),
    )  # fmt: skip
    return _Server(config, service)


def _longest(service: Service) -> int:
    """Seconds after which no request can be under way any more."""
    return int(service.limits.upload_seconds + service.limits.seconds + 2 * GRACE)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, also right after another process has left the port.

    Raises:
        InputError: The address is taken or is not this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(f"cannot listen at {host}, port {port}: {error}") from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a socket listens."""
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Says that it drains as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, service: Service):
        super().__init__(config)
        self._service = service
        self._under_way = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: the first one drains, a second SIGINT stops at once."""
        self._service.draining = True
        self._under_way = self._service.entrance.inside
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        await super().startup(sockets)
        logger.info("started")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, then end."""
        logger.info("draining", extra={"facts": {"requests": self._under_way}})
        await super().shutdown(sockets)
        logger.info("stopped")


def _protocol(seconds: float) -> type[H11Protocol]:
    """HTTP/1.1 whose connections are closed when no whole request head comes in time."""

    class Prompt(H11Protocol):
        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._idle:
                self._expect()
            else:
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        @property
        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect(self) -> None:
            if self._patience is None:
                self._patience = self.loop.call_later(seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _give_up(self) -> None:
            self._patience = None
            if self._idle and not self.transport.is_closing():
                self.transport.close()

    return Prompt
