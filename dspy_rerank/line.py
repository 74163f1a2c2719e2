"""Waiting in line: places go to coroutines in the order of arrival, on whichever loops they run."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

Then = Callable[[], None]


class Line:
    """Those who wait for a place. A place costs one wake-up, however many wait."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, serve: Then, back: Then) -> None:
        """Stand in line until a place is handed over.

        Args:
            serve: Gives out what is free; called once the caller stands in line.
            back: Takes a place back that comes when the caller has gone.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        serve()
        try:
            await future
        except BaseException:
            with suppress(ValueError):
                self._waiting.remove(future)
            if future.done() and not future.cancelled():
                back()
            raise

    def hand(self, back: Then) -> bool:
        """Give a place to the first in line; whether there was one whose loop still runs."""
        try:
            future = self._waiting.popleft()
            future.get_loop().call_soon_threadsafe(_give, future, back)
        except (IndexError, RuntimeError):
            return False
        return True


def _give(future: asyncio.Future[None], back: Then) -> None:
    if future.done():
        back()
    else:
        future.set_result(None)
