"""Rankings of any number of queries in constant memory: read as needed, given as they finish."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

import dspy

from ..background import background_loop, run_sync
from ..budget import Meter, shared_meter
from ..defaults import resolve_lm
from ..engine import shared_limit
from ..options import Options, at_least
from ..sorters import Reranker
from ..sorters.many import as_call, check_keys
from .item import Item
from .streamed import OF_ONE_QUERY, Streamed
from .window import Window

AHEAD = 4
"""Results kept for their turn, as a multiple of the queries under way."""
RUN = "the run's"
"""Stands before limits of all queries together, in messages."""
_END = object()


def stream(
    reranker: Reranker,
    queries: Iterable[Any] | AsyncIterable[Any],
    *,
    lm: Any = None,
    in_order: bool = False,
    queries_at_once: int | None = None,
    ahead: int | None = None,
    total: Options | Meter | None = None,
    **common: Any,
) -> "Stream":
    """Rank queries without end: ``for result in dr.stream(reranker, queries): ...``.

    Works with ``for`` and ``async for``. Queries are read when there is room for them, and no
    further one begins while nobody takes results, so memory does not grow with their number.
    All share one limit on questions in flight. A query that cannot be ranked gives a result with
    its error; the others go on. Leaving the loop cancels what is under way.

    Args:
        reranker: Ranks each of them.
        queries: As for :meth:`~dspy_rerank.Reranker.rank_many`, or an :class:`Item` each; read
            lazily, in the thread that iterates. ``async for`` also takes an asynchronous iterable.
        lm: A DSPy LM or a model name; ``None`` is the program's or the configured one.
        in_order: Give results in the order of the queries instead of as they finish.
        queries_at_once: Rankings under way; ``None`` is as many as questions in flight.
        ahead: Rankings under way or waiting to be taken; ``None`` is four times those under way.
        total: Limits for all of them together, such as ``dr.Options(max_cost=5.0)``; each ranking
            that they stop is degraded and says so.
        common: Keywords of every call that does not bring its own, such as ``top_k``.

    Returns:
        What can be iterated once; it gives a :class:`Streamed` a query.

    Raises:
        InputError: A limit is below 1.
        dspy.LMError: While iterating: a wrong key or configuration; the rest is cancelled. So it
            is after every error that is not of one query only.
    """
    limit = Options(concurrency=common.get("concurrency", reranker.settings["concurrency"]))
    at_once = limit.concurrency if queries_at_once is None else queries_at_once
    at_least("queries_at_once", at_once, 1)
    most = AHEAD * at_once if ahead is None else ahead
    at_least("ahead", most, 1)
    window = Window(at_once, most, in_order)
    budget = Meter(total, name=RUN) if isinstance(total, Options) else total
    model = resolve_lm(lm) if isinstance(lm, str) else lm
    return Stream(reranker, queries, window, model, limit.concurrency, budget, common)


class Stream:
    """Rankings under way; made by :func:`stream`."""

    def __init__(
        self,
        reranker: Reranker,
        queries: Any,
        window: Window,
        lm: Any,
        concurrency: int,
        budget: Meter | None,
        common: Mapping[str, Any],
    ):
        self._reranker, self._queries, self._window = reranker, queries, window
        self._settings = {"disable_history": True, "trace": None} | ({"lm": lm} if lm else {})
        self._concurrency, self._budget, self._common = concurrency, budget, common

    def __iter__(self) -> Iterator[Streamed]:
        run_sync(asyncio.sleep(0))  # complains where waiting would never end
        window, context = self._window, self._context()
        finished: SimpleQueue[Future[Streamed]] = SimpleQueue()
        running: set[Future[Streamed]] = set()
        source = iter(self._queries)
        more = True
        try:
            while True:
                result = window.take()
                if result is not None:
                    yield result
                    continue
                while more and window.room:
                    query = next(source, _END)
                    more = query is not _END
                    if more:
                        running.add(self._begin(window.begin(), query, context, finished))
                if window.idle:
                    return
                done = _drained(finished)
                running.difference_update(done)
                window.end(future.result() for future in done)
        finally:
            for future in running:
                future.cancel()

    def _begin(
        self, number: int, query: Any, context: Context, finished: SimpleQueue[Future[Streamed]]
    ) -> Future[Streamed]:
        work = self._one(number, query)
        future = context.run(asyncio.run_coroutine_threadsafe, work, background_loop())
        future.add_done_callback(finished.put)
        return future

    async def __aiter__(self) -> AsyncIterator[Streamed]:
        window, context = self._window, self._context()
        running: set[asyncio.Task[Streamed]] = set()
        source = _asynchronous(self._queries)
        loop, more = asyncio.get_running_loop(), True
        try:
            while True:
                result = window.take()
                if result is not None:
                    yield result
                    continue
                while more and window.room:
                    query = await anext(source, _END)
                    more = query is not _END
                    if more:
                        work = self._one(window.begin(), query)
                        running.add(loop.create_task(work, context=context.copy()))
                if window.idle:
                    return
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                window.end(task.result() for task in done)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _context(self) -> Context:
        """The caller's, with one limit and one budget for all rankings."""
        context = copy_context()
        if context.get(shared_limit) is None:
            context.run(shared_limit.set, asyncio.Semaphore(self._concurrency))
        if self._budget is not None:
            context.run(shared_meter.set, self._budget)
        return context

    async def _one(self, number: int, query: Any) -> Streamed:
        try:
            own = query.call() if isinstance(query, Item) else as_call(query, number)
            call = {**self._common, **own}
            check_keys(self._reranker, call)
            with dspy.context(**self._settings):
                said = await self._reranker.acall(**call)
        except OF_ONE_QUERY as error:
            return Streamed(number, query, error=error)
        return Streamed(number, query, said.ranking)


def _drained(finished: "SimpleQueue[Future[Streamed]]") -> list[Future[Streamed]]:
    """At least one that is finished, waiting for it, and all others that are by then."""
    done = [finished.get()]
    while not finished.empty():
        done.append(finished.get())
    return done


async def _asynchronous(queries: Any) -> AsyncIterator[Any]:
    if hasattr(queries, "__aiter__"):
        async for query in queries:
            yield query
    else:
        for query in queries:
            yield query
