"""How much longer a ranking takes than its rounds: a model that answers after 200 ms.

    python benchmarks/latency.py

A hundred documents, the first ten wanted, the real prompts of every judge, and a scripted model
whose answers take 200 ms each. The ideal is ``rounds x 200 ms``; the rest is our own time and
DSPy's, in prompts, parsing, fitting and the event loop.
"""

import time

import dspy
from costs import letter, order, passages

import dspy_rerank as dr
from dspy_rerank.testing import scripted_lm

LATENCY = 0.2
METHODS = [
    ("TopDown, listwise", lambda: dr.TopDown(dr.ListwiseJudge()), order),
    ("TopDown 2 rounds, listwise", lambda: dr.TopDown(dr.ListwiseJudge(), rounds=2), order),
    ("SlidingWindow, listwise", lambda: dr.SlidingWindow(dr.ListwiseJudge()), order),
    ("TourRank, listwise", lambda: dr.TourRank(dr.ListwiseJudge()), order),
    ("Tournament, listwise", lambda: dr.Tournament(dr.ListwiseJudge()), order),
    ("TopDown, setwise", lambda: dr.TopDown(dr.SetwiseJudge()), letter),
]


def main() -> None:
    """Print the table as Markdown."""
    documents = passages()
    print("| method | calls | rounds | rounds x 200 ms | taken | ratio |")
    print("|---|---|---|---|---|---|")
    for name, build, script in METHODS:
        reranker, lm = build(), scripted_lm(script, latency=LATENCY)
        with dspy.context(lm=lm):
            reranker("warm up", documents[:3])
            start = time.perf_counter()
            usage = reranker("how do I restore a file", documents, 10, concurrency=64).ranking.usage
            taken = time.perf_counter() - start
        ideal = usage.rounds * LATENCY
        print(
            f"| {name} | {usage.calls} | {usage.rounds} | {ideal:.1f} s | {taken:.2f} s "
            f"| {taken / ideal:.3f} |"
        )


if __name__ == "__main__":
    main()
