"""A data set is a value: it splits, samples and cuts without changing, and knows its content."""

from dataclasses import replace

import pytest

from dspy_rerank.datasets import Dataset, Query
from dspy_rerank.errors import DataError, InputError
from dspy_rerank.types import Document


def query(number, *, text=None, relevance=(1, 0), split="", **fields):
    documents = tuple(Document(f"passage {number}-{i}") for i in range(len(relevance)))
    text = text or f"question {number}"
    return Query(str(number), text, documents, tuple(relevance), split=split, **fields)


def dataset(*queries):
    return Dataset("tiny", queries or tuple(query(number) for number in range(10)))


def test_it_is_a_sequence():
    data = dataset()
    assert len(data) == len(list(data)) == 10
    assert data[3].id == "3"
    assert [q.id for q in data[:2]] == ["0", "1"]


def test_it_reads_well():
    data = dataset(query(1, split="train"), query(2, split="test", relevance=[None]))
    assert repr(data) == "<Dataset 'tiny': 2 queries x 1-2, 1 labelled, train 1, test 1>"
    assert repr(Dataset("none", ())) == "<Dataset 'none': 0 queries x 0, 0 labelled>"


def test_ids_are_distinct_and_every_document_has_a_grade():
    with pytest.raises(DataError, match="distinct ids"):
        dataset(query(1), query(1))
    with pytest.raises(DataError, match="a grade for each of 2 documents"):
        replace(query(1), relevance=(1,))


def test_assigned_splits_are_found_by_name():
    data = dataset(query(1, split="train"), query(2, split="test"), query(3, split="train"))
    assert data.splits == ("train", "test")
    assert [q.id for q in data.part("train")] == ["1", "3"]
    with pytest.raises(DataError, match="no split 'dev'; it has train, test"):
        data.part("dev")
    with pytest.raises(DataError, match=r"it has none \(use \.split"):
        dataset().part("train")


def test_random_splits_are_disjoint_and_complete_and_repeat():
    parts = dataset().split(0.5, 0.2, 0.3, seed=1)
    assert [len(part) for part in parts] == [5, 2, 3]
    assert sorted(q.id for part in parts for q in part) == [str(n) for n in range(10)]
    assert parts == dataset().split(0.5, 0.2, 0.3, seed=1)
    assert parts != dataset().split(0.5, 0.2, 0.3, seed=2)


def test_queries_of_the_same_text_stay_together():
    data = dataset(
        *(query(n, text=f"Same  {n % 5}" if n % 2 else f"same {n % 5}") for n in range(10))
    )
    for seed in range(5):
        a, b = data.split(0.4, 0.6, seed=seed)
        assert {q.text.lower().split()[1] for q in a}.isdisjoint(q.text.split()[1] for q in b)
        assert len(a) == 4


@pytest.mark.parametrize("fractions", [(), (0.5, 0.6), (0.0, 1.0), (-0.1,)])
def test_fractions_have_to_be_some(fractions):
    with pytest.raises(InputError, match="fractions"):
        dataset().split(*fractions)


def test_a_sample_keeps_the_order_and_repeats():
    sample = dataset().sample(4, seed=5)
    ids = [int(q.id) for q in sample]
    assert len(ids) == 4
    assert ids == sorted(ids)
    assert sample == dataset().sample(4, seed=5)
    assert dataset().sample(99) == dataset()


def test_a_filter_keeps_what_it_says():
    assert [q.id for q in dataset().filter(lambda q: int(q.id) > 7)] == ["8", "9"]


def test_cut_documents_stay_in_the_ideal():
    cut = dataset(query(1, relevance=(0, 2, None, 0, 1), ideal=(3,))).cut(1)[0]
    assert cut.relevance == (0,)
    assert cut.ideal == (3, 2, 1)
    with pytest.raises(InputError, match="depth"):
        dataset().cut(-1)


def test_examples_have_inputs_and_labels():
    data = dataset(query(1, relevance=(1, None), inputs={"criteria": "recent"}, ideal=(2,)))
    example = data.to_examples()[0]
    assert set(example.inputs().keys()) == {"query", "documents", "criteria"}
    assert example.documents == list(data[0].documents)
    assert example.relevance == [1, None]
    assert (example.ideal, example.query_id) == ([2], "1")


def test_the_fingerprint_follows_the_content_and_nothing_else():
    data = dataset()
    same = Dataset("other name", tuple(query(n, split="x", relevance=(1.0, 0)) for n in range(10)))
    assert data.fingerprint == same.fingerprint
    assert data.fingerprint[:12] == "4a47ed5f990f"
    others = [
        data[:9],
        data[::-1],
        dataset(*data[:9], query(9, relevance=(0, 0))),
        dataset(*data[:9], query(9, ideal=(1,))),
        dataset(*data[:9], query(9, inputs={"criteria": "x"})),
        dataset(*data[:9], query(9, text="other")),
    ]
    assert len({other.fingerprint for other in [data, *others]}) == 7


def test_a_query_is_judged_by_any_grade_and_stays_so_when_it_is_cut():
    documents = (Document("a"), Document("b"))
    assert not Query("1", "q", documents, (None, None)).judged
    assert Query("1", "q", documents, (None, 0)).judged
    assert Query("1", "q", documents, (None, None), ideal=(2,)).judged
    assert Query("1", "q", documents, (None, 0)).cut(1).judged
