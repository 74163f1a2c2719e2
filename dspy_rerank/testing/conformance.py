"""What must be true of every reranker, as checks."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any


def check_reranker(
    reranker: Any, documents: Sequence[str], *, query: str = "query", top_ks: Iterable[int] = (1, 3)
) -> None:
    """Assert what must be true of every reranker.

    Every document exactly once, ``top_k`` a cut of the same length everywhere, ranks from 1,
    synchronous equal to asynchronous, the same answer twice, and a cost within the estimate.

    Raises:
        AssertionError: Something does not hold.
    """
    ranking = reranker(query=query, documents=documents).ranking
    again = asyncio.run(reranker.acall(query=query, documents=documents)).ranking
    assert sorted(ranking.indices) == list(range(len(documents))), "not a permutation"
    assert [item.rank for item in ranking] == list(range(1, len(documents) + 1)), "ranks"
    assert ranking.indices == again.indices, "synchronous and asynchronous differ"
    for top_k in top_ks:
        cut = reranker(query=query, documents=documents, top_k=top_k).ranking
        assert len(cut) == min(top_k, len(documents)), f"top_k={top_k} gave {len(cut)}"
        assert len(set(cut.indices)) == len(cut), f"top_k={top_k} repeats a document"
        check_estimate(reranker, len(documents), top_k, cut.usage)
    check_estimate(reranker, len(documents), None, ranking.usage)


def check_estimate(reranker: Any, n: int, top_k: int | None, usage: Any) -> None:
    """Assert that a ranking without failures cost what the estimate had said."""
    estimate = reranker.estimate(n, top_k)
    for name in ("calls", "rounds", "passages_read"):
        said, spent = getattr(estimate, name), getattr(usage, name)
        assert spent == said if isinstance(said, int) else spent in said, (
            f"{name}: estimated {said}, spent {spent} (n={n}, top_k={top_k})"
        )
