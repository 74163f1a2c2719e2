"""What the first stage already knows: its order is evidence that a reranker can keep.

Blending z-scored judge scores with the z-scored negative logarithm of the incoming rank took a
135M model's nDCG@10 from 0.67 to 0.73-0.74 on a set where the incoming order has 0.65.
"""

from collections.abc import Sequence

import numpy as np

from .types import Document

SOURCES = ("rank", "score")


def first_stage(documents: Sequence[Document], source: str = "rank") -> list[float]:
    """Z-scored evidence of the first stage, by position.

    Args:
        documents: In the first stage's order.
        source: ``rank`` is ``-log(rank)``, the same for every retriever. ``score`` is the
            documents' retrieval scores, where all have one and they differ, else the rank.
    """
    given = [document.score for document in documents]
    if source == "score" and None not in given and len(set(given)) > 1:
        return zscores([float(score) for score in given if score is not None])
    return zscores([-float(np.log(rank)) for rank in range(1, len(documents) + 1)])


def zscores(values: Sequence[float]) -> list[float]:
    """Values shifted to mean 0 and scaled to standard deviation 1; all 0 when they are equal."""
    array = np.asarray(values, dtype=float)
    spread = float(array.std()) if array.size else 0.0
    if spread < 1e-12:
        return [0.0] * array.size
    return [float(value) for value in (array - array.mean()) / spread]


def blend(
    scores: Sequence[float | None], evidence: Sequence[float], weight: float
) -> list[float | None]:
    """Judge scores mixed with first-stage evidence.

    Args:
        scores: By position; ``None`` where the judge did not say, and stays so.
        evidence: Z-scored, by position.
        weight: Of the first stage, in [0, 1]; 0 leaves the scores as they are.
    """
    if weight == 0:
        return list(scores)
    known = [position for position, score in enumerate(scores) if score is not None]
    judged = zscores([float(scores[position] or 0.0) for position in known])
    mixed: list[float | None] = [None] * len(scores)
    for position, value in zip(known, judged, strict=True):
        mixed[position] = (1 - weight) * value + weight * evidence[position]
    return mixed
