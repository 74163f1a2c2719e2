"""A run in a process of its own, which says on standard output what it reports as done."""

import sys
import time

import dspy_rerank as dr
from dspy_rerank.streaming import Item, Journal, Plan, run


def judge(query, passages):
    time.sleep(0.002)
    sys.stdout.write(f"asked {query}\n")
    sys.stdout.flush()
    return float(len(passages[0]))


def queries(count):
    for number in range(count):
        yield Item(str(number), f"query-{number}", [f"passage of {number}"])


def main(path, count):
    reranker = dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"))

    def report(summary):
        sys.stdout.write(f"done {summary.ranked}\n")
        sys.stdout.flush()

    with Journal(path, "p") as journal:
        sys.stdout.write(f"{run(queries(count), reranker, journal, Plan(), report=report)}\n")


main(sys.argv[1], int(sys.argv[2]))
