"""Thousands of rankings through a model that fails at random, in constant memory.

A scripted model in this process errs, stalls, refuses, talks and is slow at random; ``--http``
puts the fault server and the direct engine in its place. Every ranking is checked: each document
exactly once. In the end nothing may be left: no task, no connection, no growing memory.

    python benchmarks/soak.py                        # 20,000 rankings
    python benchmarks/soak.py --http --rankings 2000
"""

import argparse
import asyncio
import gc
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.testing import FaultServer, at_random, faults, oracle_answers, scripted_lm, tailed
from dspy_rerank.testing.oracles import answer_to

GRADES = {f"passage {i} of six": round(0.5 * i, 1) for i in range(6)}
DOCUMENTS = tuple(GRADES)
DEADLINE = 20.0

ERRORS = (
    lambda: lm15.ServerError("overloaded", status=503),
    lambda: lm15.RateLimitError("slow down", status=429, retry_after=0.01),
    lambda: lm15.TransportError("connection reset"),
    lambda: lm15.TimeoutError("no answer"),
    lambda: lm15.ContextLengthError("prompt is too long"),
)
TALK = ("I cannot decide.", "", "<think>2 or 3", "[[[", "[99] > [98]")
WRONG = {"errors": 0.04, "talk": 0.02, "stalls": 0.0005}

SERVED = {
    faults.status(503): 0.01, faults.rate_limit(0.01): 0.01, faults.reset(): 0.005,
    faults.half_body(): 0.005, faults.invalid_json(): 0.005, faults.empty_choices(): 0.005,
    faults.prose(): 0.01, faults.empty_answer(): 0.005, faults.spent_on_reasoning(): 0.005,
    faults.content_filter(as_error=True): 0.002, faults.reasoning(inline=True): 0.02,
    faults.broken_logprobs(): 0.01, faults.without_usage(): 0.01, faults.hang(): 0.0005,
}  # fmt: skip


def rerankers() -> list[Any]:
    """One of every kind of judge, with few calls each."""
    limits = {"deadline": DEADLINE, "max_calls": 60}
    return [
        dr.ScoreSort(dr.PointwiseJudge(), **limits),
        dr.MergeSort(dr.PairwiseJudge(swap=False), **limits),
        dr.HeapSort(dr.SetwiseJudge(), children=4, **limits),
        dr.SlidingWindow(dr.ListwiseJudge(), window=4, step=2, **limits),
        dr.TopDown(dr.ListwiseJudge(), **limits),
    ]


def unreliable(seed: int) -> dspy.LM:
    """A scripted model that is right most of the time, and slow now and then."""
    rng = random.Random(seed)

    def say(prompt: str) -> str:
        drawn = rng.random()
        if drawn < WRONG["errors"]:
            raise rng.choice(ERRORS)()
        if drawn < WRONG["errors"] + WRONG["talk"]:
            return rng.choice(TALK)
        return answer_to(prompt, GRADES)

    lm = scripted_lm(say)
    lm.engine.prompts = Forgetful()
    answer = lm._async_engine_spec.complete

    async def late(request: Any) -> Any:
        await asyncio.sleep(60 if rng.random() < WRONG["stalls"] else rng.expovariate(1000))
        return await answer(request)

    lm._async_engine_spec.complete = late
    return lm


class Forgetful(list[str]):
    """Keeps no prompt."""

    def append(self, _: str) -> None:
        """Forget it."""


@dataclass
class Tally:
    """What came of the rankings so far."""

    seconds: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)

    def add(self, ranking: Any, seconds: float) -> None:
        """Count one ranking and check that it is a permutation."""
        indices = ranking.indices
        self.seconds.append(seconds)
        self.counts["lost"] += len(DOCUMENTS) - len(set(indices))
        self.counts["duplicated"] += len(indices) - len(set(indices))
        self.counts["degraded"] += ranking.degraded
        self.counts["unknowns"] += ranking.unknowns
        self.counts["calls"] += ranking.usage.calls
        self.counts["failed calls"] += ranking.usage.failed_calls
        self.counts["late"] += ranking.usage.seconds > DEADLINE + 1
        for reason in ranking.reasons:
            self.why[reason.split(":")[0].split("=")[0][:40]] += 1


async def soak(rankings: int, concurrency: int, tally: Tally) -> None:
    """So many rankings, so many of them under way at once."""
    sorters, todo = rerankers(), iter(range(rankings))

    async def worker() -> None:
        for number in todo:
            begun = time.perf_counter()
            sorter = sorters[number % len(sorters)]
            prediction = await sorter.acall(query=f"query {number}", documents=DOCUMENTS)
            tally.add(prediction.ranking, time.perf_counter() - begun)
            if len(tally.seconds) % max(1, rankings // 40) == 0:
                gc.collect()
                tally.memory.append(resident())
                if sys.stderr.isatty():
                    print(f"\r{len(tally.seconds):,} of {rankings:,}", end="", file=sys.stderr)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def resident() -> float:
    """Megabytes of this process in memory."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / 2**20


@contextmanager
def models(http: bool, seed: int) -> Iterator[tuple[dspy.LM, FaultServer | None]]:
    """The model to ask, and the server behind it if there is one."""
    if not http:
        yield unreliable(seed), None
        return
    with FaultServer(
        oracle_answers(GRADES), faults=at_random(SERVED, seed), latency=tailed(0.002, 0.05), keep=0
    ) as server:
        lm = dr.models.direct(server.base_url, model="m", cache=False)
        yield lm, server


async def main(arguments: argparse.Namespace) -> int:
    """Run, print and judge; the exit code says whether anything was lost or is left."""
    tally = Tally()
    with models(arguments.http, arguments.seed) as (lm, server):
        begun = time.perf_counter()
        with dspy.context(lm=lm, trace=None, max_history_size=1):
            await soak(arguments.rankings, arguments.concurrency, tally)
        took = time.perf_counter() - begun
        await asyncio.sleep(0.1)
        tasks = len(asyncio.all_tasks()) - 1
        if server is not None:
            await lm._async_engine_spec.aclose()
            server.wait(lambda s: s.connections == 0, seconds=5)
        connections = 0 if server is None else server.connections
    report(tally, took, tasks, connections, arguments)
    return bool(tally.counts["lost"] or tally.counts["duplicated"] or tasks or connections)


def report(
    tally: Tally, took: float, tasks: int, connections: int, arguments: argparse.Namespace
) -> None:
    """Print what was counted."""
    done, ordered, counts = len(tally.seconds), sorted(tally.seconds), tally.counts
    quarter = max(1, len(tally.memory) // 4)
    first, last = tally.memory[:quarter], tally.memory[-quarter:]
    grown = sum(last) / len(last) - sum(first) / len(first)
    asked = counts["calls"] + counts["failed calls"]
    source = "fault server over HTTP" if arguments.http else "scripted model in this process"
    rows = {
        "rankings": f"{done:,} of {len(DOCUMENTS)} documents, {source}, seed {arguments.seed}",
        "under way at once": arguments.concurrency,
        "throughput": f"{done / took:.1f} rankings/s, {asked / took:.0f} calls/s, {took:.0f} s",
        "latency p50 / p99": f"{ordered[done // 2]:.3f} s / {ordered[done * 99 // 100]:.3f} s",
        "calls / failed": f"{counts['calls']:,} / {counts['failed calls']:,}",
        "unknown judgments": f"{counts['unknowns']:,}",
        "degraded": f"{counts['degraded'] / done:.2%}  {dict(tally.why.most_common())}",
        f"more than {DEADLINE + 1:g} s": counts["late"],
        "documents lost": counts["lost"],
        "documents duplicated": counts["duplicated"],
        "tasks left": tasks,
        "connections left": connections,
        "memory, mean of quarters": f"first {sum(first) / len(first):.1f} MB, "
        f"last {sum(last) / len(last):.1f} MB, grown {grown:+.1f} MB",
    }
    for name, value in rows.items():
        print(f"{name:<26}{value}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rankings", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--http", action="store_true", help="through the fault server")
    logging.disable(logging.WARNING)
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    sys.exit(asyncio.run(main(parser.parse_args())))
