"""Which queries count in means, and what is said of the others."""

import pytest

from dspy_rerank.datasets import Dataset, Query
from dspy_rerank.errors import DataError
from dspy_rerank.types import Document
from dspy_rerank.unlabelled import measurable, unlabelled, words


def query(name, grade):
    return Query(name, f"query {name}", (Document("a"),), (grade,))


MIXED = Dataset("mixed", (query("1", 0), query("2", None), query("3", 2)), ("query", "relevence"))


def test_queries_graded_0_count_and_those_without_grades_do_not():
    assert unlabelled(MIXED) == ("2",)
    assert [each.id for each in measurable(MIXED)] == ["1", "3"]


def test_the_words_name_queries_and_keys_that_mean_nothing():
    said = words(unlabelled(MIXED), MIXED)
    assert "1 of 3 queries without labels is left out of all means (2)" in said
    assert said.endswith("keys that were not read as labels: relevence")
    many = Dataset("many", tuple(query(str(n), None) for n in range(9)))
    assert "9 of 9 queries without labels are left out" in words(unlabelled(many), many)
    assert "(0, 1, 2, 3, 4, ...)" in words(unlabelled(many), many)


def test_a_set_without_labels_says_what_came_and_what_is_expected():
    with pytest.raises(DataError, match=r"none of 1 query .* have query, labels; expected relev"):
        measurable(Dataset("none", (query("1", None),), ("query", "labels")))
    assert len(measurable(Dataset("empty", ()))) == 0
