"""As much of HTTP/1.1 as a model's client needs, and every way to break it."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from .faults import Sent
from .requests import SECRET

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
           429: "Too Many Requests", 500: "Internal Server Error"}  # fmt: skip
FLOOD = b" " * 65536


class Request(NamedTuple):
    """What came over the wire, without its keys."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


Handler = Callable[[Request], AbstractAsyncContextManager[Sent]]
"""What to send; the request counts as under way until the context ends."""


class Connection(asyncio.Protocol):
    """One client's connection: requests in, answers out, one at a time.

    Args:
        handle: Gives the answer; its context ends early when the client goes away.
        known: Where the connection is entered while it is open.
    """

    def __init__(self, handle: Handler, known: set["Connection"]):
        self._handle, self._known = handle, known
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Enter the connection."""
        self._transport = transport
        self._known.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it, and stop what is under way for it."""
        self._known.discard(self)
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._writable.set()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came, and answer when a request is whole."""
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._task is None and (request := self._taken()) is not None:
            self._task = asyncio.ensure_future(self._answer(request))
            self._task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:  # a schedule that raised: for the loop to report
            self.abort()
            raise error
        if not self._transport.is_closing():
            self._next()

    def _taken(self) -> Request | None:
        """The first whole request, taken out of what came; ``None`` while it is not whole."""
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length") or 0)
        if len(rest) < length:
            return None
        self._buffer = rest[length:]
        method, path, _ = first.split(" ", 2)
        shown = {name: value for name, value in headers.items() if name not in SECRET}
        return Request(method, path, shown, _json(rest[:length]))

    async def _answer(self, request: Request) -> None:
        async with self._handle(request) as sent:
            await self._send(sent)

    async def _send(self, sent: Sent) -> None:
        if sent.ending == "silent":
            await asyncio.Event().wait()
        elif sent.ending == "reset":
            self._reset()
        elif sent.ending == "endless":
            await self._flood(sent)
        else:
            self._send_body(sent, sent.content)

    def _send_body(self, sent: Sent, content: bytes) -> None:
        if sent.ending == "half":
            self._write(_head(sent, len(content)) + content[: len(content) // 2])
            self._transport.close()
        else:
            self._write(_head(sent, len(content)) + content)

    def _write(self, data: bytes) -> None:
        self._transport.write(data)

    async def _flood(self, sent: Sent) -> None:
        """White space in front of an answer that never comes, as fast as it is read."""
        self._write(_head(sent, None))
        while not self._transport.is_closing():
            await self._writable.wait()
            self._write(b"%x\r\n%b\r\n" % (len(FLOOD), FLOOD))
            await asyncio.sleep(0)

    def _reset(self) -> None:
        """Closing with a linger of 0 seconds sends RST instead of FIN."""
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
        self._transport.abort()


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _head(sent: Sent, length: int | None) -> bytes:
    """The status line and the headers; without a length the body comes in chunks."""
    framing = ("Transfer-Encoding", "chunked") if length is None else ("Content-Length", length)
    headers = {"Content-Type": "application/json", **sent.headers, framing[0]: framing[1]}
    first = f"HTTP/1.1 {sent.status} {REASONS.get(sent.status, 'Unknown')}"
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
