"""A model that knows what is relevant, one that fails, and a real BM25 index."""

import os

import pytest

import dspy_rerank as dr
from dspy_rerank.testing import scripted_lm
from tests.integrations.builders import BEST, CORPUS, GRADES, failing, grade_of

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["PT_TEST_TRANSFORMER_REPORTS"] = "0"


@pytest.fixture
def judge_lm():
    """Grades passages; its prompts are in ``judge_lm.engine.prompts``."""
    return scripted_lm(grade_of, model="scripted/judge")


@pytest.fixture
def broken_lm():
    return scripted_lm(failing, model="scripted/broken", num_retries=0)


@pytest.fixture
def reranker():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"), error_retries=0)


@pytest.fixture
def doubtful():
    """Compares pairs, and is sure only of those with the best passage in them."""

    def compare(query, passages):
        better = GRADES[passages[0]] - GRADES[passages[1]]
        winner = "tie" if not better else "left" if better > 0 else "right"
        return {"winner": winner, "confidence": 0.9 if BEST in passages else 0.2}

    return dr.AllPairs(dr.FunctionJudge(compare, "pairwise"))


@pytest.fixture
def program(reranker, tmp_path):
    """The path of a saved program."""
    return str(dr.save(reranker, tmp_path / "reranker.json"))


@pytest.fixture
def search():
    """BM25: from a query to positions in the corpus and their scores, best first."""
    bm25s = pytest.importorskip("bm25s")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(CORPUS, show_progress=False), show_progress=False)

    def find(query, k=5):
        tokens = bm25s.tokenize(query, show_progress=False)
        found, scores = index.retrieve(tokens, k=k, show_progress=False)
        return [int(i) for i in found[0]], [float(s) for s in scores[0]]

    return find
