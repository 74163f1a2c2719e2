"""What a call to a model gave, by every LM class, and whatever the user has made of the history."""

import gc
import weakref

import dspy
import pytest
from dspy import lm15
from dspy.clients.base_lm import GLOBAL_HISTORY
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import LMError

import dspy_rerank as dr
from dspy_rerank import histories
from dspy_rerank.errors import ModelError
from dspy_rerank.models import set_price
from dspy_rerank.testing import scripted_lm

ADAPTERS = {"compact": None, "chat": dspy.ChatAdapter(), "json": dspy.JSONAdapter()}


class OldLM(dspy.BaseLM):
    """An LM of the user's own class, as DSPy had them before engines."""

    def __init__(self, *said, **options):
        super().__init__("own/model", **options)
        self.said, self.asked = list(said), 0

    def forward(self, prompt=None, messages=None, **kwargs):
        self.asked += 1
        said = self.said[min(self.asked, len(self.said)) - 1]
        if isinstance(said, BaseException):
            raise said
        message = {"role": "assistant", "content": said}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        return dspy.clients.call_result.attributes(
            {"model": "own", "choices": [{"message": message}], "usage": usage}
        )


MODELS = {"engine": lambda said: scripted_lm(said), "own class": lambda said: OldLM(said)}


def judged(lm, adapter=None, **options):
    judge = dr.PointwiseJudge(adapter=adapter, evidence="generate")
    with dspy.context(lm=lm):
        return dr.ScoreSort(judge, retries=0)("q", ["a"], **options).ranking


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("model", MODELS)
def test_an_answer_that_the_adapter_cannot_read_is_read_by_us(model, adapter, silent):
    with dspy.context(disable_history=silent):
        ranking = judged(MODELS[model]("I say: 2"), ADAPTERS[adapter])
    (judgment,) = ranking.judgments
    assert judgment.raw == "I say: 2"
    assert ranking.usage.completion_tokens > 0


@pytest.mark.parametrize("silent", [False, True])
def test_a_cached_answer_is_told_from_a_paid_one(silent):
    lm = scripted_lm("2", cache=True)
    set_price(lm, input_cost_per_token=1.0, output_cost_per_token=1.0)
    with dspy.context(disable_history=silent):
        first, second = judged(lm).usage, judged(lm).usage
    assert (first.cached_calls, second.cached_calls) == (0, 1)
    assert (first.cost > 0, second.cost) == (True, 0.0)


def test_an_answer_without_a_token_count_is_not_taken_for_cached():
    class Silent(OldLM):
        def forward(self, prompt=None, messages=None, **kwargs):
            return super().forward(prompt, messages, **kwargs) | {"usage": {}}

    usage = judged(Silent("2")).usage
    assert (usage.calls, usage.cached_calls, usage.cost) == (1, 0, None)
    assert usage.cost_reason == "own/model did not say how many tokens it took"


def test_histories_stay_silent_where_they_are_to_be():
    lm, before = scripted_lm("2"), len(GLOBAL_HISTORY)
    with dspy.context(disable_history=True):
        judged(lm)
    assert (lm.history, len(GLOBAL_HISTORY)) == ([], before)


def test_histories_keep_calls_but_no_logprobs():
    lm = scripted_lm("A", logprobs={"A": -0.1, "B": -2.0})
    with dspy.context(lm=lm):
        ranking = dr.MergeSort(dr.PairwiseJudge(swap=False))("q", ["a", "b"]).ranking
    assert ranking.judgments[0].confidence_source == "logprob"
    (entry,) = lm.history
    assert entry["outputs"] == [{"text": "A"}]
    assert entry["response"].logprobs is None
    assert "document" in str(entry["messages"]) or "Passage" in str(entry["messages"])


def test_the_oldest_of_many_calls_leave_the_histories(monkeypatch):
    monkeypatch.setattr(histories, "KEPT", 10)
    histories._recent.clear()
    lm = scripted_lm("2")
    lm("not a judge's")
    with dspy.context(lm=lm):
        dr.ScoreSort(dr.PointwiseJudge())("q", [f"d{i}" for i in range(30)])
    kept = [entry for entry in GLOBAL_HISTORY if any(entry is own for own in lm.history)]
    assert len(lm.history) == len(kept) == 11
    assert lm.history[0]["prompt"] == "not a judge's"


@pytest.mark.parametrize("kind", [dr.PairwiseJudge, dr.SetwiseJudge])
def test_what_a_call_held_is_gone_with_it(kind):
    asked = []

    class Watching(BaseCallback):
        def on_lm_start(self, call_id, instance, inputs):
            asked.append(weakref.ref(instance))

    with dspy.context(lm=scripted_lm("A"), callbacks=[Watching()], disable_history=True):
        gc.disable()
        try:
            dr.TopDown(kind())("q", ["a", "b"])
            assert [ref() for ref in asked] == [None] * len(asked)
            assert asked
        finally:
            gc.enable()


def test_what_others_called_stays_in_the_histories_in_its_order(monkeypatch):
    monkeypatch.setattr(histories, "KEPT", 2)
    histories._recent.clear()
    lm = scripted_lm("2")
    with dspy.context(lm=lm):
        for number in range(6):
            lm(f"not a judge's {number}")
            dr.ScoreSort(dr.PointwiseJudge())("q", [f"document {number}"])
    others = [entry["prompt"] for entry in lm.history if entry["prompt"]]
    assert others == [f"not a judge's {number}" for number in range(6)]
    assert len(lm.history) == 6 + 2


class Cut(list):
    """A history that another thread clears as soon as somebody looks at an entry."""

    def __getitem__(self, place):
        self.clear()
        return super().__getitem__(place)


def test_a_history_that_is_cut_while_entries_leave_it_fails_no_call():
    entries = [{"outputs": []} for _ in range(3)]
    history = Cut(entries)
    histories._forget([(entry, [history]) for entry in entries])
    assert list(history) == []


def test_whoever_collects_a_trace_gets_every_call_and_nobody_else_pays_for_it(monkeypatch):
    monkeypatch.setattr(histories, "KEPT", 2)
    histories._recent.clear()
    lm = scripted_lm("2")
    nobodys = len(dspy.settings.trace)
    with dspy.context(lm=lm):
        dr.ScoreSort(dr.PointwiseJudge())("q", list("abcde"))
        assert len(dspy.settings.trace) == nobodys
        with dspy.context(trace=[]):
            dr.ScoreSort(dr.PointwiseJudge())("other", list("abcde"))
            assert len(dspy.settings.trace) == 5
    assert len(lm.history) == 2 + 5


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("bad"), RuntimeError("no")])
def test_whatever_a_models_own_class_raises_is_a_failing_model(error):
    lm = OldLM(error)
    ranking = judged(lm)
    assert ranking.degraded
    assert type(error).__name__ in ranking.reasons[0]
    assert (ranking.usage.failed_calls, lm.asked) == (1, 1)
    with pytest.raises(ModelError):
        judged(OldLM(error), on_error="raise")


def test_a_mistake_of_our_own_is_not_taken_for_a_failing_model(monkeypatch):
    def broken(self, text, shown):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(dr.PointwiseJudge, "_read", broken)
    with pytest.raises(ZeroDivisionError):
        judged(scripted_lm("2"))


def test_an_lms_own_state_is_not_copied_away():
    lm = OldLM("2")
    judged(lm)
    assert lm.asked == 1


def test_two_models_in_one_call_are_both_paid():
    reader = scripted_lm(
        "[[ ## relevance ## ]]\n3\n\n[[ ## completed ## ]]", model="scripted/reader"
    )
    adapter = dspy.TwoStepAdapter(reader)
    usage = judged(scripted_lm("three, I would say"), adapter).usage
    assert usage.calls == 1
    assert len(reader.engine.prompts) == 1
    assert usage.prompt_tokens > len(reader.engine.prompts[0].split())


def test_usage_reaches_whoever_tracks_it():
    lm = scripted_lm("2")
    with dspy.track_usage() as tracker:
        usage = judged(lm).usage
    (total,) = tracker.get_total_tokens().values()
    assert total["prompt_tokens"] == usage.prompt_tokens


@pytest.mark.parametrize(
    ("model", "error"),
    [(lambda e: scripted_lm([e]), lm15.InvalidRequestError("no", status=400))],
)
def test_dspys_errors_stay_what_they_are(model, error):
    with pytest.raises(ModelError) as caught:
        judged(model(error), on_error="raise")
    assert isinstance(caught.value.__cause__, LMError)
