"""Waking coroutines that wait for something to change, on whichever event loops they run."""

import asyncio
import threading
from contextlib import suppress


class Bell:
    """Coroutines wait; anyone, from any thread, rings, and all of them look again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    def listen(self) -> asyncio.Future[None]:
        """What to await; taken before looking, so that no ring is missed in between."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.add(future)
        future.add_done_callback(self._forget)
        return future

    def ring(self) -> None:
        """Wake everyone."""
        with self._lock:
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            with suppress(RuntimeError):  # its loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(_settle, future)

    def _forget(self, future: asyncio.Future[None]) -> None:
        with self._lock:
            self._waiting.discard(future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
