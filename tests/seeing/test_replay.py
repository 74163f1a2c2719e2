"""Which answers decided: votes about neighbours, overruled answers, what was only inferred."""

import sys

import dspy_rerank as dr
from dspy_rerank.ranking import assemble
from dspy_rerank.testing import oracle_judge
from dspy_rerank.types import Judgment

TEXTS = ["a", "b", "c", "d"]


def made(order, *judgments, **fields):
    return assemble("query", [dr.Document(t) for t in TEXTS], order, judgments=judgments, **fields)


def won(winner, loser):
    return Judgment("pairwise", (winner, loser), "ok", best=winner)


def test_answers_about_neighbours_are_counted():
    ranking = made([0, 1, 2, 3], won(0, 1), won(1, 0), won(0, 1), won(2, 1), won(0, 3))
    borders = ranking.replay().borders
    assert [(b.confirming, b.opposing) for b in borders] == [((1, 3), (2,)), ((), (4,)), ((), ())]
    assert [border.verdict for border in borders] == ["confirmed", "overruled", "inferred"]


def test_as_many_for_as_against_is_split():
    assert made([0, 1], won(0, 1), won(1, 0)).replay().borders[0].verdict == "split"


def test_a_tie_and_an_unknown_decide_nothing():
    tie = Judgment("pairwise", (0, 1), "ok", tie=True)
    (border,) = made([0, 1], tie, Judgment("pairwise", (0, 1), "unknown")).replay().borders
    assert (border.confirming, border.opposing, border.undecided) == ((), (), (1,))
    assert border.verdict == "inferred"


def test_a_choice_says_nothing_about_those_not_chosen():
    choice = Judgment("setwise", (0, 1, 2), "ok", best=0)
    verdicts = [b.verdict for b in made([0, 1, 2], choice).replay().borders]
    assert verdicts == ["confirmed", "inferred"]


def test_an_answer_knows_in_how_many_pairs_it_was_overruled():
    order = Judgment("listwise", (0, 1, 2), "ok", order=(0, 2, 1))
    (step,) = made([0, 1, 2, 3], order).replay().steps
    assert (step.agrees, step.opposes) == (2, 1)


def test_documents_that_were_cut_off_do_not_count():
    (step,) = made([0], won(0, 1)).replay().steps
    assert (step.agrees, step.opposes) == (0, 0)


def test_every_border_of_a_sort_without_noise_is_confirmed():
    judge = oracle_judge(dict(zip(TEXTS, [1, 3, 2, 0], strict=True)), "pairwise")
    ranking = dr.MergeSort(judge)(query="query", documents=TEXTS).ranking
    replay = ranking.replay()
    assert {border.verdict for border in replay.borders} == {"confirmed"}
    assert sum(step.opposes for step in replay.steps) == 0


def test_pointwise_answers_leave_it_to_scores():
    judge = oracle_judge(dict(zip(TEXTS, [1, 3, 2, 0], strict=True)), "pointwise")
    replay = dr.ScoreSort(judge)(query="query", documents=TEXTS).ranking.replay()
    assert [border.gap for border in replay.borders] == [1, 1, 1]
    assert "scores decide" in replay.summary()
    assert str(replay).splitlines()[1].split()[:6] == ["1", "2", "0", "0", "1.000", "scores"]


def test_text_and_html_need_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    replay = made([0, 1, 2, 3], won(0, 1), degraded=True, reasons=("<cut>",)).replay()
    assert "1 confirmed, 2 inferred" in str(replay)
    assert "DEGRADED: &lt;cut&gt;" in replay._repr_html_()
    assert "confirmed" in replay._repr_html_()
