"""Rerankers by the names of their classes."""

import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.named import reranker_named
from dspy_rerank.sorters import SORTERS


def kinds(sorter, judge):
    found = reranker_named(sorter, judge)
    return type(found).__name__, type(found.judge).__name__


@pytest.mark.parametrize(
    ("sorter", "judge", "expected"),
    [
        ("ScoreSort", "PointwiseJudge", ("ScoreSort", "PointwiseJudge")),
        (None, "PointwiseJudge", ("ScoreSort", "PointwiseJudge")),
        (None, "PairwiseJudge", ("TopDown", "PairwiseJudge")),
        (None, "ListwiseJudge", ("TopDown", "ListwiseJudge")),
        ("ScoreSort", None, ("ScoreSort", "PointwiseJudge")),
        ("MergeSort", None, ("MergeSort", "PairwiseJudge")),
        ("Survivor", None, ("Survivor", "SetwiseJudge")),
        ("SlidingWindow", None, ("SlidingWindow", "ListwiseJudge")),
    ],
)
def test_one_name_finds_the_other(sorter, judge, expected):
    assert kinds(sorter, judge) == expected


@pytest.mark.parametrize("sorter", [s.__name__ for s in SORTERS if s.__name__ != "Consensus"])
def test_every_sorter_has_a_judge_that_it_takes(sorter):
    assert kinds(sorter, None)[0] == sorter


def test_settings_are_read_as_literals():
    found = reranker_named("TopDown(window=10, rounds=2)", "ListwiseJudge(votes=3)")
    assert (found.settings["window"], found.settings["rounds"]) == (10, 2)
    assert found.judge.settings["votes"] == 3


@pytest.mark.parametrize(
    ("sorter", "judge", "says"),
    [
        ("Quicksort", None, "'Quicksort' is none of ScoreSort"),
        (None, "Panel", "'Panel' is none of PointwiseJudge"),
        ("Consensus", None, "'Consensus' is none of"),
        ("TopDown(windo=3)", None, "unknown option 'windo'"),
        ("TopDown(window=open)", None, "expected the name of a class"),
        ("TopDown(3)", None, "expected the name of a class"),
        ("TopDown(", None, "expected the name of a class"),
        ("", "", "expected the name of a class"),
        ("ScoreSort", "ListwiseJudge", "ScoreSort goes with PointwiseJudge; ListwiseJudge goes"),
        ("TourRank", "PairwiseJudge", "TourRank goes with SetwiseJudge or ListwiseJudge"),
    ],
)
def test_what_does_not_fit_says_what_does(sorter, judge, says):
    with pytest.raises(InputError) as found:
        reranker_named(sorter, judge)
    assert says in str(found.value)
