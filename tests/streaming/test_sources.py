"""Files of queries: every format gives the same queries, read as they are needed."""

import csv
import io
import json
import sys
from typing import NamedTuple

import pytest

from dspy_rerank.datasets import load
from dspy_rerank.documents import as_documents
from dspy_rerank.errors import DataError, InputError, MissingExtraError
from dspy_rerank.streaming import open_source

QUERIES = {"q1": "first query", "q2": "second query"}
TEXTS = {"d1": "one", "d2": "two", "d3": "three"}
RANKED = {"q1": ["d2", "d1"], "q2": ["d3", "d2", "d1"]}
RUN = "".join(
    f"{query} Q0 {name} {rank} {10 - rank} x\n"
    for query, names in RANKED.items()
    for rank, name in enumerate(names)
)
SGML = "<top>\n<num> Number: q1\n<title> first query\n<desc> x\n</top>\n<top>\n<num>q2</num>\n<title>second query</title></top>"  # noqa: E501
XML = '<topics><topic number="q1"><query>first query</query></topic><topic number="q2"><title>second query</title></topic></topics>'  # noqa: E501


def records():
    for query, text in QUERIES.items():
        documents = [{"id": name, "text": TEXTS[name]} for name in RANKED[query]]
        yield {"id": query, "query": text, "documents": documents}


def pairs():
    for query, text in QUERIES.items():
        for name in RANKED[query]:
            yield {"query_id": query, "query": text, "id": name, "document": TEXTS[name]}


def lines(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def table(path):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "query", "id", "document"])
        writer.writeheader()
        writer.writerows(pairs())
    return path


def collection(folder):
    lines(folder / "corpus.jsonl", [{"_id": name, "text": text} for name, text in TEXTS.items()])
    lines(folder / "queries.jsonl", [{"_id": name, "text": text} for name, text in QUERIES.items()])
    (folder / "first.run").write_text(RUN)
    return folder


def contents(source):
    return [
        (item.id, item.query, [(d.id, d.text) for d in as_documents(item.documents)])
        for item in source.items()
    ]


EXPECTED = [
    (query, text, [(name, TEXTS[name]) for name in RANKED[query]])
    for query, text in QUERIES.items()
]


def test_json_lines_a_table_and_a_folder_give_the_same(tmp_path):
    assert contents(open_source(lines(tmp_path / "q.jsonl", records()))) == EXPECTED
    assert contents(open_source(table(tmp_path / "q.csv"))) == EXPECTED
    assert contents(open_source(collection(tmp_path))) == EXPECTED


def test_parquet_is_read_nested_and_as_a_table(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(list(records())), tmp_path / "n.parquet")
    parquet.write_table(arrow.Table.from_pylist(list(pairs())), tmp_path / "t.parquet")
    assert contents(open_source(tmp_path / "n.parquet")) == EXPECTED
    assert contents(open_source(tmp_path / "t.parquet")) == EXPECTED
    assert open_source(tmp_path / "n.parquet").count() == 2


def test_labelled_parquet_is_a_data_set(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nested = [{**r, "relevance": list(range(len(r["documents"])))} for r in records()]
    flat = [{**pair, "relevance": place} for place, pair in enumerate(pairs())]
    parquet.write_table(arrow.Table.from_pylist(nested), tmp_path / "n.parquet")
    parquet.write_table(arrow.Table.from_pylist(flat), tmp_path / "t.parquet")
    assert [q.relevance for q in load(tmp_path / "n.parquet")] == [(0, 1), (0, 1, 2)]
    assert [q.relevance for q in load(tmp_path / "t.parquet")] == [(0, 1), (2, 3, 4)]
    bare = arrow.Table.from_pylist(list(pairs()))
    parquet.write_table(bare, tmp_path / "u.parquet")
    with pytest.raises(DataError, match="relevance"):
        load(tmp_path / "u.parquet")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("old.txt", SGML), ("new.xml", XML), ("coded.txt", "q1:first query\nq2:second query\n"),
        ("t.tsv", "q1\tfirst query\nq2\tsecond query\n"),
    ],
)  # fmt: skip
def test_topics_are_joined_with_a_run_and_a_collection(tmp_path, name, content):
    folder = collection(tmp_path)
    (folder / name).write_text(content)
    found = open_source(folder / name, run=folder / "first.run", collection=folder / "corpus.jsonl")
    assert contents(found) == EXPECTED


def test_depth_keeps_the_first_candidates(tmp_path):
    found = contents(open_source(collection(tmp_path), depth=1))
    assert [documents for _, _, documents in found] == [[("d2", "two")], [("d3", "three")]]


def test_further_inputs_come_along(tmp_path):
    rows = [{"query": "q", "documents": ["a"], "inputs": {"user": "x"}, "day": 3, "top_k": 1}]
    (item,) = open_source(lines(tmp_path / "q.jsonl", rows), inputs=["day"]).items()
    assert (item.inputs, item.top_k) == ({"user": "x", "day": 3}, 1)


def test_a_line_that_cannot_be_read_is_a_query_with_its_problem(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"query": "a", "documents": ["x"]}\n{oops\n\n{"query": "b"}\n')
    found = list(open_source(path).items())
    assert [item.id for item in found] == ["1", "2", "3"]
    assert "line 2" in str(found[1].problem)
    assert "documents" in str(found[2].problem)


def test_standard_input_is_json_lines(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"query": "a", "documents": ["x"]}\n'))
    assert contents(open_source("-")) == [("1", "a", [(None, "x")])]


def test_a_table_whose_queries_stand_apart_is_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("query,document\na,x\nb,y\na,z\n")
    items = open_source(path).items()
    assert next(items).query == "a"
    with pytest.raises(DataError, match=r"line 4.*sort"):
        list(items)


def test_a_document_that_the_collection_lacks_is_a_problem_of_its_query(tmp_path):
    folder = collection(tmp_path)
    (folder / "first.run").write_text(RUN + "q1 Q0 gone 9 0.1 x\n")
    first, second = open_source(folder).items()
    assert "gone" in str(first.problem)
    assert second.problem is None


class Scored(NamedTuple):
    query_id: str
    doc_id: str
    score: float


def registered(monkeypatch, name, *parts):
    """A collection of ir_datasets' own classes, which needs no download."""
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import base

    class Docs(base.BaseDocs):
        def docs_iter(self):
            return iter([base.GenericDoc(name, text) for name, text in TEXTS.items()])

        def docs_store(self):
            class Store:
                def get_many(self, names):
                    return {n: base.GenericDoc(n, TEXTS[n]) for n in names if n in TEXTS}

            return Store()

    class Queries(base.BaseQueries):
        def queries_iter(self):
            return iter([base.GenericQuery(name, text) for name, text in QUERIES.items()])

    class Judged(base.BaseQrels):
        def qrels_iter(self):
            return iter([base.GenericQrel("q1", "d1", 2)])

    class First(base.BaseScoredDocs):
        def scoreddocs_iter(self):
            rows = (line.split() for line in RUN.splitlines())
            return (Scored(row[0], row[2], float(row[4])) for row in rows)

    kinds = {"docs": Docs, "queries": Queries, "qrels": Judged, "scoreddocs": First}
    made = ir_datasets.Dataset(*(kinds[part]() for part in parts))
    monkeypatch.setitem(ir_datasets.registry._registered, name, made)


def test_collections_of_ir_datasets_go_by_their_id(monkeypatch):
    registered(monkeypatch, "tiny/all", "docs", "queries", "qrels", "scoreddocs")
    assert contents(open_source("ir_datasets:tiny/all")) == EXPECTED
    data = load("ir_datasets:tiny/all")
    assert [(q.id, q.relevance) for q in data] == [("q1", (None, 2))]


def test_ir_datasets_takes_another_run(monkeypatch, tmp_path):
    registered(monkeypatch, "tiny/bare", "docs", "queries")
    (tmp_path / "r.run").write_text(RUN)
    assert contents(open_source("ir_datasets:tiny/bare", run=tmp_path / "r.run")) == EXPECTED
    with pytest.raises(DataError, match="--run"):
        list(open_source("ir_datasets:tiny/bare").items())
    with pytest.raises(DataError, match="no qrels"):
        load("ir_datasets:tiny/bare")


def test_what_is_not_installed_or_not_known_says_so(monkeypatch):
    pytest.importorskip("ir_datasets")
    with pytest.raises(DataError, match="no such collection"):
        list(open_source("ir_datasets:no/such").items())
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match="pip install ir_datasets"):
        list(open_source("ir_datasets:tiny").items())


def test_parquet_without_its_extra_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "q.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"dspy-rerank\[parquet\]"):
        open_source(tmp_path / "q.parquet")


@pytest.mark.parametrize(
    ("name", "options", "error", "says"),
    [
        ("gone.jsonl", {}, DataError, "no such file"),
        ("t.txt", {}, InputError, "topics"),
        ("t.txt", {"collection": "c.jsonl"}, InputError, "--run"),
        ("q.jsonl", {"run": "r.run"}, InputError, "a run goes with"),
        ("q.jsonl", {"depth": -1}, InputError, "depth"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, name, options, error, says):
    (tmp_path / "t.txt").write_text(SGML)
    (tmp_path / "q.jsonl").write_text("")
    with pytest.raises(error, match=says):
        list(open_source(tmp_path / name, **options).items())


def test_a_blank_query_is_a_problem_with_its_line_and_its_own_id(tmp_path):
    (tmp_path / "q.jsonl").write_text('\n{"id": "x", "query": " ", "documents": ["a"]}\n')
    (item,) = open_source(tmp_path / "q.jsonl").items()
    assert item.id == "x"
    assert "line 2: the query is blank" in str(item.problem)
    (tmp_path / "q.csv").write_text("query_id,query,document\ny, ,a\n")
    (item,) = open_source(tmp_path / "q.csv").items()
    assert (item.id, "line 2: the query is blank" in str(item.problem)) == ("y", True)
