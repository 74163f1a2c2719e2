"""JSON Lines are read in all their variants, and errors name the line."""

import json

import pytest

from dspy_rerank.datasets import load, read_jsonl
from dspy_rerank.errors import DataError
from dspy_rerank.types import Document


def written(tmp_path, *records):
    path = tmp_path / "set.jsonl"
    lines = (r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_texts_with_a_list_of_grades(tmp_path):
    path = written(tmp_path, {"query": "q", "documents": ["a", "b\u2028c"], "relevance": [2, None]})
    (query,) = load(path)
    assert query.id == "1"
    assert query.documents == (Document("a"), Document("b\u2028c"))
    assert query.relevance == (2, None)


def test_everything_at_once(tmp_path):
    record = {
        "id": 7,
        "split": "test",
        "query": "q",
        "documents": [{"id": 1, "text": "a", "score": 2, "metadata": {"x": 1}}],
        "relevance": [0.5],
        "ideal": [1, 0],
        "inputs": {"criteria": "recent"},
        "user": "me",
    }
    (query,) = load(written(tmp_path, record), "test", inputs=["user"])
    assert query.id == "7"
    assert query.documents == (Document("a", id="1", score=2.0, metadata={"x": 1}),)
    assert query.relevance == (0.5,)
    assert query.ideal == (1,)
    assert query.inputs == {"criteria": "recent", "user": "me"}


def test_grades_by_document_id(tmp_path):
    documents = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    record = {"query": "q", "documents": documents, "relevance": {"b": 1, "z": 2, "y": 0}}
    (query,) = load(written(tmp_path, record))
    assert query.relevance == (None, 1)
    assert query.ideal == (2,)


@pytest.mark.parametrize("key", ["relevance", "label"])
def test_grades_inside_the_documents(tmp_path, key):
    documents = [{"text": "A", key: True}, {"text": "B", key: "0"}, {"text": "C"}, "D"]
    (query,) = load(written(tmp_path, {"query": "q", "documents": documents}))
    assert query.relevance == (1, 0, None, None)


def test_no_grades_at_all(tmp_path):
    (query,) = load(written(tmp_path, {"query": "q", "documents": ["a"]}))
    assert not query.labelled


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{oops", "expected a JSON object, but"),
        ("[1]", r"expected a JSON object, got \[1\]"),
        ({"documents": []}, "expected a text as 'query', got only documents"),
        ({"query": "q", "hits": []}, "expected a list as 'documents', got only query, hits"),
        ({"query": "q", "documents": [3]}, "document 1: expected a text or an object, got 3"),
        ({"query": "q", "documents": [{"id": 1}]}, "document 1: expected a text as 'text'"),
        ({"query": "q", "documents": ["a"], "relevance": [1, 0]}, "grade for each of 1 documents"),
        ({"query": "q", "documents": ["a"], "relevance": ["x"]}, "expected a number, got 'x'"),
        ({"query": "q", "documents": ["a"], "relevance": 1}, "expected a list or object"),
        ({"query": "q", "documents": ["a"], "relevance": {"a": 1}}, "an id in every document"),
        (
            {"query": "q", "documents": [{"text": "a", "label": 1}], "relevance": [1]},
            "or in its documents, got both",
        ),
        ({"query": "q", "documents": [], "inputs": [1]}, "expected an object as 'inputs'"),
        ({"query": "q", "documents": [], "inputs": {"query": 1}}, "cannot be further inputs"),
    ],
)
def test_errors_name_the_line(tmp_path, record, message):
    path = written(tmp_path, {"query": "q", "documents": ["a"], "relevance": [1]}, record)
    with pytest.raises(DataError, match=rf"set\.jsonl, line 2.*{message}"):
        read_jsonl(path)


def test_a_missing_input_is_named(tmp_path):
    path = written(tmp_path, {"query": "q", "documents": []})
    with pytest.raises(DataError, match="criteria"):
        read_jsonl(path, inputs=["criteria"])


def test_two_lines_with_one_id_are_both_named(tmp_path):
    one = {"id": "a", "query": "q", "documents": []}
    path = written(tmp_path, one, {**one, "id": "b"}, one)
    with pytest.raises(DataError, match=r"line 3: the id 'a' is that of .*line 1, too"):
        load(path)


def test_a_blank_query_is_named_by_its_line(tmp_path):
    with pytest.raises(DataError, match="line 2: the query is blank"):
        load(written(tmp_path, {"query": "q", "documents": []}, {"query": " ", "documents": []}))


def test_broken_json_has_one_line_number(tmp_path):
    path = written(tmp_path, {"query": "q", "documents": []}, '{"query": oops}')
    with pytest.raises(DataError, match=r"line 2: .*Expecting value at column 11\.$"):
        load(path)


def test_the_keys_of_all_lines_are_known(tmp_path):
    one, two = {"query": "q", "documents": []}, {"query": "p", "documents": [], "labels": []}
    assert load(written(tmp_path, one, two)).record_keys == ("query", "documents", "labels")


def test_grades_of_documents_that_are_not_candidates_make_a_query_judged(tmp_path):
    line = {"query": "q", "documents": [{"id": "a", "text": "x"}], "relevance": {"b": 0}}
    assert load(written(tmp_path, line))[0].judged
