"""Many rankings under way at once, with one limit on the questions in flight."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dspy

from ..background import run_sync
from ..documents import as_documents, check_query, check_top_k
from ..engine import shared_limit
from ..errors import DocumentTypeError, InputError
from ..options import Options, at_least, split_options
from ..progress import Progress, reporting
from ..settings import Settings
from ..together import all_or_cancel


class ManyQueries:
    """The calls for many queries, of everything that ranks one."""

    settings: Settings
    acall: Callable[..., Awaitable[dspy.Prediction]]
    _options: Callable[[Mapping[str, Any]], Options]
    _check_inputs: Callable[[Mapping[str, Any]], None]

    def rank_many(self, queries: Iterable[Any], **common: Any) -> list[dspy.Prediction]:
        """Rank many queries; see :meth:`arank_many`."""
        return run_sync(self.arank_many(queries, **common))

    async def arank_many(
        self,
        queries: Iterable[Any],
        *,
        queries_at_once: int | None = None,
        progress: Progress | bool | None = None,
        **common: Any,
    ) -> list[dspy.Prediction]:
        """Rank many queries at once; they share the limit on questions in flight.

        A slow query holds its own questions only, and the others go on. All queries are read before
        the first question: one that cannot be used is an error that names it, and nothing has been
        spent. For queries that you cannot vouch for use :func:`dspy_rerank.stream`, which gives
        such a one as a result with its error and ranks the rest.

        Args:
            queries: Keywords of a call each (``{"query": ..., "documents": ...}``), pairs of a
                query and its documents, or examples.
            queries_at_once: Rankings under way; ``None`` is as many as questions in flight.
            progress: Called as ``progress(done, total)`` after each ranking; ``True`` draws a bar
                on standard error.
            common: Keywords of every call that does not bring its own, such as ``top_k``.

        Returns:
            One prediction a query, in their order.

        Raises:
            InputError: A query is blank, has an unusable option, or lacks an input; it is named by
                its place, from 0.
            DocumentTypeError: A document cannot be read; query and document are named.
            RerankError: As for one call, with the rest cancelled; so it is with a
                :class:`dspy.LMError` that no retry can mend.
        """
        limit = Options(concurrency=common.get("concurrency", self.settings["concurrency"]))
        at_once = limit.concurrency if queries_at_once is None else queries_at_once
        at_least("queries_at_once", at_once, 1)
        calls = [self._read({**common, **as_call(q, i)}, i) for i, q in enumerate(queries)]
        places = asyncio.Semaphore(at_once)
        with _sharing(limit.concurrency), reporting(progress) as report:
            return await self._each(calls, places, report)

    def _read(self, call: Mapping[str, Any], number: int) -> dict[str, Any]:
        """A call whose inputs are known to be usable, with its documents read."""
        rest = {name: call[name] for name in call if name not in _OWN}
        listed: Any = call.get("documents")
        try:
            check_keys(self, call)
            check_query(call.get("query"))
            documents = as_documents(listed, call.get("text"))
            check_top_k(call.get("top_k"), len(documents))
            given, inputs = split_options(rest)
            self._options(given)
            self._check_inputs(inputs)
        except (InputError, DocumentTypeError) as error:
            raise type(error)(f"query {number}: {error}") from None
        return {**call, "documents": documents}

    async def _each(
        self,
        calls: Sequence[Mapping[str, Any]],
        places: asyncio.Semaphore,
        progress: Progress | None,
    ) -> list[dspy.Prediction]:
        done = 0

        async def one(call: Mapping[str, Any]) -> dspy.Prediction:
            nonlocal done
            async with places:
                prediction = await self.acall(**call)
            done += 1
            if progress is not None:
                progress(done, len(calls))
            return prediction

        return await all_or_cancel(one(call) for call in calls)


_OWN = frozenset({"query", "documents", "top_k", "text"})
"""What a call has beside options and the judge's own inputs."""


@contextmanager
def _sharing(concurrency: int) -> Iterator[None]:
    """One limit for all rankings that start inside."""
    if shared_limit.get() is not None:
        yield
        return
    token = shared_limit.set(asyncio.Semaphore(concurrency))
    try:
        yield
    finally:
        shared_limit.reset(token)


def check_keys(reranker: Any, call: Mapping[str, Any]) -> None:
    """Complain about a call that lacks its query or documents, or has an id that nothing takes."""
    missing = next((name for name in ("query", "documents") if name not in call), None)
    if missing:
        raise InputError(
            f"there is no {missing!r}; it has {', '.join(map(str, call)) or 'no keys'}"
        )
    wanted = reranker.judge.extra_inputs
    if "id" in call and wanted is not None and "id" not in wanted:
        raise InputError(
            "unknown input 'id'; leave it out, or give dspy_rerank.stream an "
            "Item(id, query, documents) of dspy_rerank.streaming, which comes back with its result"
        )


def as_call(query: Any, number: int) -> dict[str, Any]:
    """The keywords of a call for a query of any form that ``rank_many`` takes."""
    if isinstance(query, dspy.Example):
        return _inputs(query)
    if isinstance(query, Mapping):
        return dict(query)
    if isinstance(query, tuple | list) and len(query) == 2:
        return {"query": query[0], "documents": query[1]}
    raise InputError(
        f"query {number} is {type(query).__name__}; expected a mapping with query and documents, "
        "a pair of them, or a dspy.Example"
    )


def _inputs(example: dspy.Example) -> dict[str, Any]:
    """An example's inputs, or query and documents where none are marked; never its labels."""
    try:
        return dict(example.inputs().items())
    except ValueError:
        return {"query": example.query, "documents": example.documents}
