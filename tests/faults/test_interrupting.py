"""Ctrl-C in another process: it stops at once, asks no more and leaves nothing running."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dspy_rerank.testing import FaultServer

SCRIPT = "tests.faults.interrupted"
ROOT = Path(__file__).parents[2]


def started(server, engine, how):
    """The process, once it has questions in flight."""
    command = [sys.executable, "-m", SCRIPT, server.base_url, engine, how]
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    if not server.wait(lambda s: s.in_flight >= 3, seconds=120):
        process.kill()
        pytest.fail(f"it never asked: {process.communicate()}")
    return process


@pytest.mark.parametrize(("engine", "how"), [
    ("direct", "sync"), ("direct", "async"), ("direct", "many"),
    ("litellm", "sync"),
])  # fmt: skip
def test_an_interrupt_stops_at_once_and_leaves_nothing(engine, how):
    with FaultServer("A", latency=60.0) as server:
        process = started(server, engine, how)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.stdout.readline() == "tasks 0\n"
        assert server.wait(lambda s: s.in_flight == 0), "a question is still in flight"
        asked = server.requests
        time.sleep(0.2)
        assert server.requests == asked == 3
        _, errors = process.communicate("\n", timeout=60)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        assert "never retrieved" not in errors


def test_an_interrupt_that_nobody_catches_ends_the_process():
    with FaultServer("A", latency=60.0) as server:
        process = started(server, "direct", "uncaught")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (-signal.SIGINT, 130)
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert server.wait(lambda s: s.connections == 0)
