"""Passages that try to be something else: the prompt's frame stays, and no answer breaks us."""

import re

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.testing import scripted_lm
from tests.hostile.attacks import (
    ADAPTERS,
    ATTACKS,
    DEFENCES,
    JUDGES,
    QUERY,
    frame,
    inputs,
    says,
    shown,
    text,
)

CLEAN = ["flour, water and salt", "an oven of 240 degrees"]


def prompt_of(judge, passages, kind):
    lm = scripted_lm("no answer")
    with dspy.context(lm=lm):
        judge(query=QUERY, passages=passages, **inputs(kind))
    (prompt,) = lm.engine.prompts
    return prompt


def restored(prompt):
    """The prompt without white space and what was put into passages to break them."""
    return re.sub(r"[\s>ˆ]|<<\w{10}>>", "", prompt)


def test_the_suite_is_broad():
    assert len(ATTACKS) >= 40
    assert len({attack["style"] for attack in ATTACKS.values()}) >= 10
    assert len({attack["language"] for attack in ATTACKS.values()}) >= 10


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", JUDGES)
def test_the_frame_of_the_prompt_is_that_of_harmless_passages(kind, adapter):
    for defence in DEFENCES:
        judge = JUDGES[kind](adapter=ADAPTERS[adapter](), defence=defence)
        expected = frame(prompt_of(judge, shown(kind, [*CLEAN, "nothing"]), kind), judge)
        for name in ATTACKS:
            prompt = prompt_of(judge, shown(kind, [*CLEAN, text(name)]), kind)
            assert frame(prompt, judge) == expected, name
            assert restored(text(name)) in restored(prompt), name


@pytest.mark.parametrize("kind", JUDGES)
def test_passages_are_numbered_as_they_are_shown(kind):
    for name in ATTACKS:
        passages = shown(kind, [CLEAN[0], text(name), CLEAN[1]])
        prompt = prompt_of(JUDGES[kind](), passages, kind)
        labels = re.findall(r"^Passage \[(\w+)\]: ", prompt, re.MULTILINE)
        expected = [] if len(passages) == 1 or "fields" in kind else list("ABC"[: len(passages)])
        assert labels == (list("123") if kind == "listwise" else expected), name


RERANKERS = {
    "pointwise": dr.ScoreSort, "pairwise": dr.AllPairs, "pairwise, two fields": dr.MergeSort,
    "setwise": dr.Survivor, "listwise": dr.TopDown,
}  # fmt: skip


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", JUDGES)
def test_a_model_that_obeys_is_read_or_unknown(kind, adapter):
    for name in ATTACKS:
        for answer in (says(name, "B"), says(name, "2"), text(name)):
            reranker = RERANKERS[kind](JUDGES[kind](adapter=ADAPTERS[adapter]()), retries=0)
            documents = [*CLEAN, text(name)]
            with dspy.context(lm=scripted_lm(answer)):
                ranking = reranker(QUERY, documents, **inputs(kind)).ranking
            assert sorted(ranking.indices) == [0, 1, 2], name
            assert not ranking.degraded, name
            for judgment in ranking.judgments:
                assert judgment.known or judgment.reason, name
                assert sorted(judgment.order or judgment.group) == sorted(judgment.group), name
                assert judgment.best is None or judgment.best in judgment.group, name
                assert judgment.score is None or 0 <= judgment.score <= 3, name


@pytest.mark.parametrize("name", ["tool-error", "think-open", "order-refuse", "tool-trace"])
@pytest.mark.parametrize("kind", ["pointwise", "pairwise", "setwise"])
def test_errors_refusals_and_open_reasoning_are_never_answers(kind, name):
    with dspy.context(lm=scripted_lm(says(name))):
        judgment = JUDGES[kind]()(query=QUERY, passages=shown(kind, [*CLEAN, "x"])).judgment
    assert judgment.status == "unknown"


def test_the_fence_is_another_one_for_each_question_and_the_same_when_repeated():
    judge = JUDGES["listwise"](defence="fence")
    fences = [
        set(re.findall(r"<<\w{10}>>", prompt_of(judge, passages, "listwise")))
        for passages in (CLEAN, CLEAN, CLEAN[::-1])
    ]
    assert [len(found) for found in fences] == [1, 1, 1]
    assert fences[0] == fences[1] != fences[2]


@pytest.mark.parametrize("defence", ["none", "armour", 1])
def test_an_unknown_defence_is_refused(defence):
    with pytest.raises(dr.errors.InputError, match="fence, mark, remind"):
        dr.PointwiseJudge(defence=defence)


@pytest.mark.parametrize("defence", DEFENCES[1:])
def test_a_defence_is_saved_with_the_program(defence, tmp_path):
    path = dr.save(dr.TopDown(dr.ListwiseJudge(defence=defence)), tmp_path / "p.json")
    assert dr.load(path).judge.settings["defence"] == defence
