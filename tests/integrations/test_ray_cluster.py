"""A run on a local Ray of two workers, one of which is killed on the way."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

import dspy_rerank as dr

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'dspy-rerank[ray]'")

import ray

from dspy_rerank.integrations.ray import read_failed, read_ranked, rerank

COUNT, BATCH, PLACES = 60, 5, 4
BAD = "query-13"


@pytest.fixture
def cluster():
    """Two CPUs of this machine. Ray gives its own start 30 seconds; a busy machine tries again."""
    settings = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False,
                "object_store_memory": 80 << 20}  # fmt: skip
    try:
        ray.init(**settings)
    except Exception as error:
        if "timed out during startup" not in str(error):
            raise
        ray.init(**settings)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def model_in(log):
    """What makes a model in each worker; it notes by process what it was asked, and fails once."""

    def make():
        import re

        from dspy_rerank.testing import scripted_lm

        def say(prompt):
            query = re.findall(r"query-\d+", prompt)[-1]
            with open(f"{log}/{os.getpid()}.asked", "a", encoding="utf-8") as file:
                file.write(query + "\n")
            if query == "query-13":
                raise TimeoutError("the model does not answer")
            labels = sorted({int(label) for label in re.findall(r"\[(\d+)\]", prompt)})
            return " > ".join(f"[{label}]" for label in reversed(labels))

        return scripted_lm(say, num_retries=0, latency=0.02)

    return make


def asked(log):
    """How often each query was asked about."""
    return Counter(line for path in log.glob("*.asked") for line in path.read_text().split())


def workers(log):
    pids = [int(path.stem) for path in log.glob("*.asked")]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def write_queries(path):
    with path.open("w", encoding="utf-8") as file:
        for number in range(COUNT):
            texts = [f"passage {place} of {number}" for place in range(PLACES)]
            row = {"id": str(number), "query": f"query-{number}", "documents": texts}
            file.write(json.dumps(row) + "\n")


@pytest.fixture
def reranker():
    return dr.TopDown(dr.ListwiseJudge(), error_retries=0)


def test_a_killed_worker_loses_and_repeats_nothing_that_was_reported(cluster, reranker, tmp_path):
    source, out, log = tmp_path / "queries.jsonl", tmp_path / "out", tmp_path / "log"
    log.mkdir()
    write_queries(source)
    safe = set()

    def kill_once(summary):
        if summary.done >= 2 * BATCH and not safe:
            safe.update(row["query"] for row in [*read_ranked(out), *read_failed(out)])
            assert len(safe) >= summary.done
            os.kill(workers(log)[0], signal.SIGKILL)

    summary = rerank(
        source, out, reranker, lm=model_in(log), workers=2, batch=BATCH, report=kill_once
    )
    assert len(safe) < COUNT
    assert (summary.ranked, summary.degraded, summary.failed) == (COUNT - 1, 1, 0)
    assert Counter(row["query"] for row in read_ranked(out)) == {
        f"query-{number}": 1 for number in range(COUNT) if f"query-{number}" != BAD
    }
    (failed,) = read_failed(out)
    assert failed["query"] == BAD
    assert "the model does not answer" in failed["reasons"][0]
    assert {query for query, times in asked(log).items() if times > 1} & safe == set()
