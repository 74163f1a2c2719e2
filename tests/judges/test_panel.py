"""Panels: several judges of one passage, weighed."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.testing import scripted_lm

TEXTS = ["short", "a longer text", "the longest text of them all"]


def length(query, passages):
    return len(passages[0])


def words(query, passages):
    return len(passages[0].split())


def panel(*weights):
    return dr.Panel(
        [dr.FunctionJudge(length, "pointwise"), dr.FunctionJudge(words, "pointwise")],
        weights=weights or None,
    )


def test_the_score_is_the_weighted_sum_in_one_round():
    ranking = dr.ScoreSort(panel(1, -10))("q", TEXTS).ranking
    scores = {item.text: item.score for item in ranking}
    assert scores == {text: len(text) - 10 * len(text.split()) for text in TEXTS}
    assert (ranking.usage.calls, ranking.usage.rounds) == (6, 1)


def test_a_judge_of_weight_0_is_not_asked():
    ranking = dr.ScoreSort(panel(0, 1))("q", TEXTS).ranking
    assert ranking.usage.calls == 3
    assert dr.ScoreSort(panel(0, 1)).estimate(3).calls == 3


def test_what_one_judge_does_not_know_is_unknown():
    both = dr.Panel(
        [
            dr.FunctionJudge(lambda q, p: None if p == ["short"] else 1, "pointwise"),
            dr.FunctionJudge(length, "pointwise"),
        ]
    )
    ranking = dr.ScoreSort(both)("q", TEXTS).ranking
    assert ranking.unknowns == 1
    assert ranking.indices == [0, 2, 1]


def test_several_votes_of_a_member_stay_together():
    lm = scripted_lm(["1", "3", "2", "1", "3", "2"])
    both = dr.Panel(
        [
            dr.PointwiseJudge(evidence="generate", votes=3),
            dr.FunctionJudge(length, "pointwise"),
        ],
        weights=[1, 0.1],
    )
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(both, concurrency=1)("q", ["one", "three"]).ranking
    assert [item.score for item in ranking] == pytest.approx([2.5, 2.3])
    assert len(lm.engine.prompts) == 6


def test_a_saved_panel_answers_as_before(tmp_path):
    students = dr.Panel(
        [dr.PointwiseJudge(evidence="generate"),
         dr.PointwiseJudge(instructions="Is it new?", evidence="generate", part="title")],
        weights=[1, -0.25],
    )  # fmt: skip
    path = dr.save(dr.ScoreSort(students, prior=0.2), tmp_path / "p.json")
    loaded = dr.load(path)
    assert loaded.judge.settings["weights"] == [1, -0.25]
    lms = [scripted_lm(lambda prompt: "3" if "new" in prompt and "old" not in prompt else "1")
           for _ in range(2)]  # fmt: skip
    for program, lm in zip((dr.ScoreSort(students, prior=0.2), loaded), lms, strict=True):
        with dspy.context(lm=lm):
            program("q", ["old thing\nmore", "thing\nmore"])
    assert sorted(lms[0].engine.prompts) == sorted(lms[1].engine.prompts)
    assert sum("more" in prompt for prompt in lms[1].engine.prompts) == 2


def test_the_prompts_of_all_members_are_found_by_dspy():
    students = dr.Panel([dr.PointwiseJudge(evidence="generate") for _ in range(2)])
    assert len(dr.ScoreSort(students).predictors()) == 2


@pytest.mark.parametrize(
    ("judges", "weights", "says"),
    [
        ([dr.PairwiseJudge()], None, "Panel cannot use a pairwise judge; it needs pointwise"),
        ([], None, "for 0 judges"),
        ([dr.PointwiseJudge()], [0], "not all of them 0"),
        ([dr.PointwiseJudge()], [1, 2], "one number for each"),
        ([dr.PointwiseJudge()], [float("nan")], "finite"),
    ],
)
def test_what_cannot_be_a_panel_says_so(judges, weights, says):
    with pytest.raises(InputError, match=says):
        dr.Panel(judges, weights=weights)


def test_a_claim_needs_likelihood():
    with pytest.raises(InputError, match="likelihood"):
        dr.PointwiseJudge(claim="This page is an advertisement.")
    with pytest.raises(InputError, match="whole or title"):
        dr.PointwiseJudge(part="abstract")


def test_an_error_of_a_function_degrades_and_a_wrong_key_raises():
    def bad(query, passages):
        raise ValueError("no")

    mixed = dr.Panel([
        dr.PointwiseJudge(evidence="generate"), dr.FunctionJudge(bad, "pointwise")
    ])  # fmt: skip
    with dspy.context(lm=scripted_lm("1")):
        assert dr.ScoreSort(mixed)("q", TEXTS).ranking.degraded
    key = dspy.utils.exceptions.LMAuthError("wrong key")
    good = dr.Panel([mixed.judges[0], dr.FunctionJudge(length, "pointwise")])
    with dspy.context(lm=scripted_lm([key])), pytest.raises(dspy.LMError):
        dr.ScoreSort(good)("q", TEXTS)
