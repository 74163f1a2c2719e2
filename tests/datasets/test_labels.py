"""Labels that are not grades."""

import json

import dspy
import pytest

from dspy_rerank import datasets
from dspy_rerank.errors import DataError


def grades(**labels):
    documents = [{"id": name, "text": f"text {name}"} for name in "abcd"]
    example = dspy.Example(query="q", documents=documents, **labels)
    return datasets.from_examples([example])[0].relevance


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"preferences": [(1, 0)]}, (0, 1, None, None)),
        ({"preferences": [("b", "a"), ("c", "b")]}, (0, 1, 2, None)),
        ({"preferences": [(0, 3), (1, 3), (0, 1)]}, (2, 1, None, 0)),
        ({"answer": 2}, (0, 0, 1, 0)),
        ({"answer": "d"}, (0, 0, 0, 1)),
        ({"answer": ["a", "d"]}, (1, 0, 0, 1)),
        ({"relevance": [0, 1, 0, 2], "answer": "42 km"}, (0, 1, 0, 2)),
        ({"relevance": [True, False, None, True]}, (True, False, None, True)),
    ],
)
def test_preferences_and_right_answers_become_grades(labels, expected):
    assert grades(**labels) == expected


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({"preferences": [(0, 1), (1, 0)]}, "contradict each other: documents \\[0, 1\\]"),
        ({"preferences": [(0, 0)]}, "contradict"),
        ({"preferences": [(0, 1, 2)]}, "expected pairs"),
        ({"preferences": [("a", "x")]}, "got 'x'"),
        ({"answer": 4}, "from 0 to 3"),
        ({"answer": 1, "preferences": [(0, 1)]}, "preferences and answer"),
    ],
)
def test_labels_that_make_no_sense_say_so(labels, says):
    with pytest.raises(DataError, match=says):
        grades(**labels)


def test_lines_of_a_file_may_have_them(tmp_path):
    path = tmp_path / "l.jsonl"
    rows = [
        {"query": "p", "documents": ["x", "y"], "preferences": [[1, 0]]},
        {"query": "a", "documents": ["x", "y"], "answer": 1},
        {"query": "b", "documents": ["x", "y"], "relevance": [True, False]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [query.relevance for query in datasets.load(path)] == [(0, 1), (0, 1), (1, 0)]
    path.write_text(json.dumps({"query": "p", "documents": ["x", "y"], "answer": "z"}))
    with pytest.raises(DataError, match=r"line 1.*got 'z'"):
        datasets.load(path)
