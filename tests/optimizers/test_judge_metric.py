"""The metric on judgment examples: scores, calling conventions and feedback."""

import copy

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.optimizers import JudgeMetric, judgment_examples
from tests.optimizers.builders import labelled

GRADES = (0, 3, 1)
TEXTS = ("nothing here", "the tram was rebuilt. Old news first.", "a tram")


def example(judge, places, gold):
    from dspy_rerank.optimizers.examples import Labelled

    texts = tuple(TEXTS[p] for p in places)
    grades = tuple(float(GRADES[p]) for p in places)
    made = judge.example("tram", texts, gold)
    return Labelled(made, max(grades), "q", grades, texts, "tram")


def scored(judge, places, gold, answer, **options):
    item = example(judge, places, gold)
    metric = JudgeMetric(judge, [item], **options)
    verdict = metric.verdict(item.example, dspy.Prediction(**{judge.roles.answer: answer}))
    return verdict.score, verdict.feedback


def gold(kind, places, **values):
    return dr.types.Judgment(kind, tuple(range(len(places))), "ok", **values)


@pytest.mark.parametrize(("answer", "score"), [("3", 1.0), ("1.5", 0.5), ("0", 0.0), ("?", 0.0)])
def test_a_grade_loses_its_distance_to_the_label(answer, score):
    judge = dr.PointwiseJudge()
    assert scored(judge, [1], gold("pointwise", [1], score=3.0), answer)[0] == score


@pytest.mark.parametrize(("answer", "score"), [("B", 1.0), ("Tie", 0.5), ("A", 0.0), ("C?", 0.0)])
def test_a_preference_is_exact_and_a_tie_worth_half(answer, score):
    judge = dr.PairwiseJudge()
    assert scored(judge, [0, 1], gold("pairwise", [0, 1], best=1), answer)[0] == score


@pytest.mark.parametrize(("answer", "score"), [("B", 1.0), ("None", 0.0), ("C", 0.0)])
def test_a_choice_is_exact(answer, score):
    judge = dr.SetwiseJudge()
    assert scored(judge, [0, 1, 2], gold("setwise", [0, 1, 2], best=1), answer)[0] == score


def test_an_order_is_worth_its_ndcg_or_its_pairs():
    judge = dr.ListwiseJudge()
    right = gold("listwise", [0, 1, 2], order=(1, 2, 0))
    assert scored(judge, [0, 1, 2], right, "[2] > [3] > [1]")[0] == 1.0
    wrong = "[3] > [2] > [1]"
    assert scored(judge, [0, 1, 2], right, wrong)[0] == pytest.approx(0.797, abs=0.001)
    assert scored(judge, [0, 1, 2], right, wrong, windows="kendall")[0] == pytest.approx(2 / 3)
    assert scored(judge, [0, 1, 2], right, "[]")[0] == 0.0


def test_that_nothing_is_relevant_is_the_right_answer_where_it_is():
    places = [0, 0]
    listwise, setwise = dr.ListwiseJudge(), dr.SetwiseJudge()
    assert scored(listwise, places, gold("listwise", places), "[]")[0] == 1.0
    assert scored(listwise, places, gold("listwise", places), "[1] > [2]")[0] == 0.5
    assert scored(setwise, places, gold("setwise", places), "None")[0] == 1.0
    assert scored(setwise, places, gold("setwise", places), "A")[0] == 0.0


def test_feedback_on_a_mistake_says_how_much_of_the_ranking_hangs_on_it():
    judge = dr.PairwiseJudge()
    item = judgment_examples(judge, labelled(1))[0]
    right = "AB"[item.grades[0] < item.grades[1]]
    wrong = "BA"[item.grades[0] < item.grades[1]]
    metric = JudgeMetric(judge, [item])
    stake = f"Up to {item.worth:.2f} of the query's nDCG@10 hangs on this answer."
    assert item.worth > 0
    answer = judge.roles.answer
    assert stake in metric.verdict(item.example, {answer: wrong}).feedback
    assert stake not in metric.verdict(item.example, {answer: right}).feedback


def test_feedback_names_what_outranks_what_by_how_many_grades_and_quotes_both():
    said = scored(dr.PairwiseJudge(), [0, 1], gold("pairwise", [0, 1], best=1), "A")[1]
    assert "Passage B should outrank passage A, by 3 grades (3 against 0)" in said
    assert "«the tram was rebuilt.»" in said
    assert "«nothing here»" in said
    right = gold("listwise", [0, 1, 2], order=(1, 2, 0))
    said = scored(dr.ListwiseJudge(), [0, 1, 2], right, "[3] > [2] > [1]")[1]
    assert "Passage 2 should outrank passage 3, by 2 grades" in said
    said = scored(dr.PointwiseJudge(), [1], gold("pointwise", [1], score=3.0), "1")[1]
    assert "2 too low on the scale from 0 to 3" in said


def test_an_unreadable_answer_is_told_how_to_answer():
    score, said = scored(dr.PairwiseJudge(), [0, 1], gold("pairwise", [0, 1], best=1), "Well...")
    assert score == 0
    assert "could not be read" in said
    assert "A, B or Tie" in said


def test_every_calling_convention_of_dspy():
    judge = dr.PairwiseJudge()
    item = example(judge, [0, 1], gold("pairwise", [0, 1], best=1))
    metric = JudgeMetric(judge, [item])
    tied = dspy.Prediction(winner="Tie")
    assert metric(item.example, tied) == 0.5
    bootstrapping = metric(item.example, tied, [("predict", {}, tied)])
    assert bootstrapping == 0.5
    assert not bootstrapping
    assert not copy.deepcopy(bootstrapping)
    assert metric(item.example, dspy.Prediction(winner="B"), [])
    told = metric(item.example, tied, None, "predict", None)
    assert (told.score, "Half right" in told.feedback) == (0.5, True)


def test_an_answer_of_yes_or_no_is_labelled_in_words():
    class Relevant(dspy.Signature):
        """Is it relevant?"""

        query: str = dspy.InputField()
        passage: str = dspy.InputField()
        relevant: bool = dspy.OutputField()

    judge = dr.PointwiseJudge(Relevant)
    found = judgment_examples(judge, labelled(2))
    assert {item.example.relevant for item in found} == {"yes", "no"}
    metric = JudgeMetric(judge, found)
    for item in found:
        assert metric(item.example, dspy.Prediction(relevant=item.example.relevant)) == 1.0
        assert item.example.relevant == ("yes" if item.grade >= 2 else "no")


@pytest.mark.parametrize(
    "judge", [dr.PointwiseJudge(), dr.PairwiseJudge(), dr.SetwiseJudge(), dr.ListwiseJudge()]
)
def test_the_right_answers_of_judgment_examples_score_1(judge):
    found = judgment_examples(judge, labelled(6))
    metric = JudgeMetric(judge, found)
    assert [metric(item.example, item.example) for item in found] == [1.0] * len(found)


def test_an_example_without_a_label_is_an_error():
    judge = dr.PairwiseJudge()
    with pytest.raises(InputError, match="no label"):
        JudgeMetric()(dspy.Example(), dspy.Prediction())
    with pytest.raises(InputError, match="no label"):
        JudgeMetric(judge)(dspy.Example(query="q", passages="p"), dspy.Prediction())
    with pytest.raises(InputError, match="ndcg or kendall"):
        JudgeMetric(windows="tau")
