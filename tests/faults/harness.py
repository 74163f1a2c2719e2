"""One faulty server, one language model by one of the engines, one ranking, and what it left."""

import asyncio
import time
from contextlib import contextmanager

import dspy

import dspy_rerank as dr
from dspy_rerank.background import background_loop, run_sync
from dspy_rerank.testing import FaultServer, oracle_answers

ENGINES = ("direct", "litellm", "native")
MODES = ("sync", "async")
GRADES = {f"text {i}": grade for i, grade in enumerate((0.4, 2.6, 1.2, 1.9, 0.9, 2.2))}
STALLED = 0.25
"""Seconds of deadline where a fault lets nothing come back."""
AMPLE = 60.0
POOL = 8
"""Connections that a pool may keep: as many as questions in flight by default."""


def language_model(server, engine="direct", **options):
    """An LM that asks the server by one of the engines; nothing is cached."""
    options = {"cache": False, **options}
    if engine == "direct":
        return dr.models.direct(server.base_url, model="m", **options)
    backend = {"litellm": "litellm", "native": "lm15"}[engine]
    return dspy.LM("openai/m", engine=backend, api_base=server.base_url, api_key="none", **options)


@contextmanager
def serving(engine="direct", grades=GRADES, **options):
    """A server and an LM that asks it; afterwards no question and no connection is left."""
    with FaultServer(oracle_answers(grades), **options) as server:
        lm = language_model(server, engine)
        yield server, lm
        assert server.wait(lambda s: s.in_flight == 0), "a question is still in flight"
        assert_nothing_left()
        close(lm, engine)
        most = (
            POOL if engine == "litellm" else 0
        )  # which keeps its pools for the life of the process
        assert server.wait(lambda s: s.connections <= most), f"{server.connections} connections"


def close(lm, engine):
    """Close the background loop's connections; those of loops that have ended are gone."""
    if engine == "direct":
        lm.engine.close()
    if engine == "native":
        run_sync(lm.aclose())


def own_tasks(loop):
    """Tasks that run code of this package."""
    return [
        task for task in asyncio.all_tasks(loop)
        if "/dspy_rerank/" in getattr(task.get_coro(), "cr_code", run_sync.__code__).co_filename
    ]  # fmt: skip


def assert_nothing_left(loop=None):
    """No task of ours is left on the background loop."""
    end = time.monotonic() + 10
    while left := own_tasks(loop or background_loop()):
        assert time.monotonic() < end, f"tasks are left: {left}"
        time.sleep(0.002)


def ranked(reranker, lm, mode="sync", documents=tuple(GRADES), **options):
    """The ranking, synchronously or on a loop of its own."""
    with dspy.context(lm=lm):
        if mode == "sync":
            return reranker("q", documents, **options).ranking
        return asyncio.run(_ranked(reranker, documents, options, lm))


async def _ranked(reranker, documents, options, lm):
    try:
        return (await reranker.acall("q", documents, **options)).ranking
    finally:
        left = set(own_tasks(asyncio.get_running_loop())) - {asyncio.current_task()}
        assert not left, f"tasks are left: {left}"
        if isinstance(lm.engine, str):
            await lm.aclose()  # DSPy's own client leaves its pools to the garbage collector


def best_first(documents=tuple(GRADES), grades=GRADES):
    """The right order, by position."""
    return sorted(range(len(documents)), key=lambda place: -grades[documents[place]])
