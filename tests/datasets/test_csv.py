"""Tables are grouped by query, and errors name the line."""

import pytest

from dspy_rerank.datasets import load
from dspy_rerank.errors import DataError
from dspy_rerank.types import Document


def written(tmp_path, text, name="set.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig", newline="")
    return path


def test_rows_are_grouped_by_query(tmp_path):
    text = 'query,document,relevance\r\nq1,"a, with\nbreak",2\r\nq2,c,0.5\r\nq1,b,\r\n'
    first, second = load(written(tmp_path, text))
    assert (first.id, first.text, second.id) == ("1", "q1", "2")
    assert first.documents == (Document("a, with\nbreak"), Document("b"))
    assert first.relevance == (2, None)
    assert second.relevance == (0.5,)


def test_every_column_and_tabs(tmp_path):
    header = "query_id\tquery\tid\ttext\tscore\tlabel\tsplit\tcriteria\n"
    rows = "7\tq\td1\ta\t0.5\ttrue\tdev\tnew\n7\tq\td2\tb\t\tfalse\tdev\tnew\n"
    (query,) = load(written(tmp_path, header + rows, "set.tsv"), "dev", inputs=["criteria"])
    assert query.id == "7"
    assert query.documents == (Document("a", id="d1", score=0.5), Document("b", id="d2"))
    assert query.relevance == (1, 0)
    assert query.inputs == {"criteria": "new"}


def test_queries_of_one_text_stay_apart_by_id(tmp_path):
    text = "query_id,query,text,label\n1,q,a,1\n2,q,b,0\n"
    assert [query.id for query in load(written(tmp_path, text))] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question,document,relevance\n", r"line 1: expected the columns query, document"),
        ("", r"line 1: expected the columns .*got \[\]"),
        ("query,text,label\nq,a,yes\n", r"line 2: expected a number, got 'yes'"),
        ("query,text,label\nq,a\n", r"line 2: expected a cell for each"),
        ("query,text,label\nq,a,1,2\n", r"line 2: expected a cell for each"),
        ("query_id,query,text,label\n1,q,a,1\n1,p,b,1\n", r"line 3: \['query'\] differ .*line 2"),
        ('query,text,label\nq,"a"b,1\n', r"expected a table in UTF-8"),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, text))
