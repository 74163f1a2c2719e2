"""The benchmark data gives the published numbers, so reading and metrics are both right."""

import os
from pathlib import Path

import pytest

from dspy_rerank.datasets import check, load
from dspy_rerank.metrics import averages, evaluate_run, score_order
from dspy_rerank.trec import read_qrels

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA") or ROOT.parent / "shared" / "data")

pytestmark = [
    pytest.mark.bench_data,
    pytest.mark.skipif(
        not DATA.is_dir(), reason=f"no benchmark data at {DATA}; set DSPY_RERANK_BENCH_DATA"
    ),
]


def mean_ndcg(dataset, order):
    values = [score_order("nDCG@10", q.relevance, order(q), q.ideal) for q in dataset]
    return sum(values) / len(values)


def incoming(query):
    return range(len(query.documents))


def best(query):
    return sorted(incoming(query), key=lambda i: -(query.relevance[i] or 0))


@pytest.mark.parametrize(
    ("name", "size", "depth", "order", "expected"),
    [
        ("noveleval", 21, 20, incoming, 0.650),
        ("dl19", 43, 100, incoming, 0.5058),
        ("dl19", 43, 100, best, 0.892),
    ],
)
def test_known_numbers(name, size, depth, order, expected):
    data = load(DATA / name)
    assert len(data) == size
    assert {len(query.documents) for query in data} == {depth}
    assert mean_ndcg(data, order) == pytest.approx(expected, abs=5e-4)
    assert not [problem for problem in check(data) if problem.kind == "bad label"]


def test_document_ids_give_the_same_number_as_positions():
    run = {query.id: [d.id for d in query.documents] for query in load(DATA / "dl19")}
    qrels = read_qrels(DATA / "dl19" / "id_rating_19.txt")
    scores = averages(evaluate_run(qrels, run, ["nDCG@10"]))
    assert scores["nDCG@10"] == pytest.approx(0.5058, abs=5e-5)
