"""A process that ranks until it is interrupted, and says what it left: run by a test."""

import asyncio
import signal
import sys
import time

import dspy

import dspy_rerank as dr
from dspy_rerank.background import background_loop
from tests.faults.harness import GRADES, language_model, own_tasks


class At:
    """A server somewhere else."""

    def __init__(self, url):
        self.base_url = url


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(url, engine, how):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    lm = language_model(At(url), engine)
    dspy.configure(lm=lm)
    reranker = dr.AllPairs(dr.PairwiseJudge(), concurrency=3)
    calls = {
        "sync": lambda: reranker("q", list(GRADES)),
        "many": lambda: reranker.rank_many([("q 1", list(GRADES)), ("q 2", list(GRADES))]),
        "async": lambda: asyncio.run(reranker.acall("q", list(GRADES))),
    }
    if how == "uncaught":
        return reranker("q", list(GRADES))
    try:
        calls[how]()
    except KeyboardInterrupt:
        say("interrupted")
    end = time.monotonic() + 5
    while own_tasks(background_loop()) and time.monotonic() < end:
        time.sleep(0.005)
    say(f"tasks {len(own_tasks(background_loop()))}")
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
