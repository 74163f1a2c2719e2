"""The picture of a replay shows the answers about the documents in it."""

import re

import pytest

import dspy_rerank as dr
from dspy_rerank.ranking import assemble
from dspy_rerank.seeing.replayed import COLUMNS, shown
from dspy_rerank.testing import oracle_judge
from dspy_rerank.types import Judgment

pytest.importorskip("matplotlib")


def words(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.to_svg())


def made(n, *judgments):
    documents = [dr.Document(f"text {i}") for i in range(n)]
    return assemble("query", documents, range(n), judgments=judgments)


def test_cells_hold_the_place_that_an_answer_gave():
    order = Judgment("listwise", (0, 1, 2), "ok", order=(2, 0, 1))
    drawn = words(made(3, order).replay().plot())
    after = drawn[drawn.index("text 2") + 1 :]
    number, *places = [text for text in after if text in {"1", "2", "3"}][:4]
    assert (number, places) == ("1", ["1", "2", "3"])


@pytest.mark.parametrize(
    ("judgment", "sign"),
    [
        (Judgment("pairwise", (0, 1), "ok", tie=True), "="),
        (Judgment("pairwise", (0, 1), "unknown"), "?"),
    ],
)
def test_ties_and_unknowns_have_a_sign_of_their_own(judgment, sign):
    assert words(made(2, judgment).replay().plot()).count(sign) == 2


def test_only_answers_about_the_documents_shown_are_columns():
    about = Judgment("pairwise", (0, 1), "ok", best=0)
    other = Judgment("pairwise", (2, 3), "ok", best=2)
    replay = made(4, other, about, other).replay()
    assert [step.number for step in shown(replay.steps, replay.ranking.items[:2])] == [2]
    notes = words(replay.plot(2))
    assert "the first 2 of 4 documents; 1 of 3 answers shown" in notes


def test_of_very_many_answers_the_last_are_shown():
    steps = made(2, *[Judgment("pairwise", (0, 1), "ok", best=0)] * 500).replay()
    assert [s.number for s in shown(steps.steps, steps.ranking.items)] == [
        *range(501 - COLUMNS, 501)
    ]
    assert f"{COLUMNS} of 500 answers shown" in words(steps.plot())


def test_scores_of_pointwise_answers_are_shown_with_the_gaps():
    judge = oracle_judge({"a": 1, "b": 2}, "pointwise")
    ranking = dr.ScoreSort(judge)(query="query", documents=["a", "b"]).ranking
    drawn = words(ranking.replay().plot())
    assert "score ahead of the next" in drawn
    assert "answers about neighbours" not in drawn


def test_a_ranking_without_answers_says_so():
    assert "the judge gave no answers" in words(made(2).replay().plot())
