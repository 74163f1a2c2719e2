"""An OpenAI-compatible server on loopback that fails as it is told to."""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from ._http import Connection, Request
from .completions import completion, error_body
from .faults import Fault, Sent
from .requests import Asked
from .schedules import Latency, Schedule, schedule

Said = str | Mapping[str, Any] | Sent
"""A text, the body of a completion, or all of an answer, such as an error's."""
Answer = Said | Callable[[Asked], Said]
"""What the server says: always the same, or a function of the request."""


class FaultServer:
    """Answers chat completions on loopback, late or wrongly where a schedule says so.

    It has an event loop and a thread of its own, so that it serves synchronous and asynchronous
    code, and other processes. Answers are never streamed.

    >>> import dspy, dspy_rerank as dr
    >>> from dspy_rerank.testing import FaultServer, faults, oracle_answers
    >>> grades = {"Bananas are yellow.": 0, "Paris is the capital of France.": 3}
    >>> broken = [faults.reset(), faults.rate_limit(retry_after=0)]
    >>> with FaultServer(oracle_answers(grades), faults=broken) as server:
    ...     lm = dr.models.direct(server.base_url, model="m", cache=False)
    ...     with dspy.context(lm=lm):
    ...         ranking = dr.ScoreSort(dr.PointwiseJudge())("capital?", list(grades)).ranking
    >>> ranking.indices, ranking.degraded, ranking.usage.failed_calls, server.requests
    ([1, 0], False, 2, 4)

    Args:
        answer: A text, the body of a completion, a whole answer such as an error's, or a function
            that gives one of these for a request, such as :func:`limited` makes; the function
            runs on the server's loop, so it must not block. What it raises is sent as an error
            (500) and raised again when the server stops.
        faults: One that every request meets, one a request in turn (``None`` for none) and none
            after the last, or a function of the request's number, such as :func:`at_random`.
        latency: Seconds before every answer, or a function of the request's number, such as
            :func:`tailed`.
        keep: How many of the latest requests ``asked`` holds; ``None`` is all.

    Attributes:
        requests: Requests for a completion so far.
        in_flight: Those not answered yet; a client that went away is counted no more.
        most_in_flight: The most at any time.
        connections: Open connections.
        met: How often each fault was met, by its name.
    """

    def __init__(
        self,
        answer: Answer = "A",
        *,
        faults: Fault | Sequence[Fault | None] | Schedule | None = None,
        latency: float | Latency = 0.0,
        keep: int | None = None,
    ):
        self._say = answer
        self._schedule = schedule(faults)
        self._latency = latency
        self._asked: deque[Asked] = deque(maxlen=keep)
        self._open: set[Connection] = set()
        self._error: BaseException | None = None
        self._started: threading.Event = threading.Event()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._address = ""
        self.requests = self.in_flight = self.most_in_flight = 0
        self.met: Counter[str] = Counter()

    @property
    def base_url(self) -> str:
        """The address for clients: ``http://127.0.0.1:PORT/v1``."""
        return self._address

    @property
    def connections(self) -> int:
        """Open connections, idle ones of pools included."""
        return len(self._open)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The requests, without their keys."""
        return tuple(self._asked.copy())

    def start(self) -> Self:
        """Listen on a free port."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="fault-server", daemon=True)
        self._running = (loop, thread)
        thread.start()
        self._started.wait()
        return self

    def stop(self) -> None:
        """Close everything.

        Raises:
            BaseException: What the function ``answer`` raised first, if it did.
        """
        if self._running is not None:
            loop, thread = self._running
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            self._running = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def wait(self, until: Callable[[Self], bool], seconds: float = 10.0) -> bool:
        """Whether something becomes true of this server within some seconds.

        ``server.wait(lambda s: s.in_flight == 0)`` is true once all clients have their answers or
        have gone away.
        """
        end = time.monotonic() + seconds
        while not until(self):
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        listening = loop.create_server(
            lambda: Connection(self._handle, self._open), "127.0.0.1", 0, backlog=1024
        )
        server = loop.run_until_complete(listening)
        self._address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._ended(server))
            loop.close()

    async def _ended(self, server: asyncio.Server) -> None:
        server.close()
        for connection in tuple(self._open):
            connection.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @asynccontextmanager
    async def _handle(self, request: Request) -> AsyncIterator[Sent]:
        if request.path.endswith("/models"):
            yield Sent({"object": "list", "data": [{"id": "served", "object": "model"}]})
        elif not request.path.endswith("/chat/completions"):
            yield Sent(error_body(f"no such path: {request.path}", "invalid_request_error"), 404)
        else:
            number = self.requests
            fault = self._schedule(number)
            name = fault.name if fault else ""
            asked = Asked(number, request.path, request.headers, request.body, name)
            self._begun(asked)
            try:
                yield await self._sent(asked, fault)
            finally:
                self.in_flight -= 1

    def _begun(self, asked: Asked) -> None:
        self._asked.append(asked)
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if asked.fault:
            self.met[asked.fault] += 1

    async def _sent(self, asked: Asked, fault: Fault | None) -> Sent:
        sent = self._right(asked)
        if fault is not None:
            sent = fault.change(sent)
        seconds = self._latency(asked.number) if callable(self._latency) else self._latency
        await asyncio.sleep(seconds + sent.wait)
        return sent

    def _right(self, asked: Asked) -> Sent:
        try:
            said = self._say(asked) if callable(self._say) else self._say
            if isinstance(said, Sent):
                return said
            return Sent(completion(said, model=asked.model) if isinstance(said, str) else said)
        except Exception as error:
            self._error = self._error or error
            return Sent(error_body(f"{type(error).__name__}: {error}", "server_error"), 500)
