"""One process that works on a job, for tests that kill it."""

import os
import signal
import sqlite3

import litellm  # noqa: F401  (a forked process has it at once)

import dspy_rerank as dr
from dspy_rerank.batch import store


def work(folder, queries, config, out, changes=0):
    """Begin or go on, to the end; killed at a numbered change of the state, if it gets there."""
    if changes:
        _dying(changes)
    with dr.batch.begin(folder, queries, lm="judge", config=config) as job:
        job.wait(every=0)
        job.write(out)


def _dying(changes):
    """Kill this process as it is about to run its n-th statement that changes anything."""
    seen, connect = [0], store._connected

    def watched(path):
        db: sqlite3.Connection = connect(path)
        db.set_trace_callback(count)
        return db

    def count(statement):
        if statement.split(" ", 1)[0] not in ("SELECT", "PRAGMA"):
            seen[0] += 1
            if seen[0] == changes:
                os.kill(os.getpid(), signal.SIGKILL)

    store._connected = watched
