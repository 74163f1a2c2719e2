"""Raw confidences against how often they are right."""

import json
import random
from itertools import pairwise

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.calibration import (
    FITS,
    Calibration,
    expected_calibration_error,
    fit_isotonic,
    reliability,
)
from dspy_rerank.errors import InputError
from dspy_rerank.testing import scripted_lm


def sample(truth, n=4000, seed=0):
    """Confidences, and answers that are right as often as ``truth`` says."""
    rng = random.Random(seed)
    confidences = [rng.random() for _ in range(n)]
    return confidences, [rng.random() < truth(sure) for sure in confidences]


def test_bars_count_every_answer_once():
    bars = reliability([0.05, 0.05, 1.0], [False, True, True])
    assert [(b.low, b.answers, b.accuracy) for b in bars] == [(0.0, 2, 0.5), (0.9, 1, 1.0)]


def test_the_error_is_the_weighted_gap():
    confidences, right = [0.9] * 4 + [0.2] * 6, [True, True, False, False] + [False] * 6
    error = expected_calibration_error(confidences, right)
    assert error == pytest.approx(0.4 * 0.4 + 0.6 * 0.2)


@pytest.mark.parametrize("method", FITS)
def test_a_fit_mends_overconfidence_on_answers_it_has_not_seen(method):
    def truth(sure):
        return 0.5 + 0.3 * (sure - 0.5)

    fitted = FITS[method](*sample(truth))
    confidences, right = sample(truth, seed=1)
    before = expected_calibration_error(confidences, right)
    after = expected_calibration_error([fitted(sure) for sure in confidences], right)
    assert after < 0.25 * before


@pytest.mark.parametrize("method", FITS)
def test_a_fit_never_falls_and_stays_between_zero_and_one(method):
    for seed in range(20):
        fitted = FITS[method](*sample(lambda sure: 1 - sure, n=30, seed=seed))
        values = [fitted(place / 100) for place in range(101)]
        assert all(0 < value < 1 for value in values)
        assert all(a <= b + 1e-12 for a, b in pairwise(values))


@pytest.mark.parametrize("method", FITS)
def test_one_right_answer_makes_nothing_certain(method):
    fitted = FITS[method]([0.99], [True])
    assert 0.5 < fitted(0.99) < 1


@pytest.mark.parametrize("method", FITS)
def test_a_separable_sample_has_a_finite_fit(method):
    fitted = FITS[method]([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    assert fitted(0.1) < 0.5 < fitted(0.9)


@pytest.mark.parametrize("method", FITS)
def test_a_fit_survives_json(method):
    fitted = FITS[method](*sample(lambda sure: sure, n=50))
    again = Calibration.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again == fitted


@pytest.mark.parametrize(
    ("confidences", "right", "says"),
    [([], [], "at least 1"), ([0.5], [], "as many"), ([1.5], [True], "between 0 and 1")],
)
def test_unusable_samples_are_refused(confidences, right, says):
    with pytest.raises(InputError, match=says):
        fit_isotonic(confidences, right)


def test_a_judge_keeps_its_calibration_in_the_saved_program(tmp_path):
    judge = dr.SetwiseJudge(evidence="stated")
    judge.calibrate([0.9] * 10, [True] * 5 + [False] * 5)
    path = dr.save(dr.Survivor(judge), tmp_path / "program.json")
    for one in (judge, dr.load(path).judge):
        with dspy.context(lm=scripted_lm("Confidence: 0.9\nBest: A")):
            judgment = one(query="q", passages=["x", "y"]).judgment
        assert judgment.confidence == pytest.approx(0.5)
        assert judgment.confidence_source == "stated"


def test_a_pair_is_calibrated_after_both_orders():
    judge = dr.PairwiseJudge(evidence="stated")
    judge.calibrate([0.8] * 8, [True] * 4 + [False] * 4, method="platt")
    said = ["Confidence: 0.9\nWinner: A", "Confidence: 0.7\nWinner: B"]
    with dspy.context(lm=scripted_lm(said)):
        judgment = judge(query="q", passages=["x", "y"]).judgment
    assert judgment.best == 0
    assert judgment.confidence == pytest.approx(0.5, abs=0.02)


def test_no_confidence_stays_none_under_calibration():
    judge = dr.SetwiseJudge()
    judge.calibrate([0.9, 0.8], [True, False])
    with dspy.context(lm=scripted_lm("A")):
        assert judge(query="q", passages=["x", "y"]).judgment.confidence is None


def test_an_unknown_method_lists_the_known():
    with pytest.raises(InputError, match="isotonic, platt"):
        dr.SetwiseJudge().calibrate([0.9], [True], method="beta")
