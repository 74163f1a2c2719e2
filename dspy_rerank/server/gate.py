"""How many requests are let in, and how many rank at once; the others are told when to come back.

Each program has a gate of its own, so that a slow one does not hold up the others. Waiting is
first come, first served.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

from .refusals import RefusedError

LONGEST_WAIT = 60
"""Seconds that a client is told to wait at most."""


def busy(message: str, seconds: float) -> RefusedError:
    """429 with ``Retry-After`` in whole seconds, from 1 to 60."""
    wait = max(1, min(LONGEST_WAIT, math.ceil(seconds)))
    return RefusedError(
        429, f"{message}; try again in {wait} s", headers={"Retry-After": str(wait)}, reason="busy"
    )


class Gate:
    """Lets some rankings run and some more wait.

    Args:
        at_once: Rankings that run at the same time.
        queue: Requests that may wait.
    """

    def __init__(self, at_once: int, queue: int):
        self.at_once, self.queue = at_once, queue
        self.running, self.waiting = 0, 0
        self._places = asyncio.Semaphore(at_once)
        self._typical = 1.0

    @asynccontextmanager
    async def turn(self, seconds: float) -> AsyncIterator[float]:
        """Wait for a place and hold it; gives the seconds that were waited.

        Args:
            seconds: The longest wait.

        Raises:
            RefusedError: 429: the queue is full, or the wait was in vain.
        """
        if self._places.locked() and self.waiting >= self.queue:
            raise busy(f"{self.running} rankings run and {self.waiting} wait", self.expected_wait)
        waited = await self._wait(seconds)
        self.running += 1
        begun = monotonic()
        try:
            yield waited
        finally:
            self.running -= 1
            self._places.release()
            self._typical += 0.2 * (monotonic() - begun - self._typical)

    async def _wait(self, seconds: float) -> float:
        begun = monotonic()
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError:
            raise busy(f"no place became free in {seconds:g} s", self.expected_wait) from None
        finally:
            self.waiting -= 1
        return monotonic() - begun

    @property
    def expected_wait(self) -> float:
        """Seconds until a newcomer would have a place, by how long rankings have taken of late."""
        return self._typical * (self.waiting + 1) / self.at_once


class Entrance:
    """Bounds the requests that are held in memory at all, before their bodies are read.

    Args:
        places: Requests.
    """

    def __init__(self, places: int):
        self.places = places
        self.inside = 0

    @contextmanager
    def inside_of(self) -> Iterator[None]:
        """Hold a place.

        Raises:
            RefusedError: 429: there is none.
        """
        if self.inside >= self.places:
            raise busy(f"{self.inside} requests are being worked on", 1.0)
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
