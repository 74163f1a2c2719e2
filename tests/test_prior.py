"""First-stage evidence: ranks, scores, and scores that cannot be used."""

from itertools import pairwise

import pytest

from dspy_rerank.prior import blend, first_stage, zscores
from dspy_rerank.types import Document


def documents(*scores):
    return [Document(str(i), score=score) for i, score in enumerate(scores)]


def test_ranks_count_by_their_logarithm():
    evidence = first_stage(documents(None, None, None, None))
    gaps = [a - b for a, b in pairwise(evidence)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert sum(evidence) == pytest.approx(0)


def test_scores_are_used_where_all_have_one():
    assert first_stage(documents(1.0, 3.0, 2.0), "score") == pytest.approx(zscores([1, 3, 2]))


@pytest.mark.parametrize("odd", [None, float("nan"), float("inf"), -float("inf")])
def test_one_score_that_is_no_number_makes_ranks_speak(odd):
    given = documents(1.0, odd, 2.0)
    assert first_stage(given, "score") == first_stage(given, "rank")


@pytest.mark.parametrize("count", [0, 1, 4])
def test_equal_scores_say_no_more_than_ranks(count):
    given = documents(*[2.0] * count)
    assert first_stage(given, "score") == first_stage(given, "rank")


def test_unknown_scores_stay_unknown():
    mixed = blend([1.0, None, 3.0], [0.0, 0.0, 0.0], 0.5)
    assert mixed[1] is None
    assert mixed[0] < mixed[2]
