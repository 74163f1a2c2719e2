"""Ranking the items of another framework: their texts in, their new places out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..documents import check_top_k
from ..ranking import Ranked, Ranking
from ..types import Document
from ._source import Reranks

CONFIDENCE = "rerank_confidence"
LOW = "low_confidence"
DEGRADED = "rerank_degraded"
UNJUDGED = "rerank_unjudged"
RETRIEVAL = "retrieval_score"
NOTES = (CONFIDENCE, LOW, DEGRADED, UNJUDGED, RETRIEVAL)
"""What integrations write into an item's metadata."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An item in its new place.

    Attributes:
        index: Position in the incoming list.
        score: The judge's; the incoming one where nothing was judged; ``None`` where there is none.
        notes: For the item's metadata.
    """

    index: int
    score: float | None
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How an integration ranks.

    Attributes:
        top_k: How many items to keep; ``None`` is all.
        confidence_threshold: Items whose confidence is known and below it are flagged, never
            dropped; ``None`` leaves it to the reranker's own.
        raise_on_error: Whether a model that keeps failing raises; else the incoming order with
            the incoming scores comes back, flagged. Wrong keys and settings raise in any case.
        inputs: Further inputs of the judge's signature, or options of the call.
    """

    top_k: int | None = None
    confidence_threshold: float | None = None
    raise_on_error: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict)


async def arank(
    reranker: Reranks,
    query: str,
    texts: Sequence[str | None],
    scores: Sequence[float | None],
    wanted: Wanted,
) -> tuple[list[Placed], Ranking | None]:
    """Rank items by their texts.

    Items without text (a picture, ``None``, white space) are not judged: they follow those that
    are, in their incoming order and without a score.

    Returns:
        The places, best first, and the ranking of those that have a text, if any has.
    """
    k = check_top_k(wanted.top_k, len(texts))
    judged = [i for i, text in enumerate(texts) if text and text.strip()]
    if not judged:
        return [Placed(i, scores[i], {UNJUDGED: True}) for i in range(k)], None
    documents = [Document(texts[i] or "", score=scores[i]) for i in judged]
    found = await reranker.acall(
        query=query, documents=documents, top_k=min(k, len(judged)), **_options(wanted)
    )
    ranking: Ranking = found.ranking
    if ranking.degraded and not ranking.judgments:
        return [Placed(i, scores[i], {DEGRADED: True}) for i in range(k)], ranking
    unjudged = sorted(set(range(len(texts))) - set(judged))
    places = [_placed(item, judged[item.index], ranking) for item in ranking]
    places += [Placed(i, None, {UNJUDGED: True}) for i in unjudged]
    return places[:k], ranking


def _options(wanted: Wanted) -> dict[str, Any]:
    on_error = "raise" if wanted.raise_on_error else "original"
    given = {"on_error": on_error, "confidence_threshold": wanted.confidence_threshold}
    return {**{n: v for n, v in given.items() if v is not None}, **wanted.inputs}


def _placed(item: Ranked, index: int, ranking: Ranking) -> Placed:
    notes: dict[str, Any] = {}
    if item.confidence is not None:
        notes[CONFIDENCE] = item.confidence
        if ranking.confidence_threshold is not None:
            notes[LOW] = item.low_confidence
    if ranking.degraded:
        notes[DEGRADED] = True
    return Placed(index, item.score, notes)
