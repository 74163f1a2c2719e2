"""Answers kept across rankings: by what decides them, and by nothing else."""

import gc

import dspy

import dspy_rerank as dr
from dspy_rerank.memo import memo_for, remembering
from dspy_rerank.testing import scripted_lm


def grades(value):
    return dr.ScoreSort(dr.FunctionJudge(lambda query, passages: value, "pointwise"))


def test_one_function_never_answers_for_another():
    """Even where the first is gone and Python gives its address to the next."""
    with remembering():
        for value in range(20):
            assert grades(float(value))("q", ["a", "b"]).ranking.scores == [value, value]
            gc.collect()


def test_a_judge_that_cannot_be_told_from_others_is_not_remembered():
    class Unhashable(dr.FunctionJudge):
        __hash__ = None

    judge = Unhashable(lambda query, passages: 1.0, "pointwise")
    with remembering():
        assert memo_for(judge, "q", ["a"], {}) is not memo_for(judge, "q", ["a"], {})


def test_everything_that_decides_an_answer_tells_memos_apart():
    judge, other = dr.PointwiseJudge(), dr.PointwiseJudge(instructions="Be strict.")
    with remembering(), dspy.context(lm=scripted_lm("1")):
        memo = memo_for(judge, "q", ["a", "b"], {})
        assert memo_for(judge, "q", ["a", "b"], {}) is memo
        others = [
            memo_for(other, "q", ["a", "b"], {}),
            memo_for(judge, "r", ["a", "b"], {}),
            memo_for(judge, "q", ["b", "a"], {}),
            memo_for(judge, "q", ["a", "b"], {"date": "today"}),
        ]
        with dspy.context(lm=scripted_lm("1", temperature=0.7)):
            others.append(memo_for(judge, "q", ["a", "b"], {}))
        with dspy.context(lm=scripted_lm("1", model="scripted/other")):
            others.append(memo_for(judge, "q", ["a", "b"], {}))
    assert all(each is not memo for each in others)


def test_an_answer_that_cannot_be_read_is_not_bought_again():
    lm = scripted_lm("I cannot say.")
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    with remembering(), dspy.context(lm=lm):
        first = sorter("q", ["a", "b"]).ranking
        again = sorter("q", ["a", "b"]).ranking
    assert (first.unknowns, again.unknowns) == (2, 2)
    assert (first.usage.calls, again.usage.paid_calls, len(lm.engine.prompts)) == (4, 0, 4)


def test_what_a_limit_kept_from_being_asked_may_be_asked_later():
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    with remembering(), dspy.context(lm=scripted_lm("2")):
        assert sorter("q", ["a", "b", "c"], max_calls=1).ranking.unknowns == 2
        assert sorter("q", ["a", "b", "c"]).ranking.unknowns == 0


def test_failures_are_not_remembered():
    said = iter([dspy.lm15.ServerError("x"), "2", "1"])
    lm = scripted_lm(lambda _: next(said), num_retries=0)
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"), error_retries=0)
    with remembering(), dspy.context(lm=lm):
        assert sorter("q", ["a"]).ranking.degraded
        assert sorter("q", ["a"]).ranking.scores == [2.0]


def test_an_inner_context_joins_the_outer_one():
    with remembering() as outer, remembering() as inner:
        assert inner is outer
    with remembering({}) as outer, remembering({}) as inner:
        assert inner is not outer
