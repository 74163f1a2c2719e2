"""Examples become a data set, and a data set survives the way there and back."""

import dspy
import pytest

import dspy_rerank as dr
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


def test_a_query_that_counts_without_a_judged_candidate_still_counts():
    """Of its candidates nobody has judged any; of the documents, someone has."""
    documents = (Document("a"), Document("b"))
    found = Query("1", "q", documents, (1, 0))
    missed = Query("2", "r", documents, (None, None), judged=True)
    data = Dataset("examples", (found, missed, Query("3", "s", documents, (None, None))))
    examples = data.to_examples()
    assert [query.judged for query in from_examples(examples)] == [True, True, False]
    assert all("judged" not in example.inputs() for example in examples)
    ranker = dr.ScoreSort(dr.FunctionJudge(lambda query, passages: 1, "pointwise"))
    with pytest.warns(UserWarning, match="1 of 3 queries without labels"):
        counts = [dr.evaluate(ranker, given).queries for given in (data, examples)]
    assert counts == [2, 2]


def test_an_input_may_be_called_judged():
    query = Query("1", "q", (Document("a"),), (1,), inputs={"judged": "by experts"})
    assert from_examples(Dataset("examples", (query,)).to_examples())[0].inputs == query.inputs
