"""Lines of the log: whole messages of ours, keys and others' words left out."""

import io
import json
import logging

import httpx
import pytest

import dspy_rerank as dr
from dspy_rerank.server import Program, logs
from dspy_rerank.testing import FaultServer, faults
from tests.server.harness import serving

SECRET = "sk-canary-1234567890"


@pytest.fixture
def log():
    """What the process logs as JSON lines, while the test runs."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers, root.level
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    root.addHandler(handler)
    logging.getLogger(logs.LOGGER).setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(before[1])


def event(name, message, *arguments):
    record = logging.LogRecord(name, logging.WARNING, "f.py", 1, message, arguments, None)
    return json.loads(logs.JsonLines().format(record))["event"]


def test_a_message_of_the_package_is_filled_in():
    assert event("dspy_rerank.models._router", "%s: after %d", "judge", 3) == "judge: after 3"
    assert event("dspy_rerank", "100% sure") == "100% sure"


def test_an_exception_in_it_is_named_by_its_class():
    said = event("dspy_rerank.batch.job", "%s; again in %g s", ValueError("the passage"), 2.0)
    assert said == "ValueError; again in 2 s"


def test_keys_of_the_environment_are_blotted_out(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    assert event("dspy_rerank.x", "key %s", SECRET) == "key ***"


@pytest.mark.parametrize("name", ["dspy.adapters", "httpx", "dspy_reranker"])
def test_of_others_only_the_fixed_part_is_kept(name):
    assert event(name, "asked %s", "the passage") == "asked %s"


def test_a_model_that_cannot_be_reached_is_named_in_the_log_without_placeholders(log):
    lm = dr.models.direct("http://127.0.0.1:9/v1", model="m", api_key=SECRET, num_retries=0)
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"), error_retries=0)
    with serving(Program("p", sorter, lm)) as url:
        body = {"query": "a query", "documents": ["a passage", "another passage"]}
        httpx.post(f"{url}/v2/rerank", json=body, timeout=30)
    lines = log()
    (degraded,) = [line for line in lines if "degraded to" in line["event"]]
    assert degraded["event"] == "ranking degraded to the incoming order: LMTransportError"
    assert degraded["error"] == "LMTransportError"
    (asked,) = [line for line in lines if line["event"] == "request"]
    assert asked["reasons"] == ["the language model failed (LMTransportError)"]
    told = json.dumps(lines)
    assert "%s" not in told
    assert not any(word in told for word in (SECRET, "a query", "passage"))


def test_a_wrong_key_is_named_by_its_error(log):
    with FaultServer("2", faults=faults.unauthorized()) as server:
        lm = dr.models.direct(server.base_url, model="m", api_key=SECRET, num_retries=0)
        program = Program("p", dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), lm)
        with serving(program) as url:
            httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["a"]}, timeout=30)
    (line,) = [line for line in log() if line["event"] == "a program cannot answer"]
    assert (line["program"], line["kind"]) == ("p", "LMAuthError")
    assert SECRET not in json.dumps(log())
