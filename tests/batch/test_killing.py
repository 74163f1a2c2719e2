"""A job that is killed with SIGKILL at any stage ends as one that was left alone."""

import multiprocessing
import os
import signal
import time
from contextlib import suppress

import pytest

from tests.batch.data import lines
from tests.batch.running import as_run, live
from tests.batch.server import BatchServer
from tests.batch.worker import work

STAGES = (
    "POST /files", "POST /batches", "GET /batches/", "GET /files/",
)  # fmt: skip
ROUNDS = 3
CHANGES = {
    "beginning": 5,
    "about to have begun": 18,
    "replaying": 21,
    "about to have replayed": 26,
    "planning": 31,
    "about to have planned": 35,
    "about to create": 36,
    "created": 37,
    "taking answers in": 69,
    "about to have taken them in": 74,
    "about to have the results": 106,
}
"""Numbers of the statements that change the state of a job of two queries."""


@pytest.fixture(scope="module")
def processes():
    """Fresh processes with everything imported; forking this one, with its threads, is not safe."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.batch.worker"])
    return context


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.jsonl"
    path.write_text(lines(2))
    return path


class Killing:
    """Runs a job in processes until one of them ends by itself."""

    def __init__(self, processes, folder, queries):
        self.processes, self.folder, self.queries = processes, folder, queries
        self.now, self.killed = None, 0

    def run(self, config, changes=0):
        """The run file, after at most one kill by the worker itself and any by the server."""
        out = self.folder / "run.trec"
        for attempt in range(20):
            given = (self.folder / "state", self.queries, config, out, 0 if attempt else changes)
            self.now = self.processes.Process(target=work, args=given)
            self.now.start()
            self.now.join(120)
            if self.now.exitcode != -signal.SIGKILL:
                assert self.now.exitcode == 0
                return out.read_text()
            self.killed += 1
        raise AssertionError("it never ended")

    def kill(self):
        """Return once it is gone. Only the thread that runs the job joins it: of two, one would
        read the exit code and the other that there is none."""
        gone = self.now.pid
        with suppress(ProcessLookupError):
            while True:
                os.kill(gone, signal.SIGKILL)
                time.sleep(0.005)


def asked_once(server):
    keys = [line["custom_id"] for batch in server.batches for line in batch.lines]
    return len(keys) == len(set(keys))


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_request_of_every_round(processes, tmp_path, two, config, grades, when):
    job, met = Killing(processes, tmp_path, two), []

    def strike(number, what):
        """Once at each kind of request in each round, before or after the provider acts on it."""
        stage = (len(met) // len(STAGES), STAGES[len(met) % len(STAGES)])
        if len(met) < ROUNDS * len(STAGES) and what.startswith(stage[1]):
            met.append(stage)
            job.kill()

    hooks = {"reply": strike} if when == "before" else {"after": strike}
    with BatchServer(grades, looks=1, **hooks) as server:
        path = config(server)
        run = job.run(path)
        assert job.killed == len(met) == ROUNDS * len(STAGES)
        assert run == as_run(live(two, path))
        assert len(server.batches) == ROUNDS
        assert asked_once(server)


@pytest.mark.parametrize("stage", CHANGES)
def test_killed_at_a_change_of_the_state(processes, tmp_path, two, config, grades, stage):
    job = Killing(processes, tmp_path, two)
    with BatchServer(grades) as server:
        path = config(server)
        run = job.run(path, CHANGES[stage])
        assert job.killed == 1
        assert run == as_run(live(two, path))
        assert len(server.batches) == ROUNDS
        assert asked_once(server)


def test_two_processes_do_not_send_twice(processes, tmp_path, two, config, grades):
    with BatchServer(grades, looks=30) as server:
        path = config(server)
        given = (tmp_path / "state", two, path, tmp_path / "run.trec")
        both = [processes.Process(target=work, args=given) for _ in range(2)]
        for process in both:
            process.start()
        for process in both:
            process.join(120)
        assert 0 in [process.exitcode for process in both]
        assert len(server.batches) == ROUNDS
        assert (tmp_path / "run.trec").read_text() == as_run(live(two, path))
