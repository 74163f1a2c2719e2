"""Raw confidences against how often they are right."""

import json
import random
from itertools import pairwise
from xml.etree import ElementTree

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.calibration import (
    FITS,
    Calibration,
    answers,
    brier_score,
    expected_calibration_error,
    fit_isotonic,
    is_right,
    reliability,
    standings,
)
from dspy_rerank.errors import InputError
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Judgment


def sample(truth, n=4000, seed=0):
    """Confidences, and answers that are right as often as ``truth`` says."""
    rng = random.Random(seed)
    confidences = [rng.random() for _ in range(n)]
    return confidences, [rng.random() < truth(sure) for sure in confidences]


def test_bars_count_every_answer_once():
    bars = reliability([0.05, 0.05, 1.0], [False, True, True]).bins
    assert [(b.low, b.answers, b.accuracy) for b in bars] == [(0.0, 2, 0.5), (0.9, 1, 1.0)]


def test_the_error_is_the_weighted_gap():
    confidences, right = [0.9] * 4 + [0.2] * 6, [True, True, False, False] + [False] * 6
    error = expected_calibration_error(confidences, right)
    assert error == pytest.approx(0.4 * 0.4 + 0.6 * 0.2)


def test_bars_of_equal_mass_hold_as_many_answers_and_keep_equal_confidences_together():
    confidences = [0.9] * 6 + [0.1, 0.2, 0.3, 0.4]
    right = [True] * 3 + [False] * 7
    by_mass = expected_calibration_error(confidences, right, 2, by="mass")
    assert by_mass == pytest.approx(0.4 * 0.25 + 0.6 * 0.4)
    shuffled = random.Random(3).sample(list(zip(confidences, right, strict=True)), 10)
    again = expected_calibration_error(*zip(*shuffled, strict=True), 2, by="mass")
    assert again == pytest.approx(by_mass)


def test_bars_of_equal_mass_do_not_overlook_a_crowded_bar():
    rng = random.Random(0)
    confidences = [0.90 + rng.random() / 20 for _ in range(2000)]
    right = [sure > 0.925 for sure in confidences]
    by_width = expected_calibration_error(confidences, right)
    by_mass = expected_calibration_error(confidences, right, by="mass")
    assert by_mass == pytest.approx(0.5, abs=0.03)
    assert by_width == pytest.approx(0.425, abs=0.03)


def test_the_brier_score_is_the_mean_squared_distance():
    assert brier_score([1.0, 0.5], [True, False]) == pytest.approx(0.125)


def test_a_perfect_model_has_a_small_error_and_an_overconfident_one_has_not():
    fair = reliability(*sample(lambda sure: sure))
    bold = reliability(*sample(lambda sure: 0.5))
    assert (fair.ece < 0.03, fair.ece_mass < 0.03) == (True, True)
    assert bold.ece == pytest.approx(0.25, abs=0.03)
    assert fair.brier < bold.brier


def test_a_report_is_a_table_json_and_a_drawing():
    report = reliability([0.95, 0.9, 0.2], [True, True, False])
    assert "3 answers, 67% right" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["bins"][0]["answers"] == 1
    svg = ElementTree.fromstring(report.to_svg())
    bars = [each for each in svg.iter() if each.tag.endswith("rect")]
    assert len(bars) == len(report.bins) == 2


def pointwise(score, **more):
    return Judgment("pointwise", (0,), "ok", score=score, **more)


VERDICTS = {
    "a grade near the label": (pointwise(2.6), [3], True),
    "a grade off the label": (pointwise(2.4), [3], False),
    "a grade without a label": (pointwise(2.0), [None], None),
    "likely and relevant": (
        pointwise(-2, evidence="likelihood", probabilities=(0.7,)), [1], True,
    ),
    "likely and not relevant": (
        pointwise(-2, evidence="likelihood", probabilities=(0.7,)), [0], False,
    ),
    "unlikely and not relevant": (
        pointwise(-9, evidence="likelihood", probabilities=(0.1,)), [0], True,
    ),
    "the better of two": (Judgment("pairwise", (0, 1), "ok", best=1), [0, 2], True),
    "the worse of two": (Judgment("pairwise", (0, 1), "ok", best=0), [0, 2], False),
    "a tie of different labels": (Judgment("pairwise", (0, 1), "ok", tie=True), [0, 2], False),
    "a pair of equal labels": (Judgment("pairwise", (0, 1), "ok", best=0), [2, 2], None),
    "a pair with a label missing": (Judgment("pairwise", (0, 1), "ok", best=0), [2, None], None),
    "one of the best": (Judgment("setwise", (0, 1, 2), "ok", best=1), [3, 3, 0], True),
    "not the best": (Judgment("setwise", (0, 1, 2), "ok", best=2), [3, 3, 0], False),
    "none where none is": (Judgment("setwise", (0, 1), "none"), [0, None], True),
    "none where one is": (Judgment("setwise", (0, 1), "none"), [0, 1], False),
    "an order by its first": (Judgment("listwise", (0, 1), "ok", order=(1, 0)), [0, 1], True),
    "an unknown": (Judgment("setwise", (0, 1), "unknown"), [0, 1], None),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_which_judgments_are_right(name):
    judgment, grades, right = VERDICTS[name]
    assert is_right(judgment, grades, scale=(0, 3), top=3) is right


def test_labels_are_put_on_the_judges_scale():
    judged = [((pointwise(3.0, confidence=0.8),), [1]), ((pointwise(1.0, confidence=0.6),), [0])]
    assert answers(judged, scale=(0, 3)) == ((0.8, 0.6), (True, False))


def test_judgments_without_confidence_or_label_are_left_out():
    judged = [((pointwise(1.0), pointwise(1.0, confidence=0.6)), [None])]
    assert answers(judged) == ((), ())


def test_standings_are_within_the_query_and_none_where_nothing_differs():
    first, second = standings([-2.0, -4.0])
    assert standings([-12.0, -14.0]) == pytest.approx((first, second))
    assert first > 0.5 > second
    assert standings([-3.0, -3.0]) is standings([-3.0]) is standings([]) is None


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
