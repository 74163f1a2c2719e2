"""Compares sorters with one real model on real questions: quality, its interval, and the cost.

    python benchmarks/real.py [--data ../shared/data/noveleval] [--lm local/smollm2-135m]
                              [--queries 21] [--listwise]

By default every sorter uses the same judge, query likelihood: comparisons of two passages or of a
window go by the likelihoods of the single passages, so that a sorter can lose against the
pointwise sort but not win by a better judge. With --listwise the model is asked to order windows
itself, which needs a larger model than the embedded one.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy

import dspy_rerank as dr
from dspy_rerank import datasets

DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA", "../shared/data")) / "noveleval"


def known(rankings: Sequence[dr.Ranking]) -> dict[tuple[str, str], float]:
    """The likelihood of every query given every passage, from one pointwise pass."""
    return {
        (ranking.query, item.text): item.score or 0.0 for ranking in rankings for item in ranking
    }


def judges(scores: dict[tuple[str, str], float]) -> dict[str, dr.FunctionJudge]:
    """The same judge in every kind."""

    def of(query: str, passages: Sequence[str]) -> list[float]:
        return [scores[query, passage] for passage in passages]

    def order(query: str, passages: Sequence[str]) -> list[int]:
        found = of(query, passages)
        return sorted(range(len(found)), key=lambda place: -found[place])

    def best(query: str, passages: Sequence[str]) -> int:
        return order(query, passages)[0]

    def lead(query: str, passages: Sequence[str]) -> float:
        left, right = of(query, passages)
        return left - right

    return {
        "listwise": dr.FunctionJudge(order, "listwise"),
        "setwise": dr.FunctionJudge(best, "setwise"),
        "pairwise": dr.FunctionJudge(lead, "pairwise"),
    }


def same_judge(kinds: dict[str, dr.FunctionJudge]) -> dict[str, dr.Reranker]:
    """Sorters over the one judge, windows of five so that windows matter at twenty documents."""
    return {
        "TopDown w5": dr.TopDown(kinds["listwise"], window=5),
        "TopDown w5 prior .2": dr.TopDown(kinds["listwise"], window=5, prior=0.2),
        "SlidingWindow 5/2": dr.SlidingWindow(kinds["listwise"], window=5, step=2),
        "HeapSort setwise c=4": dr.HeapSort(kinds["setwise"], children=4),
        "MergeSort pairwise": dr.MergeSort(kinds["pairwise"]),
        "AllPairs pairwise": dr.AllPairs(kinds["pairwise"]),
        "AllPairs pairwise prior .3": dr.AllPairs(kinds["pairwise"], prior=0.3),
    }


def asked_to_order() -> dict[str, dr.Reranker]:
    """Sorters whose model orders windows itself."""
    judge: Callable[[], Any] = lambda: dr.ListwiseJudge(max_tokens=60)  # noqa: E731
    return {
        "SlidingWindow 5/2, listwise": dr.SlidingWindow(judge(), window=5, step=2),
        "TopDown w5, listwise": dr.TopDown(judge(), window=5),
    }


def main() -> None:
    """Print one table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default=str(DATA))
    options.add_argument("--lm", default="local/smollm2-135m")
    options.add_argument("--queries", type=int)
    options.add_argument("--listwise", action="store_true")
    chosen = options.parse_args()
    data = datasets.load(chosen.data)[: chosen.queries]
    dspy.configure(lm=dr.models.get(chosen.lm))
    pointwise = {
        "ScoreSort likelihood": dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")),
        "ScoreSort likelihood prior .3": dr.ScoreSort(
            dr.PointwiseJudge(evidence="likelihood"), prior=0.3
        ),
    }
    first = dr.evaluate(pointwise, data)
    print(first, "\n")
    scores = known(first["ScoreSort likelihood"].rankings)
    print(dr.evaluate(same_judge(judges(scores)), data), "\n")
    if chosen.listwise:
        print(dr.evaluate(asked_to_order(), data))


if __name__ == "__main__":
    main()
