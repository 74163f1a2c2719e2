"""The name or path decides who reads, and what cannot be read is told what can."""

import json

import pytest

from dspy_rerank.datasets import _shipped, check, load
from dspy_rerank.errors import DataError, InputError

HIT = {"content": "passage", "qid": 3, "docid": "d1", "score": 1.5}


def test_what_is_not_there_is_told_the_shipped_names(tmp_path):
    with pytest.raises(DataError, match=r"nothing: no such file or folder.*shipped"):
        load(tmp_path / "nothing")


def test_an_unknown_format_is_told_the_known_ones(tmp_path):
    (tmp_path / "x.docx").touch()
    for path in (tmp_path / "x.docx", tmp_path):
        with pytest.raises(DataError, match=r"(?s)NovelEval.*BEIR.*\.jsonl.*\.csv"):
            load(path)


def test_an_option_of_no_use_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"query": "q", "documents": []}')
    with pytest.raises(InputError, match="run is of no use"):
        load(path, run="x.run")


def test_a_shipped_set_is_found_by_name(tmp_path, monkeypatch):
    folder = tmp_path / "ostrel"
    folder.mkdir()
    files = {
        "corpus.jsonl": '{"id": "d", "title": "T", "text": "X", "type": "faq"}',
        "queries.jsonl": '{"id": "q", "text": "one", "topic": "t", "split": "test"}',
        "qrels.txt": "q 0 d 1",
        "bm25.run": "q Q0 d 1 1.0 bm25",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(_shipped, "ROOTS", (tmp_path / "none", tmp_path))
    data = load("ostrel", "test")
    assert data.name == "ostrel"
    assert data[0].documents[0].text == "T\nX"
    assert _shipped.shipped_names() == ("ostrel",)


def test_the_set_in_this_repository_is_complete():
    data = load("ostrel")
    assert {len(query.documents) for query in data} == {12}
    assert all(query.labelled for query in data)
    assert {"train", "validation", "test"} <= set(data.splits)
    assert not {problem.kind for problem in check(data)} & {"leak", "contradiction", "bad label"}


def hits(tmp_path, record, layout):
    text = {
        "data.json": json.dumps([record]),
        "bm25_dl19_top100.jsonl": json.dumps(record) + "\n",
        "qrels.txt": "3 Q0 d1 2\n3 Q0 d9 1\n3 Q0 d8 0\n",
    }
    names = {"noveleval": ("data.json", "qrels.txt")}
    names["dl19"] = ("bm25_dl19_top100.jsonl", "id_rating_19.txt")
    for name in names[layout]:
        (tmp_path / name).write_text(text.get(name, text["qrels.txt"]))
    return tmp_path


@pytest.mark.parametrize("layout", ["noveleval", "dl19"])
def test_hits_with_their_judgments(tmp_path, layout):
    (query,) = load(hits(tmp_path, {"query": "q", "hits": [HIT]}, layout))
    assert (query.id, query.text, query.documents[0].id) == ("3", "q", "d1")
    assert (query.relevance, query.ideal) == ((2,), (1,))


@pytest.mark.parametrize("layout", ["noveleval", "dl19"])
@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"query": "q"}, "expected a list as 'hits'"),
        ({"query": "q", "hits": []}, "hits with one 'qid'"),
        ({"query": "q", "hits": ["x"]}, "expected objects as hits"),
        ({"query": "q", "hits": [HIT, HIT | {"qid": 4}]}, "the same in all"),
        ({"query": "q", "hits": [{"qid": 1}]}, "expected a text as 'content'"),
        ({"hits": [HIT]}, "expected a text as 'query'"),
    ],
)
def test_hits_that_cannot_be_read(tmp_path, layout, record, message):
    with pytest.raises(DataError, match=rf"(line|query) 1.*{message}"):
        load(hits(tmp_path, record, layout))


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_a_json_file_that_is_no_list(tmp_path, text):
    folder = hits(tmp_path, {}, "noveleval")
    (folder / "data.json").write_text(text)
    with pytest.raises(DataError, match=r"data\.json: expected a list"):
        load(folder)
