"""What the first stage already knows: its order is evidence that a reranker can keep.

Blending z-scored judge scores with the z-scored negative logarithm of the incoming rank took a
135M model's nDCG@10 from 0.67 to 0.73-0.74 on a set where the incoming order has 0.65.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite, log

import numpy as np

from .types import Document

SOURCES = ("rank", "score")


def first_stage(documents: Sequence[Document], source: str = "rank") -> list[float]:
    """Z-scored evidence of the first stage, by position.

    Args:
        documents: In the first stage's order.
        source: ``rank`` is ``-log(rank)``, the same for every retriever. ``score`` is the
            documents' retrieval scores, where all have a finite one and they differ, else the rank.
    """
    given = [float(d.score) for d in documents if d.score is not None and isfinite(d.score)]
    if source == "score" and len(given) == len(documents) and len(set(given)) > 1:
        return zscores(given)
    return list(_by_rank(len(documents)))


@lru_cache(maxsize=64)
def _by_rank(n: int) -> tuple[float, ...]:
    return tuple(zscores([-log(rank) for rank in range(1, n + 1)]))


def zscores(values: Sequence[float]) -> list[float]:
    """Values shifted to mean 0 and scaled to standard deviation 1; all 0 when they are equal."""
    array = np.asarray(values, dtype=float)
    spread = float(array.std()) if array.size else 0.0
    if spread < 1e-12:
        return [0.0] * array.size
    return [float(value) for value in (array - array.mean()) / spread]


def blend(
    scores: Sequence[float | None], evidence: Sequence[float], weight: float,
    spread: float | None = None,
) -> list[float | None]:  # fmt: skip
    """Judge scores mixed with first-stage evidence.

    Args:
        scores: By position; ``None`` where the judge did not say, and stays so.
        evidence: Z-scored, by position.
        weight: Of the first stage, in [0, 1]; 0 leaves the scores as they are.
        spread: By which scores are divided; ``None`` is their own standard deviation, as if a
            judge were always equally sure. With a fixed one, a query whose scores are far apart
            listens less to the first stage.
    """
    if weight == 0:
        return list(scores)
    known = [position for position, score in enumerate(scores) if score is not None]
    given = [float(scores[position] or 0.0) for position in known]
    judged = zscores(given) if spread is None else [score / spread for score in given]
    mixed: list[float | None] = [None] * len(scores)
    for position, value in zip(known, judged, strict=True):
        mixed[position] = (1 - weight) * value + weight * evidence[position]
    return mixed
