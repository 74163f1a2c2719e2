"""Starting, draining and starting again, in a process of its own."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.server import create_app
from dspy_rerank.server.serving import bound
from tests.server.harness import scored

ROOT = Path(__file__).parents[2]
BODY = {"query": "secret query", "documents": ["secret 1", "secret 2"]}


@contextmanager
def process(port=0):
    """A running service: its process and its address."""
    command = [sys.executable, "-m", "tests.server.service_process", str(port)]
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), running.communicate()
        yield running, url
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def post(url):
    return httpx.post(f"{url}/v2/rerank", json=BODY, timeout=60)


def until_under_way(url, **expected):
    """Wait until so many requests run and wait."""
    end = time.monotonic() + 60
    with httpx.Client(base_url=url) as client:
        while client.get("/ready").json()["programs"]["p"] != expected:
            assert time.monotonic() < end
            time.sleep(0.02)


def accepts(url):
    try:
        return bool(httpx.get(f"{url}/ready"))
    except httpx.TransportError:
        return False


def events(log):
    return [json.loads(line) for line in log.splitlines()]


def test_a_signal_lets_requests_under_way_finish_and_the_port_can_be_used_again():
    port = 0
    for _ in range(2):
        with process(port) as (running, url), ThreadPoolExecutor(20) as threads:
            port = int(url.rsplit(":", 1)[1])
            ask = [threads.submit(post, url) for _ in range(20)]
            until_under_way(url, running=16, waiting=4)
            running.send_signal(signal.SIGTERM)
            answers = [one.result() for one in ask]
            _, log = running.communicate(timeout=60)
        assert [answer.status_code for answer in answers] == [200] * 20
        assert all(answer.json()["results"][0]["index"] == 1 for answer in answers)
        assert running.returncode == 0
        said = events(log)
        assert [line["event"] for line in said if line["event"] != "request"] == [
            "started", "draining", "stopped",
        ]  # fmt: skip
        draining = next(line for line in said if line["event"] == "draining")
        assert draining["requests"] == 20
        assert "secret" not in log


def test_nothing_new_is_taken_while_draining():
    with process() as (running, url), httpx.Client(base_url=url) as client:
        assert client.get("/ready").status_code == 200
        with ThreadPoolExecutor(1) as threads:
            last = threads.submit(post, url)
            until_under_way(url, running=1, waiting=0)
            running.send_signal(signal.SIGTERM)
            while accepts(url):
                pass
            assert last.result().status_code == 200
        assert running.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_start_is_not_lost(number):
    with process() as (running, _):
        running.send_signal(number)
        _, log = running.communicate(timeout=60)
    assert running.returncode == 0
    assert events(log)[-1]["event"] == "stopped"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_port_that_is_taken_is_named(host):
    with bound(host, 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen at .*port {port}"):
            bound(host, port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "a..b"])
def test_an_address_that_is_not_here_is_named(host):
    with pytest.raises(InputError, match="cannot listen at"):
        bound(host, 0)


def test_readiness_ends_with_draining():
    from starlette.testclient import TestClient

    app = create_app([scored()])
    client = TestClient(app, base_url="http://localhost")
    assert client.get("/ready").status_code == 200
    app.state.service.draining = True
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == 200
