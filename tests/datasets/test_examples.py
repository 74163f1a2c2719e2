"""Examples become a data set, and a data set survives the way there and back."""

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


@pytest.mark.parametrize("kind", [dict, dspy.Example])
def test_a_plain_example(kind):
    documents = ["a", {"text": "b", "id": "3"}]
    (query,) = from_examples([kind(query="q", documents=documents, relevance=[1, 0.5])])
    assert [(d.text, d.id) for d in query.documents] == [("a", None), ("b", "3")]
    assert query.relevance == (1, 0.5)
    assert query.inputs == {}


@pytest.mark.parametrize("name", ["query", "documents"])
def test_a_missing_field_is_named(name):
    fields = {"query": "q", "documents": ["a"], "relevance": [1]}
    del fields[name]
    with pytest.raises(DataError, match=name):
        from_examples([dspy.Example(**fields)])


def test_every_document_has_a_grade():
    example = dspy.Example(query="q", documents=["a"], relevance=[])
    with pytest.raises(DataError, match="a grade for each of 1 documents"):
        from_examples([example])
