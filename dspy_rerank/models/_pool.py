"""Connections to a server: one pool for each event loop, closed with the loop or its engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from weakref import finalize, ref

CONNECTIONS = 256


async def pool(key: str, timeout: float) -> AsyncIterator[Any]:
    """Suspended while the pool is open; a loop that shuts down ends its generators."""
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        timeout=aiohttp.ClientTimeout(total=timeout),
        headers={
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        },
    ) as session:
        yield session


def closing(engine: Any, loop: asyncio.AbstractEventLoop, holder: Any) -> None:
    """Have a pool closed on its loop once the engine that uses it is gone."""
    finalize(engine, _end, ref(loop), holder).atexit = False


def _end(place: Any, holder: Any) -> None:
    """Close the pool of an engine that is gone, on its loop."""

    def close() -> None:
        task = asyncio.ensure_future(holder.aclose())
        _ending.add(task)
        task.add_done_callback(_ending.discard)

    loop = place()
    if loop is not None:
        with suppress(RuntimeError):  # a loop that is closed has ended its generators
            loop.call_soon_threadsafe(close)


_ending: set[asyncio.Future[None]] = set()
