"""An LM called without DSPy's detour over a thread gives what DSPy gives."""

import asyncio
import sys

import dspy
import pytest
from dspy.clients import capabilities
from dspy.utils.callback import BaseCallback

import dspy_rerank as dr
from dspy_rerank import straight
from dspy_rerank.straight import straighten
from dspy_rerank.testing import scripted_lm

pytestmark = pytest.mark.filterwarnings("ignore:Passing OpenAI-style:DeprecationWarning")

TEXT = [{"role": "user", "content": "Is it? 👀"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Is it?"}]}]


class Seen(BaseCallback):
    def __init__(self):
        self.calls = []

    def on_lm_start(self, call_id, instance, inputs):
        self.calls.append(inputs["messages"])


def straight_lm(answer="A"):
    lm = scripted_lm(answer)
    straighten(lm)
    return lm


@pytest.fixture
def dspys_way(monkeypatch):
    """Counts the calls that take it."""
    taken, own = [], straight._dspys

    async def counted(lm, *args, **kwargs):
        taken.append(kwargs)
        return await own(lm, *args, **kwargs)

    monkeypatch.setattr(straight, "_dspys", counted)
    return taken


@pytest.mark.parametrize("config", [{}, {"temperature": 0.5}, {"logprobs": True}])
def test_text_gives_what_dspys_own_call_gives(config, dspys_way):
    ours, theirs = straight_lm(), scripted_lm("A")
    said = asyncio.run(ours.acall(messages=TEXT, **config))
    assert said == asyncio.run(theirs.acall(messages=TEXT, **config))
    kept = ("messages", "kwargs", "outputs", "usage", "model")
    assert [{n: e[n] for n in kept} for e in ours.history] == [
        {n: e[n] for n in kept} for e in theirs.history
    ]
    assert not dspys_way


@pytest.mark.parametrize(
    "call", [{"messages": PARTS}, {"prompt": "Is it?"}, {"messages": [*TEXT, *PARTS]}]
)
def test_all_but_text_goes_dspys_way(call, dspys_way):
    asyncio.run(straight_lm().acall(**call))
    assert len(dspys_way) == 1


def test_a_dspy_with_other_steps_makes_its_own_call(monkeypatch, dspys_way):
    monkeypatch.setitem(sys.modules, "dspy.clients._deprecation", None)
    monkeypatch.setattr(straight, "_steps", straight._steps.__wrapped__)
    assert asyncio.run(straight_lm().acall(messages=TEXT)) == ["A"]
    assert len(dspys_way) == 1


def test_whoever_wraps_the_call_of_the_class_sees_a_judges_call(monkeypatch):
    whole, seen = dspy.LM.acall, []

    async def traced(self, *args, **kwargs):
        seen.append(kwargs)
        return await whole(self, *args, **kwargs)

    monkeypatch.setattr(dspy.LM, "acall", traced)
    with dspy.context(lm=scripted_lm("A")):
        ranking = dr.MergeSort(dr.PairwiseJudge(swap=False))("q", ["a", "b"]).ranking
    assert (len(seen), ranking.usage.calls) == (1, 1)


def test_callbacks_see_a_judges_call_once():
    seen = Seen()
    with dspy.context(lm=scripted_lm("A"), callbacks=[seen]):
        dr.MergeSort(dr.PairwiseJudge(swap=False))("q", ["a", "b"])
    assert len(seen.calls) == 1


def test_a_judge_does_not_look_up_what_a_model_can_do(monkeypatch):
    def looked(*_):
        raise AssertionError("looked up")

    monkeypatch.setattr(capabilities, "_capabilities", looked)
    with dspy.context(lm=scripted_lm("A")):
        ranking = dr.MergeSort(dr.PairwiseJudge(swap=False))("q", ["a", "b"]).ranking
    assert ranking.indices == [0, 1]
    assert not ranking.degraded
