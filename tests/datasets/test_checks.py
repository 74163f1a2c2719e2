"""Every kind of problem is found, and only where there is one."""

import math

import pytest

from dspy_rerank.datasets import Dataset, Query, check, overlap
from dspy_rerank.types import Document


def query(name, text, grades, split=""):
    """A query whose documents are given as text -> grade, or pairs where texts repeat."""
    pairs = list(grades.items()) if isinstance(grades, dict) else grades
    documents = tuple(Document(document) for document, _ in pairs)
    return Query(name, text, documents, tuple(grade for _, grade in pairs), split=split)


FINE = query("1", "one", {"a": 1, "b": 0}, "train")


def kinds(*queries):
    return [problem.kind for problem in check(Dataset("tiny", queries))]


def test_a_clean_set_has_no_problems():
    assert check(Dataset("tiny", (FINE, query("2", "two", {"a": 0, "b": 2}, "test")))) == ()
    assert check(Dataset("none", ())) == ()


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (query("2", "One ", {"c": 1, "d": 0}, "train"), "repeated query"),
        (query("2", " ONE", {"c": 1, "d": 0}, "test"), "leak"),
        (query("2", "two", [("a", 1), ("A", 1), ("b", 0)]), "repeated document"),
        (query("2", "two", {"a": 0, "b": 0}), "nothing relevant"),
        (Query("2", "two", (Document("a"),), (None,), ideal=(1,)), "nothing relevant"),
        (Query("2", "two", (Document("a"),), (None,), judged=True), "nothing relevant"),
        (
            Query("2", "two", (Document("a", id="x"), Document("b", id="x")), (0, 1)),
            "repeated id",
        ),
        (query("2", "two", {"a": None}), "unlabelled"),
        (query("2", "two", {"a": -1, "b": 1}), "bad label"),
        (query("2", "two", {"a": math.nan, "b": 1}), "bad label"),
        (query("2", "two", {str(n): 0 for n in range(200)} | {"a": 1}), "imbalance"),
    ],
)
def test_each_kind_is_found(other, kind):
    assert kinds(FINE, other) == [kind]


def test_contradictions_within_a_query_and_between_queries():
    assert kinds(query("1", "one", [("a", 1), ("a", 0)])) == ["contradiction", "repeated document"]
    between = (FINE, query("2", "one", {"a": 0, "c": 1}, "train"))
    first = check(Dataset("tiny", between))[0]
    assert (first.kind, first.queries) == ("contradiction", ("1", "2"))
    assert str(first) == "contradiction: 'a' has the grades [0, 1] for the same query"


def test_overlap_of_two_sets():
    test = Dataset("test", (query("9", "ONE", {}), query("8", "new", {})))
    assert overlap(test, Dataset("train", (FINE,))) == ("ONE",)


def test_one_document_twice_is_no_repeated_id():
    twice = (Document("a", id="x"), Document("A ", id="x"), Document("b"), Document("c"))
    assert kinds(FINE, Query("2", "two", twice, (1, 1, 0, 0))) == ["repeated document"]
