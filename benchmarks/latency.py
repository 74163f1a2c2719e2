"""How much longer a ranking takes than its rounds: a model that answers after 200 ms.

    python benchmarks/latency.py

A hundred documents, the first ten wanted, the real prompts of every judge, and a scripted model
whose answers take 200 ms each. The ideal is ``rounds x 200 ms``; the rest is our own time and
DSPy's, in prompts, parsing, fitting and the event loop. Where other programs keep the processors
busy, the ratio is theirs as well; our own share is the processor time.
"""

import asyncio
import time

import dspy
from costs import letter, order, passages

import dspy_rerank as dr
from dspy_rerank.background import run_sync
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Usage

LATENCY, RUNS = 0.2, 5
METHODS = [
    ("TopDown, listwise", lambda: dr.TopDown(dr.ListwiseJudge()), order),
    ("TopDown 2 rounds, listwise", lambda: dr.TopDown(dr.ListwiseJudge(), rounds=2), order),
    ("SlidingWindow, listwise", lambda: dr.SlidingWindow(dr.ListwiseJudge()), order),
    ("TourRank, listwise", lambda: dr.TourRank(dr.ListwiseJudge()), order),
    ("Tournament, listwise", lambda: dr.Tournament(dr.ListwiseJudge()), order),
    ("TopDown, setwise", lambda: dr.TopDown(dr.SetwiseJudge()), letter),
]


def main() -> None:
    """Print the table as Markdown: the fastest of five runs, so that other work counts little."""
    documents = passages()
    print("| method | calls | rounds | rounds x 200 ms | taken | ratio | own CPU |")
    print("|---|---|---|---|---|---|---|")
    wait, cpu = min(waited(3) for _ in range(RUNS))
    print(
        f"| nothing but waiting | 0 | 3 | 0.6 s | {wait:.2f} s | {wait / 0.6:.3f} | {cpu:.3f} s |"
    )
    for name, build, script in METHODS:
        reranker, lm = build(), scripted_lm(script, latency=LATENCY)
        with dspy.context(lm=lm):
            reranker("warm up", documents[:3])
            runs = [timed(reranker, documents) for _ in range(RUNS)]
        taken, cpu, usage = min(runs, key=lambda run: run[0])
        ideal = usage.rounds * LATENCY
        print(
            f"| {name} | {usage.calls} | {usage.rounds} | {ideal:.1f} s | {taken:.2f} s "
            f"| {taken / ideal:.3f} | {cpu:.3f} s |"
        )


def waited(rounds: int) -> tuple[float, float]:
    """Seconds on the wall and of the processor for so many waits on this machine as it is."""

    async def wait() -> None:
        for _ in range(rounds):
            await asyncio.sleep(LATENCY)

    start, cpu = time.perf_counter(), time.process_time()
    run_sync(wait())
    return time.perf_counter() - start, time.process_time() - cpu


def timed(reranker: dr.Reranker, documents: list[str]) -> tuple[float, float, Usage]:
    """Seconds on the wall and of the processor for one ranking, and what it cost."""
    start, cpu = time.perf_counter(), time.process_time()
    usage = reranker("how do I restore a file", documents, 10, concurrency=64).ranking.usage
    return time.perf_counter() - start, time.process_time() - cpu, usage


if __name__ == "__main__":
    main()
