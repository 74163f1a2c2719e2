"""A run in a process of its own, which says on standard output what it reports as done.

Arguments: the file of results, how many queries there are, and from which on the judge hangs, so
that the run cannot end before it is killed.
"""

import signal
import sys
import time

import dspy_rerank as dr
from dspy_rerank.streaming import Item, Journal, Plan, run

HANGS_FROM = int(sys.argv[3])


def judge(query, passages):
    sys.stdout.write(f"asked {query}\n")
    sys.stdout.flush()
    time.sleep(600 if int(query.partition("-")[2]) >= HANGS_FROM else 0.002)
    return float(len(passages[0]))


def queries(count):
    for number in range(count):
        yield Item(str(number), f"query-{number}", [f"passage of {number}"])


def main(path, count):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    reranker = dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"))

    def report(summary):
        sys.stdout.write(f"done {summary.ranked}\n")
        sys.stdout.flush()

    with Journal(path, "p") as journal:
        sys.stdout.write(f"{run(queries(count), reranker, journal, Plan(), report=report)}\n")


main(sys.argv[1], int(sys.argv[2]))
