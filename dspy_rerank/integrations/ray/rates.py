"""One rate per model for all workers of a run, kept by a small actor that they ask for leases."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InputError
from ...limits import Limit, limit_of
from ...models.aliases import alias_of
from .._extras import needs

with needs("ray", "dspy_rerank.integrations.ray"):
    import ray


LOOK = 1.0
"""Seconds for which a worker goes on without asking, where a model has no rate."""


class Rates:
    """Token buckets by model, each the :class:`~dspy_rerank.limits.Limit` of a single process."""

    def __init__(self) -> None:
        self._limits: dict[str, Limit] = {}

    def lease(
        self, name: str, rates: tuple[Any, Any], tokens: Sequence[int], owed: int
    ) -> list[float]:
        """Book requests; the seconds until each of them may go out.

        Args:
            name: Of the model.
            rates: Requests and tokens a minute, from the model's configuration.
            tokens: Of each request, about.
            owed: Tokens that answers took beyond what was booked for them.
        """
        limit = self._of(name, rates)
        if owed:
            limit.correct(0, owed)
        return [limit.reserve(each) for each in tokens]

    def refused(self, name: str, rates: tuple[Any, Any], retry_after: float | None) -> None:
        """A worker was refused: hold back all of them."""
        self._of(name, rates).refused(retry_after)

    def _of(self, name: str, rates: tuple[Any, Any]) -> Limit:
        return self._limits.setdefault(name, Limit(*rates))


class Lease:
    """A worker's end: all requests that wait are leased together, in one message.

    What is leased goes out, so nothing is lost with a worker but what it was about to ask. Where
    there is no rate, all that is to be learned is whether another worker was refused, and that is
    asked once in :data:`LOOK` seconds. Used on one event loop.

    Args:
        rates: The actor.
        name: Of the model.
        limit: Of the model in this process.
        clock: Seconds that only go forward.
    """

    def __init__(
        self, rates: Any, name: str, limit: Limit, clock: Callable[[], float] = time.monotonic
    ):
        self._rates, self._name, self._clock = rates, name, clock
        self._free_until = -math.inf
        self._refusals = 0
        self._sizes = (limit.rpm, limit.tpm)
        self._waiting: list[tuple[int, asyncio.Future[float]]] = []
        self._asking: asyncio.Task[None] | None = None
        self._owed = 0

    async def take(self, tokens: int) -> float:
        """The seconds until a request may go out."""
        if self._clock() < self._free_until:
            return 0.0
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, mine))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await mine

    async def _ask(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            owed, self._owed = self._owed, 0
            refusals = self._refusals
            try:
                waits = await self._rates.lease.remote(
                    self._name, self._sizes, [tokens for tokens, _ in asked], owed
                )
            except Exception as error:
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error)
                continue
            refused = self._refusals > refusals  # since then, which the answer may not know
            if not any((*self._sizes, *waits)) and not refused:
                self._free_until = self._clock() + LOOK
            for (_, future), wait in zip(asked, waits, strict=True):
                if not future.done():
                    future.set_result(wait)
        self._asking = None

    def correct(self, tokens: int) -> None:
        """Told with the next lease."""
        self._owed += tokens

    def refused(self, retry_after: float | None) -> None:
        """Told at once, and not waited for."""
        self._free_until = -math.inf
        self._refusals += 1
        self._rates.refused.remote(self._name, self._sizes, retry_after)


def started() -> Any:
    """The actor of a run; it goes with the driver."""
    remote = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Rates)
    return remote.remote()


def share(lm: Any, rates: Any, workers: int) -> None:
    """Make a model's limit that of all workers together.

    Requests and tokens a minute are leased; places for requests under way are dealt out evenly.

    Raises:
        InputError: There are fewer places than workers.
    """
    limit = limit_of(lm)
    limit.at_once = deal(lm, workers)
    limit.pool = Lease(rates, alias_of(lm) or str(lm.model), limit)


def deal(lm: Any, workers: int) -> int | None:
    """How many requests a worker may have under way; ``None`` is any number.

    Raises:
        InputError: There are fewer places than workers.
    """
    places = limit_of(lm).at_once
    if places is not None and places < workers:
        raise InputError(
            f"{lm.model} allows {places} requests at once, fewer than {workers} workers; "
            f"give workers={places}"
        )
    return None if places is None else places // workers
