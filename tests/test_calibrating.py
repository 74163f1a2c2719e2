"""Calibration of whole rerankers: fitted on some queries, measured on others."""

import math
import random

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.errors import EvidenceError, InputError
from dspy_rerank.testing import scripted_lm


def queries(n, seed, per=6):
    """Labelled queries; a passage's text holds its label and what an overconfident model says."""
    rng = random.Random(seed)
    examples = []
    for number in range(n):
        grades = [rng.choice((0, 3)) for _ in range(per)]
        said = [g if rng.random() < 0.7 else 3 - g for g in grades]
        texts = [f"p{number}-{seed}-{i} says {s} odds" for i, s in enumerate(said)]
        examples.append(
            dspy.Example(query=f"q{number}", documents=texts, relevance=grades).with_inputs(
                "query", "documents"
            )
        )
    return examples


def bold_lm():
    """Reads the grade off the passage, right in 7 of 10, and claims to be 95 % sure."""
    return scripted_lm(
        lambda prompt: f"Confidence: 0.95\nRelevance: {prompt.split(' says ')[1][0]}"
    )


def reranker():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="stated"))


def test_calibrating_mends_confidence_on_queries_it_has_not_seen():
    lm, plain = bold_lm(), reranker()
    calibrated = dr.calibrate(plain, queries(40, 1), lm=lm)
    test = queries(40, 2)
    before, after = dr.reliability(plain, test, lm=lm), dr.reliability(calibrated, test, lm=lm)
    assert before.ece == pytest.approx(0.25, abs=0.06)
    assert after.ece < 0.06
    assert after.brier < before.brier
    assert after.answers == before.answers == 240


def test_the_reranker_given_is_left_alone_and_orders_stay():
    lm, plain = bold_lm(), reranker()
    calibrated = dr.calibrate(plain, queries(10, 1), lm=lm)
    assert plain.judge.settings["calibration"] is None
    example = queries(1, 5)[0]
    with dspy.context(lm=lm):
        one, two = (r(**example.inputs()).ranking for r in (plain, calibrated))
    assert one.indices == two.indices
    assert one.scores == two.scores


def test_a_calibrated_program_keeps_its_calibration_when_saved(tmp_path):
    lm = bold_lm()
    calibrated = dr.calibrate(reranker(), queries(20, 1), lm=lm)
    loaded = dr.load(dr.save(calibrated, tmp_path / "program.json"))
    test = queries(5, 3)
    assert dr.reliability(loaded, test, lm=lm) == dr.reliability(calibrated, test, lm=lm)


def test_calibrating_again_starts_from_the_raw_confidences():
    lm = bold_lm()
    once = dr.calibrate(reranker(), queries(20, 1), lm=lm)
    twice = dr.calibrate(once, queries(20, 1), lm=lm)
    assert twice.judge.settings == once.judge.settings


def test_rankings_of_an_evaluation_are_measured_without_another_call():
    lm, data = bold_lm(), queries(10, 4)
    row = dr.evaluate(reranker(), data, lm=lm)["reranker"]
    asked = len(lm.engine.prompts)
    report = dr.reliability(row.rankings, data)
    assert len(lm.engine.prompts) == asked
    assert report.answers == 60
    assert report.confidence == pytest.approx(0.95)


def test_yes_and_no_are_measured_as_such():
    lm = scripted_lm(
        lambda prompt: "yes" if " says 3" in prompt else "no",
        logprobs={"yes": math.log(0.9), "no": math.log(0.1)},
    )
    judge = dr.PointwiseJudge("query, passage -> relevant: bool", evidence="logprobs")
    report = dr.reliability(dr.ScoreSort(judge), queries(20, 2), lm=lm)
    assert report.answers > 0
    assert report.bins[0].low >= 0.5


class LikelihoodEngine:
    """Finds the query likely after passages that say 3, and likelier for short queries."""

    evidence = ("likelihood", "generate")
    supported_params = frozenset({"logprobs", "top_logprobs", "metadata", "temperature"})
    supports_response_schema = False

    def complete(self, request):
        text = " ".join(message.text or "" for message in request.messages)
        query = request.config.extensions["metadata"]["likelihood"]
        value = -1.0 - 3.0 * int(query[1:]) - (0.0 if " says 3" in text else 1.0)
        tokens = (lm15.TokenLogprob(query, value),)
        message = lm15.Message.assistant([lm15.TextPart(query)])
        return lm15.Response(id=None, model="m", message=message, finish_reason="stop",
                             usage=lm15.Usage(), logprobs=tokens)  # fmt: skip

    def __deepcopy__(self, memo):
        return self


class AsyncLikelihoodEngine(LikelihoodEngine):
    async def complete(self, request):
        return super().complete(request)


def likelihood_lm():
    engine, twin = LikelihoodEngine(), AsyncLikelihoodEngine()
    return dspy.LM("scripted/likelihood", engine=engine, async_engine=twin, cache=False)


def test_likelihoods_gain_a_confidence_that_holds_on_other_queries():
    lm, plain = likelihood_lm(), dr.ScoreSort(dr.PointwiseJudge())
    calibrated = dr.calibrate(plain, queries(40, 1), lm=lm)
    test = queries(40, 2)
    report = dr.reliability(calibrated, test, lm=lm)
    assert report.accuracy == pytest.approx(0.7, abs=0.06)
    assert report.confidence == pytest.approx(report.accuracy, abs=0.1)
    assert report.brier < 0.25
    example = test[0]
    with dspy.context(lm=lm):
        judgments = calibrated(**example.inputs()).ranking.judgments
    assert {judgment.confidence_source for judgment in judgments} == {"logprob"}
    assert all(j.confidence == max(j.probabilities[0], 1 - j.probabilities[0]) for j in judgments)
    assert all(judgment.score < 0 for judgment in judgments)


def test_likelihoods_that_do_not_differ_have_no_confidence():
    lm = likelihood_lm()
    calibrated = dr.calibrate(dr.ScoreSort(dr.PointwiseJudge()), queries(10, 1), lm=lm)
    with dspy.context(lm=lm):
        ranking = calibrated("q1", ["a says 3", "b says 3"]).ranking
    assert [item.confidence for item in ranking] == [None, None]


def test_a_judge_without_confidence_cannot_be_calibrated_and_the_error_says_what_can():
    with pytest.raises(EvidenceError, match="evidence='logprobs'"):
        dr.calibrate(dr.ScoreSort(dr.PointwiseJudge()), queries(2, 1), lm=scripted_lm("2"))


def test_a_likelihood_that_was_not_calibrated_is_told_how_to_be():
    with pytest.raises(EvidenceError, match=r"dspy_rerank\.calibrate"):
        dr.reliability(dr.ScoreSort(dr.PointwiseJudge()), queries(2, 1), lm=likelihood_lm())


def test_a_function_has_nothing_to_calibrate():
    judge = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")
    with pytest.raises(InputError, match="FunctionJudge"):
        dr.calibrate(dr.ScoreSort(judge), queries(2, 1), lm=scripted_lm("2"))


def test_rankings_of_other_queries_are_refused():
    with pytest.raises(InputError, match="0 rankings of 2 queries"):
        dr.reliability([], queries(2, 1))
