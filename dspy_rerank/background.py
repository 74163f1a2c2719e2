"""One event loop on one daemon thread, which serves every synchronous call.

``asyncio.run`` inside a notebook or a web handler fails, and a new loop for each call opens a new
connection pool each time. Context variables (DSPy's settings, trace and usage) follow the
coroutine onto the loop.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """The shared loop, started on first use."""
    global _running
    with _lock:
        if _running is None or not _running[1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="dspy-rerank", daemon=True)
            thread.start()
            _running = (loop, thread)
        return _running[0]


async def in_thread(fn: Callable[..., T], *args: Any, **keywords: Any) -> T:
    """What a synchronous function returns, from a daemon thread of its own.

    ``asyncio.to_thread`` shares a few threads among everything: functions that hang would starve
    all others, functions that rank in turn would wait for each other, and the interpreter could
    not exit before they end.

    Raises:
        RuntimeError: The function raised something that cannot pass through a coroutine.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(fn, *args, **keywords)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # nobody waits on a loop that is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="dspy-rerank-call", daemon=True).start()
    result, error = await done
    if isinstance(error, StopIteration | asyncio.CancelledError):
        raise RuntimeError(f"the function raised {type(error).__name__}") from error
    if error is not None:
        raise error
    return result


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, from synchronous code, wherever that code runs.

    An interrupt cancels the work before it is passed on.

    Raises:
        RuntimeError: Called from the background loop itself, where waiting would never end.
    """
    if _running is not None and threading.current_thread() is _running[1]:
        work.close()
        raise RuntimeError(
            "a synchronous call was made from inside an asynchronous judge; "
            "await its acall(...) there"
        )
    future: Future[T] = asyncio.run_coroutine_threadsafe(work, background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
