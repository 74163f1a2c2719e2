"""Test collections are joined from their files, as trec_eval would."""

import json

import pytest

from dspy_rerank.datasets import load
from dspy_rerank.errors import DataError
from dspy_rerank.types import Document


def collection(tmp_path, **files):
    """A folder with a small collection; ``_`` in a name stands for a dot or a slash."""
    contents = {
        "queries.tsv": "q1\tone\nq2\ttwo\nq3\tthree\n",
        "corpus.tsv": "a\tA text\nb\tB\twith tab\nc\tC\n",
        "qrels.txt": "q1 0 a 1\nq1 0 c 2\nq1 0 z 0\nq2 0 b 1\n",
        "bm25.run": "q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\nq3 Q0 a 1 1.0 t\n",
    } | files
    for name, text in contents.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if text is not None:
            path.write_text(text, encoding="utf-8")
    return tmp_path


def test_judged_queries_with_their_ranking(tmp_path):
    first, second = load(collection(tmp_path))
    assert (first.id, first.text) == ("q1", "one")
    assert first.documents == (
        Document("A text", id="a", score=2.0),
        Document("B\twith tab", id="b", score=1.0),
    )
    assert first.relevance == (1, None)
    assert first.ideal == (2,)
    assert (second.documents, second.ideal) == ((), (1,))


def test_beirs_layout(tmp_path):
    documents = [{"_id": "a", "title": "T", "text": "A"}, {"_id": "b", "title": "", "text": "B"}]
    queries = [{"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"}]
    files = {
        "corpus.tsv": None,
        "queries.tsv": None,
        "qrels.txt": None,
        "corpus.jsonl": "\n".join(map(json.dumps, documents)),
        "queries.jsonl": "\n".join(map(json.dumps, queries)),
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\n",
        "qrels/train.tsv": "query-id\tcorpus-id\tscore\nq2\tb\t1\n",
    }
    data = load(collection(tmp_path, **files))
    assert data.splits == ("test", "train")
    assert [d.text for d in data.part("test")[0].documents] == ["T\nA", "B"]


def test_splits_named_in_the_queries(tmp_path):
    lines = [{"id": "q1", "text": "one", "split": "test"}, {"id": "q2", "text": "two"}]
    text = "\n".join(map(json.dumps, lines))
    data = load(collection(tmp_path, **{"queries.jsonl": text}), "test")
    assert [query.id for query in data] == ["q1"]


def test_a_run_and_a_depth_can_be_chosen(tmp_path):
    other = {"other.run": "q1 Q0 c 1 9 t\nq1 Q0 a 2 8 t\n"}
    folder = collection(tmp_path, **other)
    with pytest.raises(DataError, match=r"expected one run .*'bm25\.run', 'other\.run'"):
        load(folder)
    for run in ("other.run", folder / "other.run"):
        query = load(folder, run=run, depth=1)[0]
        assert (query.relevance, query.ideal) == ((2,), (1,))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"bm25.run": None}, r"expected one run .*got none"),
        ({"bm25.run": "q9 Q0 a 1 1 t\n"}, "run of the judged queries"),
        ({"bm25.run": "q1 Q0 nowhere 1 1 t\n"}, r"got none of \['nowhere'\]"),
        ({"queries.tsv": "q1\tone\n"}, r"text for every judged query, got none for \['q2'\]"),
        ({"corpus.tsv": "a\tA\nno tab\n"}, r"corpus\.tsv, line 2: expected id, tab, text"),
        ({"queries.jsonl": '{"text": "x"}'}, "expected 'id' or '_id'"),
    ],
)
def test_files_that_do_not_fit(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        load(collection(tmp_path, **files))
