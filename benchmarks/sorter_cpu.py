"""Our own CPU time per judgment: documents in, plan, engine, ranking out, for every sorter.

    python benchmarks/sorter_cpu.py [--sizes 0,1,2,10,100,300] [--top-k 10] [--passes 3]
    python benchmarks/sorter_cpu.py --profile NAME --sizes 100

The judge is an asynchronous function that answers at once by a number in the passage with some
error, so that what is left is the sorter's and the engine's time. Milliseconds of processor time
(``time.process_time``) per judgment; where nothing is asked, per ranking. Other work on the machine
only ever adds, for as long as it lasts: each cell is the fastest of some repetitions in each of
several passes over the table. Sorters are those that ``choose_sorter`` knows, with every kind of
judge that they take.
"""

import argparse
import asyncio
import cProfile
import math
import pstats
import random
import time
from collections.abc import Sequence

import dspy_rerank as dr
from dspy_rerank.sorters.candidates import CANDIDATES
from dspy_rerank.types import Kind

LIMIT = 1.0
"""Milliseconds per judgment that no sorter may exceed."""


def judge(kind: Kind, seed: int = 0) -> dr.FunctionJudge:
    """Knows each passage's worth up to an error that is drawn anew for every question."""
    rng = random.Random(seed)

    def order(passages: Sequence[str]) -> list[int]:
        seen = [float(passage) + rng.gauss(0, 30) for passage in passages]
        return sorted(range(len(seen)), key=seen.__getitem__, reverse=True)

    async def answer(query: str, passages: Sequence[str]) -> object:
        if kind == "pointwise":
            return float(passages[0])
        ranked = order(passages)
        if kind == "pairwise":
            return "A" if ranked[0] == 0 else "B"
        return ranked if kind == "listwise" else ranked[0]

    return dr.FunctionJudge(answer, kind)


def sorters() -> dict[str, dr.Reranker]:
    """Everything that is measured, by name and kind of judge."""
    return {
        f"{candidate.name}, {kind}": candidate.build(judge(kind))
        for candidate in CANDIDATES
        for kind in candidate.kinds
    }


def spent(reranker: dr.Reranker, n: int, top_k: int) -> float:
    """Milliseconds per judgment of one ranking."""
    documents = [str(worth) for worth in random.Random(n).sample(range(n), n)]
    start = time.process_time()
    ranking = reranker("query", documents, top_k=top_k, concurrency=64).ranking
    return 1000 * (time.process_time() - start) / max(1, len(ranking.judgments))


def fastest(reranker: dr.Reranker, n: int, top_k: int) -> float:
    """The fastest of some repetitions."""
    return min(spent(reranker, n, top_k) for _ in range(2 if n > 99 else 50))


def profiled(reranker: dr.Reranker, n: int, top_k: int) -> None:
    """Print where the time of twenty rankings goes."""
    documents = [str(worth) for worth in random.Random(n).sample(range(n), n)]

    async def rankings() -> None:
        for _ in range(20):
            await reranker.acall("query", documents, top_k=top_k)

    with cProfile.Profile() as profile:
        asyncio.run(rankings())
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Print the table, or where one sorter's time goes."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--sizes", default="0,1,2,10,100,300")
    options.add_argument("--top-k", type=int, default=10)
    options.add_argument("--passes", type=int, default=3)
    options.add_argument("--profile", help="a sorter's name, as in the table")
    given = options.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.profile:
        profiled(sorters()[given.profile], sizes[-1], given.top_k)
        return
    cells = [(name, size) for name in sorters() for size in sizes]
    taken = dict.fromkeys(cells, math.inf)
    for _ in range(given.passes):
        rerankers = sorters()
        for name, size in cells:
            spent(rerankers[name], 3, 3)
            taken[name, size] = min(taken[name, size], fastest(rerankers[name], size, given.top_k))
    print("| sorter | " + " | ".join(f"n={size}" for size in sizes) + " |")
    print("|---" * (1 + len(sizes)) + "|")
    for name in sorters():
        print(f"| {name} | " + " | ".join(f"{taken[name, size]:.3f}" for size in sizes) + " |")
    worst = max(taken.values())
    verdict = "under" if worst < LIMIT else "OVER"
    print(f"\nlargest {worst:.3f} ms, {verdict} the limit of {LIMIT:g} ms per judgment")


if __name__ == "__main__":
    main()
