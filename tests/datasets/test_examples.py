"""Examples become a data set, and a data set survives the way there and back."""

from types import SimpleNamespace

import dspy
import pytest

from dspy_rerank.datasets import Dataset, Query, from_examples
from dspy_rerank.errors import DataError
from dspy_rerank.types import Document


def test_there_and_back():
    documents = (Document("a", id="1", score=0.5), Document("b"))
    query = Query("7", "q", documents, (2, None), inputs={"criteria": "new"}, ideal=(1,))
    data = Dataset("examples", (query,))
    assert from_examples(data.to_examples()) == data


def test_a_plain_example():
    example = dspy.Example(query="q", documents=["a", {"text": "b", "id": 3}], relevance=[1, 0.5])
    (query,) = from_examples([example])
    assert query.id == "1"
    assert query.documents == (Document("a"), Document("b", id="3"))
    assert query.relevance == (1, 0.5)
    assert query.inputs == {}


def test_any_object_without_labels():
    (query,) = from_examples([SimpleNamespace(query="q", documents=["a"])])
    assert query.relevance == (None,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": "q", "documents": "abc"}, "expected a list as 'documents'"),
        ({"query": "q"}, "expected a list as 'documents', got only query"),
        ({"documents": ["a"]}, "expected a text as 'query'"),
        ({"query": "q", "documents": ["a"], "relevance": []}, "a grade for each of 1 documents"),
        ({"query": "q", "documents": [1]}, "expected a text or an object"),
    ],
)
def test_what_cannot_be_read(fields, message):
    with pytest.raises(DataError, match=message):
        from_examples([dspy.Example(**fields)])
