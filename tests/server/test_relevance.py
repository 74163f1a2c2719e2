"""The number in [0, 1]: a fixed rule that keeps the order, said by name."""

from itertools import pairwise

import pytest

import dspy_rerank as dr
from dspy_rerank.ranking import assemble
from dspy_rerank.server.answers import public_note, public_reason
from dspy_rerank.server.relevance import relevance
from dspy_rerank.testing import scripted_lm

NUMBERS = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")


def ranking(scores, **fields):
    documents = [dr.Document(str(score)) for score in scores]
    return assemble("q", documents, range(len(scores)), scores=scores, **fields)


@pytest.mark.parametrize(
    ("reranker", "evidence", "scores", "rule", "expected"),
    [
        (dr.ScoreSort(dr.PointwiseJudge()), "generate", [3.0, 1.5, 0.0], "grade", [1, 0.5, 0]),
        (
            dr.ScoreSort(dr.PointwiseJudge(scale=(1, 5))), "generate",
            [5.0, 2.0], "grade", [1, 0.25],
        ),
        (
            dr.ScoreSort(dr.PointwiseJudge("query, passage -> relevant: bool")), "logprobs",
            [0.9, 0.1], "grade", [0.9, 0.1],
        ),
        (
            dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")), "likelihood",
            [0.0, -1.0, -2000.0], "likelihood", [1, 0.367879, 0],
        ),
        (dr.ScoreSort(dr.PointwiseJudge(), prior=0.5), "", [0.0, -900.0], "logistic", [0.5, 0]),
        (dr.ScoreSort(NUMBERS), "function", [900.0, 0.0], "logistic", [1, 0.5]),
        (dr.AllPairs(dr.PairwiseJudge()), "generate", [1.0, 0.25], "wins", [1, 0.25]),
        (dr.TopDown(dr.ListwiseJudge()), "generate", [0.0, 0.0], "logistic", [0.5, 0.5]),
        (dr.MergeSort(dr.PairwiseJudge()), "generate", [None, None], "rank", [1, 0.5]),
        (dr.ScoreSort(dr.PointwiseJudge()), "generate", [3.0, None], "rank", [1, 0.5]),
        (dr.ScoreSort(dr.PointwiseJudge()), "generate", [1.0, 3.0], "rank", [1, 0.5]),
        (dr.ScoreSort(NUMBERS), "function", [float("inf"), 1.0], "rank", [1, 0.5]),
        (dr.ScoreSort(NUMBERS), "function", [], "logistic", []),
    ],
)  # fmt: skip
def test_every_kind_of_score_has_its_rule(reranker, evidence, scores, rule, expected):
    said = relevance(ranking(scores, evidence=evidence), reranker)
    assert said.rule == rule
    assert said.values == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "sorter",
    [dr.ScoreSort, dr.AllPairs, dr.MergeSort, dr.HeapSort, dr.SlidingWindow, dr.TopDown,
     dr.TourRank, dr.Tournament, dr.Survivor, dr.TDPart, dr.PRPSliding],
)  # fmt: skip
def test_relevance_falls_with_the_rank_whatever_the_sorter(sorter):
    kinds = ("pointwise", "listwise", "setwise", "pairwise")
    kind = next(kind for kind in kinds if kind in sorter.KINDS)
    grades = {f"text {place}": float(place * 7 % 12) for place in range(12)}
    reranker = sorter(dr.testing.oracle_judge(grades, kind))
    whole = reranker(query="q", documents=list(grades)).ranking
    said = relevance(whole, reranker)
    assert all(0 <= value <= 1 for value in said.values)
    assert all(a >= b for a, b in pairwise(said.values))


def test_a_real_judge_of_grades_is_on_its_scale():
    reranker = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    reranker.set_lm(scripted_lm(lambda prompt: "3" if "good" in prompt else "0"))
    found = reranker(query="q", documents=["bad", "good"]).ranking
    assert relevance(found, reranker) == ((1.0, 0.0), "grade")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("LMAuthError: the key sk-123 is wrong", "the language model failed (LMAuthError)"),
        ("max_calls=3 was reached", "max_calls=3 was reached"),
        ("deadline=0.5s was reached", "deadline=0.5s was reached"),
    ],
)
def test_a_providers_words_are_not_passed_on(reason, said):
    assert public_reason(reason) == said


def test_a_providers_words_are_cut_off_a_note():
    note = "evidence='logprobs', but 1 of 1 answers have none: your key sk-123 may not have them"
    assert public_note(note) == "evidence='logprobs', but 1 of 1 answers have none"
