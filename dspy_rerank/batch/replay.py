"""One query of a job, ranked from the start with what is known by now."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dspy
import orjson

from ..documents import as_documents, check_query, check_top_k
from ..errors import DataError, Deferred, RerankError
from ..prices import Price
from ..ranking import Ranking
from ..reading.labels import estimate_tokens
from ..reserving import FRAME, ROOM
from ..sorters import Reranker
from .recorded import Record, recorded_lm
from .rows import Known, Query, Request
from .target import Target

FIELDS = frozenset({"id", "query", "documents", "inputs", "top_k"})
OPTIONS = {"deadline": None, "error_retries": 0, "on_error": "original"}
"""A batch takes its time, tries again by itself, and does not end for one query."""


def check(record: dict[str, Any], where: str) -> None:
    """Complain about a query that cannot be ranked, before anything is spent.

    Raises:
        DataError: The message names the line.
    """
    try:
        documents = record.get("documents")
        if not isinstance(documents, list):
            raise DataError(f"documents are {type(documents).__name__}; expected a list")
        if not isinstance(record.get("inputs") or {}, dict):
            raise DataError(f"inputs are {type(record['inputs']).__name__}; expected an object")
        check_query(record.get("query"))
        check_top_k(record.get("top_k"), len(as_documents(documents)))
    except (RerankError, TypeError) as error:
        raise DataError(f"{where}: {error}") from None


async def replay(
    query: Query,
    reranker: Reranker,
    target: Target,
    known: Callable[[str], Known | None],
    top_k: int | None,
) -> tuple[Ranking | None, list[Request]]:
    """The ranking, or, where answers are missing, the requests that were put for them.

    Raises:
        InputError: The query lacks an input of the judge, or has one too many.
        dspy.LMError: The program asks for something that batches cannot give.
    """
    record, given = Record(query.n, known), query.record
    lm = recorded_lm(target, record)
    reranker.set_lm(lm)
    kept = {"top_k": given.get("top_k", top_k), **(given.get("inputs") or {}), **OPTIONS}
    try:
        with dspy.context(lm=lm, disable_history=True, trace=None):
            said = await reranker.acall(given["query"], given["documents"], **kept)
    except Deferred:
        return None, [_request(k, body, target.price) for k, body in record.asked.items()]
    return _billed(said.ranking, record), []


def _billed(ranking: Ranking, record: Record) -> Ranking:
    """With what the batches add: shared answers, and attempts that failed on the way.

    The seconds are those of the last run, which nobody waited for, so they are left out.
    """
    used = ranking.usage
    usage = replace(
        used, seconds=0.0, cached_calls=used.cached_calls + record.shared,
        failed_calls=used.failed_calls + record.failed,
    )  # fmt: skip
    return replace(ranking, usage=usage)


def _request(key: str, body: dict[str, Any], price: Price | None) -> Request:
    return Request(key, orjson.dumps(body).decode(), worst(body, price))


def worst(body: dict[str, Any], price: Price | None) -> float:
    """US dollars that an answer costs at most; 0 where no price is known.

    The prompt is estimated on the safe side; an answer without a limit counts `ROOM` tokens.
    """
    if price is None:
        return 0.0
    texts = [str(message.get("content")) for message in body["messages"]]
    texts.append(orjson.dumps(body.get("response_format") or "").decode())
    prompt = sum(max(estimate_tokens(text), len(text.split())) + FRAME for text in texts)
    answer = body.get("max_completion_tokens") or body.get("max_tokens") or ROOM
    return price.most(prompt, answer)
