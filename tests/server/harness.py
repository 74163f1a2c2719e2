"""A service with scripted programs, on a port of its own, in a thread."""

import threading
import time
from contextlib import contextmanager

import dspy_rerank as dr
from dspy_rerank.server import Access, Limits, Program, create_app
from dspy_rerank.server.serving import bound, server_of, url_of


def by_number(query, passages):
    """The grade is the number at the end of a passage."""
    return float(passages[0].split()[-1])


def scored(name="numbers", fn=by_number, **options):
    """A program that grades by a function; its relevance is squashed."""
    return Program(name, dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), **options))


def backwards(name="backwards"):
    """A program without scores that turns every window around."""
    judge = dr.FunctionJudge(lambda query, passages: list(range(len(passages)))[::-1], "listwise")
    return Program(name, dr.SlidingWindow(judge))


@contextmanager
def serving(*programs, keys=(), **limits):
    """The address of a running service; it is told to drain at the end."""
    app = create_app(list(programs), limits=Limits(**limits), access=Access.of(list(keys)))
    listener = bound("127.0.0.1", 0)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(20)


DOCUMENTS = ["one 1", "three 3", "two 2"]
