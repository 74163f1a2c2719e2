"""Runs on a local Ray of two workers: as documented, and with a worker or the driver killed."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import dspy_rerank as dr

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'dspy-rerank[ray]'")

import ray

from dspy_rerank.integrations.ray import read_failed, read_ranked, rerank
from tests.integrations.ray_models import model_in

DRIVER = Path(__file__).with_name("ray_driver.py")
PAGE = Path(__file__).parents[2] / "docs" / "at-scale.md"

COUNT, BATCH, PLACES = 60, 5, 4
BAD = "query-13"


@pytest.fixture(scope="module")
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
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


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


def until_killed(process):
    """Kill the driver once it has reported two batches; how many queries were done."""
    for line in process.stdout:
        if int(line) >= 2 * BATCH:
            process.kill()
            return int(line)
    raise AssertionError("the run ended before it could be killed")


def test_a_killed_driver_is_run_again_and_goes_on(cluster, tmp_path):
    source, out, log = tmp_path / "queries.jsonl", tmp_path / "out", tmp_path / "log"
    log.mkdir()
    write_queries(source)
    command = [sys.executable, str(DRIVER), str(source), str(out), str(log)]
    options = {"env": {**os.environ, "RAY_ADDRESS": cluster}, "text": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as driver:
        done = until_killed(driver)
    safe = {row["query"] for row in [*read_ranked(out), *read_failed(out)]}
    assert done <= len(safe) < COUNT
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    assert Counter(row["query"] for row in read_ranked(out)) == {
        f"query-{number}": 1 for number in range(COUNT) if f"query-{number}" != BAD
    }
    assert {query for query, times in asked(log).items() if times > 1} & safe == set()


def test_the_example_of_the_page_runs_as_written(cluster, reranker, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").mkdir()
    write_queries(tmp_path / "queries.jsonl")
    dr.save(reranker, "reranker.json")
    (block,) = re.findall(r"## Ray.*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(block, PAGE.name, "exec"), {"make_model": model_in(tmp_path / "log")})
    said = capsys.readouterr().out.splitlines()
    assert f"{COUNT - 1} ranked, 0 failed" in said
    assert (
        sum(line.split()[1] == str(PLACES - 1) for line in said if line[0].isdigit()) >= COUNT - 1
    )
