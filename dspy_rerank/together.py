"""Several things awaited at once, of which none goes on when one has failed."""

import asyncio
from collections.abc import Awaitable, Iterable
from inspect import iscoroutine
from typing import TypeVar, cast

from .errors import Deferred

T = TypeVar("T")


async def all_or_cancel(work: Iterable[Awaitable[T]]) -> list[T]:
    """Results in order; at the first failure the rest is cancelled and awaited.

    Where an answer comes later, the rest goes on to its end, and :class:`Deferred` is raised then.
    """
    items = list(work)
    tasks = [asyncio.ensure_future(_or_deferred(item)) for item in items]
    try:
        results = await asyncio.gather(*tasks)
    except BaseException:
        await _cancelled(tasks, items)
        raise
    for result in results:
        if isinstance(result, Deferred):
            raise result
    return cast("list[T]", results)


async def _cancelled(tasks: list[asyncio.Task[T | Deferred]], items: list[Awaitable[T]]) -> None:
    """Every task brought to its end; what none of them had begun is closed."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for item in items:
        if iscoroutine(item):
            item.close()


async def _or_deferred(work: Awaitable[T]) -> T | Deferred:
    try:
        return await work
    except Deferred as later:
        return later
