"""A job: rankings of many queries, a round of all of them at a time."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

from ..background import run_sync
from ..errors import DataError, InputError, ModelError
from ..ranking import Ranking
from ..reserving import ROOM
from .exchange import MOST_BYTES, MOST_REQUESTS, Exchange
from .lock import locked
from .provider import ENDED, Provider, UnavailableError
from .replay import replay
from .rows import Query
from .status import Status, status_of
from .store import Store
from .target import Target

logger = logging.getLogger(__name__)

TOGETHER = 100
"""Queries whose results are made durable at once."""
PATIENCE = 20
"""Failures of the provider in a row after which waiting ends."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may do.

    Attributes:
        attempts: At an answer to each request, at most; then its query is degraded.
        max_cost: US dollars for the whole job; ``None`` is any.
        requests: In one file, at most.
        size: Bytes of one file, at most.
    """

    attempts: int = 3
    max_cost: float | None = None
    requests: int = MOST_REQUESTS
    size: int = MOST_BYTES

    def __post_init__(self) -> None:
        for name in ("attempts", "requests", "size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name}={value!r}; expected a whole number of at least 1")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise InputError(f"max_cost={self.max_cost!r}; expected US dollars, 0 or more")


class Job:
    """A job in a folder. Made by :func:`dspy_rerank.batch.submit` and `open`.

    Every method may be cut off at any point, by whatever means, and called again.

    Args:
        folder: Of the job.
        target: Who answers.
        reranker: A copy of the program that belongs to this job.
    """

    def __init__(self, folder: Path, target: Target, reranker: Any):
        self.folder = folder
        self._store = Store(folder)
        self._limits = Limits(**self._store.setting("limits"))
        if self._store.setting("capped") and not _limited(target):
            target = replace(target, request={**target.request, "max_tokens": ROOM})
        self._target, self._reranker = target, reranker
        self._provider = Provider(target)
        self._exchange = Exchange(self._store, self._provider, folder, self._limits.attempts)

    def close(self) -> None:
        """Close the state; the job goes on at the provider."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def advance(self, *, max_cost: float | None = None) -> Status:
        """Take in what is ready and, where no batch is open any more, send the next round.

        Args:
            max_cost: US dollars for the whole job from now on; ``None`` leaves the limit.

        Raises:
            InputError: The next round may cost more than is left; nothing of it was sent. Or
                another process works on the job.
            ModelError: The provider failed or refused; what was reached stays.
        """
        with locked(self.folder):
            if max_cost is not None:
                self._limit(max_cost)
            self._exchange.send()
            self._exchange.fetch()
            self._stop_if_refused()
            if not self._store.batches("open"):
                self._next_round()
            return self.status()

    def _limit(self, max_cost: float) -> None:
        self._limits = replace(self._limits, max_cost=max_cost)
        self._store.set("limits", {n: getattr(self._limits, n) for n in Limits.__slots__})

    def _next_round(self) -> None:
        self._replay()
        worst, n = self._store.count(
            "SELECT coalesce(sum(worst), 0.0), count(*) FROM requests "
            "WHERE answer IS NULL AND batch IS NULL"
        )
        if n:
            self._afford(worst, n)
            self._exchange.plan(self._limits.requests, self._limits.size)
            self._exchange.send()

    def _replay(self) -> None:
        """Rank every query that has no result; what it lacks is asked for in the next round."""
        left = self._store.unfinished()
        while some := list(islice(left, TOGETHER)):
            with self._store.together():
                for query in some:
                    self._ranked(query)

    def _ranked(self, query: Query) -> None:
        store = self._store
        ranking, requests = run_sync(
            replay(query, self._reranker, self._target, store.known, store.setting("top_k"))
        )
        if ranking is None:
            store.ask(query.n, requests)
        else:
            store.finish(query.n, *written(query.id, ranking))

    def _afford(self, worst: float, n: int) -> None:
        limit = self._limits.max_cost
        if limit is None:
            return
        if self._target.price is None:
            raise InputError(
                f"max_cost needs a price, and none is known for {self._target.model!r}; give "
                "input_cost_per_token_batches and output_cost_per_token_batches in its model_info"
            )
        (spent,) = self._store.count("SELECT coalesce(sum(cost), 0.0) FROM requests")
        if spent + worst > limit * (1 + 1e-9):
            raise InputError(
                f"the next round has {n} requests and may cost ${worst:.4f}; ${spent:.4f} of "
                f"max_cost={limit:g} are spent. Nothing was sent; allow more with --max-cost"
            )

    def _stop_if_refused(self) -> None:
        """A batch that was refused as a whole is for a person to see, unless others go on."""
        last = self._store.batches()[-1:]
        told = self._store.setting("told") or 0
        refused = [b for b in self._store.batches("refused") if b.number > told]
        if not refused or self._store.batches("open"):
            return
        self._store.set("told", last[0].number)
        newest = [b for b in self._store.batches() if b.round == last[0].round]
        if all(b.state == "refused" for b in newest):
            raise ModelError(
                f"the provider refused batch {refused[-1].remote}: {refused[-1].note}. Nothing of "
                "it was tried or paid; mend the cause and run collect again"
            )

    def wait(
        self,
        *,
        every: float = 60.0,
        max_cost: float | None = None,
        progress: Callable[[Status], None] = lambda status: None,
    ) -> Status:
        """Advance until all queries are ranked.

        Args:
            every: Seconds between two looks.
            max_cost: As for :meth:`advance`.
            progress: Called after each look.

        Raises:
            InputError: As for :meth:`advance`.
            ModelError: The provider refused, or failed many times in a row.
        """
        failures = 0
        while True:
            try:
                status = self.advance(max_cost=max_cost)
                failures = 0
            except UnavailableError as error:
                failures += 1
                if failures == PATIENCE:
                    raise
                logger.warning("%s; looking again in %g s", error, every)
                status = self.status()
            progress(status)
            if status.finished:
                return status
            time.sleep(every)

    def status(self, *, ask: bool = False) -> Status:
        """How far the job is.

        Args:
            ask: Ask the provider about open batches, too; nothing is changed by that.
        """
        found = status_of(self._store, str(self.folder), self._limits.max_cost)
        if not ask:
            return found
        seen = [self._provider.retrieve(b.remote or "") for b in self._store.batches("open")]
        ready = sum(remote is None or remote.status in ENDED for remote in seen)
        return replace(found, done_there=sum(r.done for r in seen if r), ready=ready)

    def results(self) -> Iterator[dict[str, Any]]:
        """Every finished ranking as JSON values with its query's ``id``, in the order given."""
        for _, result, _ in self._store.results():
            yield json.loads(result)

    def reasons(self) -> list[str]:
        """Why rankings are degraded, each reason once, of the first hundred."""
        found = [json.loads(result)["reasons"] for result in self._store.degraded(100)]
        return list(dict.fromkeys(reason for reasons in found for reason in reasons))

    def write(self, path: str | Path) -> int:
        """Write the finished rankings; how many there are.

        Args:
            path: ``.jsonl`` gives one ranking a line, with judgments and usage; anything else a
                TREC run.
        """
        target = Path(path)
        whole = target.suffix in (".jsonl", ".ndjson")
        count = 0
        with _replacing(target) as file:
            for name, result, run in self._store.results():
                if run is None and not whole:
                    raise DataError(
                        f"query {name}: the id of a document is empty, holds white space or is "
                        "another's, too, which a run cannot carry; write a file that ends in .jsonl"
                    )
                file.write(f"{result}\n" if whole else run)
                count += 1
        return count


def written(name: str, ranking: Ranking) -> tuple[dict[str, Any], str | None]:
    """A ranking as JSON values, without the texts that the queries have, and as lines of a run."""
    result = {"id": name, **ranking.to_dict()}
    for row in result["ranking"]:
        del row["text"]
    try:
        return result, ranking.to_trec(name)
    except (DataError, InputError):
        return result, None


@contextmanager
def _replacing(target: Path) -> Iterator[Any]:
    """A file that takes its name once it is whole."""
    part = target.with_name(target.name + ".part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _limited(target: Target) -> bool:
    return bool({"max_tokens", "max_completion_tokens"} & set(target.request))
