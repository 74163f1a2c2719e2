"""A language model that answers from what is known, and notes what is not.

A ranking is run on it from the start with the code of a live one. A request whose answer has come
is answered; any other is noted, and the ranking ends with :class:`~dspy_rerank.errors.Deferred`
once its whole round is noted. So a job needs no memory of how far a sort has got: the answers are
that memory.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dspy
import orjson

from ..calls import rollout
from ..errors import Deferred
from ..models._failures import failure
from ..models.direct import AsyncDirectEngine, DirectEngine
from .rows import Known
from .target import Target

PLACE = "http://batch.invalid/v1"
"""Nothing is sent there."""
REFUSALS = frozenset({400, 413, 422})
_FREE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@dataclass
class Record:
    """What one ranking asked.

    Args:
        n: The query's number.
        known: What is known of a request, by its key.

    Attributes:
        asked: Bodies of requests without an answer, by key.
        used: What was known of the requests that have one.
        shared: How many answers another query, or this one before, has paid for.
    """

    n: int
    known: Callable[[str], Known | None]
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: dict[str, Known] = field(default_factory=dict)
    shared: int = 0

    @property
    def failed(self) -> int:
        """Attempts that failed before the answers that this query pays for."""
        paid = [known for known in self.used.values() if known.n == self.n]
        lost = sum(known.failed for known in paid)
        return lost - sum((known.answer or {}).get("status") != 200 for known in paid)

    def answer(self, body: dict[str, Any]) -> Mapping[str, Any]:
        """The completion for a request.

        Raises:
            Deferred: It has not come yet.
            LM15Error: There is none, and nobody will try again.
        """
        key = key_of(body, rollout.get())
        found = self.known(key)
        if found is None or found.answer is None:
            self.asked[key] = body
            raise Deferred(key)
        again = key in self.used or found.n != self.n
        self.used.setdefault(key, found)
        if found.answer["status"] != 200:
            raise _error(found.answer)
        self.shared += again
        return {**found.answer["body"], **({"usage": _FREE} if again else {})}


def key_of(body: Mapping[str, Any], number: int = 0) -> str:
    """The name of a request, which is its ``custom_id``: 40 characters.

    A hash of model, messages and parameters, and, where several answers to the same are wanted, of
    which of them this is.
    """
    text = orjson.dumps([body, number], option=orjson.OPT_SORT_KEYS)
    return "rerank-" + hashlib.sha256(text).hexdigest()[:33]


def _error(answer: Mapping[str, Any]) -> Exception:
    """Why there is no answer: a refusal of the request, or else a provider that failed.

    What would stop a live ranking for a person to act (a wrong key, no such model) degrades the
    query: other requests of the same batch were answered.
    """
    status = answer["status"] if answer["status"] in REFUSALS else 503
    return failure(status, answer["message"], provider="the batch")


class AsyncRecordedEngine(AsyncDirectEngine):
    """A direct engine whose requests go to a record instead of a server."""

    def __init__(self, target: Target, record: Record):
        super().__init__(PLACE, target.model)
        self._target, self._record = target, record

    async def _post(self, body: bytes) -> Any:
        return self._record.answer(self._target.body(orjson.loads(body)))


class RecordedEngine(DirectEngine):
    """The synchronous one, which DSPy asks what the engine can do."""

    def __init__(self, target: Target, record: Record):
        super().__init__(PLACE, target.model)
        self.twin = AsyncRecordedEngine(target, record)


def recorded_lm(target: Target, record: Record) -> dspy.LM:
    """An LM for one ranking: what is learned of the model while it runs is forgotten after it.

    So a ranking depends on the answers to its own requests only, however often and in whichever
    process it is run.
    """
    engine = RecordedEngine(target, record)
    lm = dspy.LM(
        f"batch/{target.model}", engine=engine, async_engine=engine.twin, cache=False,
        num_retries=0,
    )  # fmt: skip
    lm.price = target.price  # pyright: ignore[reportAttributeAccessIssue]
    return lm
