"""Cancelling stops a ranking at once: no question afterwards, no task, no connection."""

import asyncio
import time

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.background import background_loop
from dspy_rerank.errors import ModelError
from dspy_rerank.testing import faults
from tests.faults.harness import GRADES, own_tasks, serving

ENGINES = ("direct", "litellm", "native")
DOCUMENTS = tuple(GRADES)
MANY = [{"query": f"q {i}", "documents": DOCUMENTS} for i in range(4)]


def rankings(reranker):
    return {
        "acall": lambda: reranker.acall("q", DOCUMENTS),
        "arank_many": lambda: reranker.arank_many(MANY),
    }


async def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("call", ["acall", "arank_many"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_cancelled_ranking_asks_no_more(engine, call):
    async def cancelled(server, lm):
        reranker = dr.AllPairs(dr.PairwiseJudge(), concurrency=3)
        with dspy.context(lm=lm):
            task = asyncio.ensure_future(rankings(reranker)[call]())
        await until(lambda: server.requests >= 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not set(own_tasks(asyncio.get_running_loop())) - {asyncio.current_task()}
        await until(lambda: server.in_flight == 0)
        asked = server.requests
        await asyncio.sleep(0.1)
        assert server.requests == asked

    with serving(engine, latency=0.02) as (server, lm):
        asyncio.run(cancelled(server, lm))


def test_a_time_limit_of_the_callers_own_cancels():
    async def limited(lm):
        with dspy.context(lm=lm):
            async with asyncio.timeout(0.1):
                await dr.MergeSort(dr.PairwiseJudge()).acall("q", DOCUMENTS)

    with serving(faults=faults.hang()) as (_server, lm), pytest.raises(TimeoutError):
        asyncio.run(limited(lm))


@pytest.mark.parametrize("fault", [faults.context_length(), faults.unauthorized()])
def test_one_failure_stops_the_rest(fault):
    """Questions in flight are abandoned when one of them fails for good."""
    with serving(faults=[None, fault], latency=lambda number: 0.0 if number < 2 else 60.0) as (
        server,
        lm,
    ):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), concurrency=4, on_error="raise")
        with dspy.context(lm=lm), pytest.raises((ModelError, dspy.LMError)):
            sorter("q", DOCUMENTS)
        assert server.wait(lambda s: s.in_flight == 0, seconds=20)
        assert server.requests <= 6


def test_the_deadline_abandons_what_is_in_flight():
    with serving(faults=faults.hang()) as (server, lm):
        with dspy.context(lm=lm):
            ranking = dr.ScoreSort(dr.PointwiseJudge(), deadline=0.1)("q", DOCUMENTS).ranking
        assert ranking.degraded
        assert server.wait(lambda s: s.in_flight == 0)
        assert not own_tasks(background_loop())


def test_a_deadline_holds_while_others_have_all_places():
    """Rankings that share a limit: one that hangs does not hold up another's deadline."""
    with serving(faults=faults.hang()) as (server, lm):
        calls = [
            {"query": "slow", "documents": DOCUMENTS, "deadline": 1.0},
            {"query": "fast", "documents": DOCUMENTS, "deadline": 0.1},
        ]
        sorter = dr.ScoreSort(dr.PointwiseJudge())
        with dspy.context(lm=lm):
            slow, fast = sorter.rank_many(calls, concurrency=1, queries_at_once=2)
        assert fast.ranking.usage.seconds < slow.ranking.usage.seconds
        assert fast.ranking.reasons == ("deadline=0.1s was reached",)
        assert server.requests == 1
