"""What one tiny call tells of a model."""

import math

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank import capability
from dspy_rerank.testing import scripted_lm


def test_logprobs_and_confidence():
    lm = scripted_lm("A", logprobs={"A": math.log(0.8), "B": math.log(0.2)})
    told = dr.models.probe(lm)
    assert (told.answered, told.logprobs, told.top) == (True, True, 2)
    assert told.confidence == pytest.approx(0.8)
    assert len(lm.engine.prompts) == 1


def test_a_model_without_logprobs_says_so_and_is_remembered():
    lm = scripted_lm("A")
    told = dr.models.probe(lm)
    assert (told.answered, told.logprobs, told.confidence) == (True, False, None)
    assert "no log-probabilities" in told.problem
    assert capability.found(lm).gives is False


def test_a_failing_call_is_a_result():
    told = dr.models.probe(scripted_lm([lm15.AuthError("wrong key", status=401)]))
    assert not told.answered
    assert "wrong key" in told.problem


def test_a_thinking_model_is_seen():
    told = dr.models.probe(scripted_lm("<think>hm</think>A"))
    assert told.thinks


def test_size_and_price_are_looked_up_on_demand():
    told = dr.models.probe(scripted_lm("A"), table="gpt-4o-mini")
    assert told.context
    assert told.prompt_price


def test_an_unknown_model_has_no_price():
    told = dr.models.probe(scripted_lm("A"), table="nobody/knows")
    assert (told.context, told.prompt_price) == (None, None)


def test_a_probe_leaves_the_configured_model_alone():
    with dspy.context(lm=None):
        dr.models.probe(scripted_lm("A"))
        assert dspy.settings.lm is None
