"""The Spark example of docs/at-scale.md runs as written, on a local Spark."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import dspy_rerank as dr

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install pyspark")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
if shutil.which("java") is None:
    pytest.skip("there is no Java, which Spark runs on", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "at-scale.md"
QUERIES = {
    "a": ["about nothing", "query a: this is it"],
    "b": ["query b: this is it", "about nothing"],
    "c": ["unreadable"],
}


def block():
    (found,) = re.findall(r"```python spark\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return found


def make_scripted():
    """What makes a model in each of Spark's Python processes; it prefers what is about it."""

    def make_model():
        import re

        from dspy_rerank.testing import scripted_lm

        def say(prompt):
            shown = re.findall(r"Passage \[(\d+)\]: (.+)", prompt)
            return " > ".join(f"[{n}]" for n, text in sorted(shown, key=lambda s: "it" not in s[1]))

        return scripted_lm(say)

    return make_model


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """One thread of this machine, in a new folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    build = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = build.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_spark_ranks_a_table_as_written(spark):
    rows = [{"id": name, "query": f"query {name}", "documents": texts}
            for name, texts in QUERIES.items()]  # fmt: skip
    pd.DataFrame([*rows, {"id": "d", "query": " ", "documents": ["x"]}]).to_parquet(
        "queries.parquet"
    )
    dr.save(dr.TopDown(dr.ListwiseJudge()), "reranker.json")
    exec(compile(block(), PAGE.name, "exec"), {"spark": spark, "make_model": make_scripted()})
    found = {row["id"]: row for row in spark.read.parquet("ranked.parquet").collect()}
    assert {name: list(row["ranking"]) for name, row in found.items()} == {
        "a": [1, 0], "b": [0, 1], "c": [0], "d": [],
    }  # fmt: skip
    assert "query is blank" in found["d"]["error"]
