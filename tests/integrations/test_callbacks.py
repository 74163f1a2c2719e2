"""DSPy's own callbacks see every module and model call of a ranking, each under its parent."""

import asyncio

import dspy
import pytest
from dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback

import dspy_rerank as dr
from dspy_rerank.integrations.sampling import Sampled
from dspy_rerank.testing import scripted_lm
from tests.integrations.builders import CORPUS, QUERY


class Recorder(BaseCallback):
    """Keeps what starts, under what, and what ends."""

    def __init__(self):
        self.started = {}
        self.ended = []

    def _start(self, call_id, instance, inputs):
        self.started[call_id] = (type(instance).__name__, ACTIVE_CALL_ID.get())

    def _end(self, call_id, outputs, exception=None):
        self.ended.append(call_id)

    on_module_start = on_lm_start = on_adapter_format_start = on_adapter_parse_start = _start
    on_module_end = on_lm_end = on_adapter_format_end = on_adapter_parse_end = _end


class SampledRecorder(Sampled, Recorder):
    """Hears of some questions only."""


def ids(recorder, name):
    return [call_id for call_id, (kind, _) in recorder.started.items() if kind == name]


def test_every_call_is_seen_under_its_parent(reranker, judge_lm):
    recorder = Recorder()
    with dspy.context(lm=judge_lm, callbacks=[recorder]):
        reranker(query=QUERY, documents=CORPUS)
        asyncio.run(reranker.acall(query=QUERY, documents=CORPUS))
    rankings, questions = ids(recorder, "ScoreSort"), ids(recorder, "Predict")
    assert (len(rankings), len(questions), len(ids(recorder, "LM"))) == (2, 10, 10)
    assert {recorder.started[q][1] for q in questions} == set(rankings)
    assert {recorder.started[c][1] for c in ids(recorder, "LM")} == set(questions)
    assert set(recorder.ended) == set(recorder.started)


def test_a_callback_of_the_model_alone_works(reranker):
    recorder = Recorder()
    lm = scripted_lm("1", callbacks=[recorder])
    with dspy.context(lm=lm):
        reranker(query=QUERY, documents=CORPUS)
    assert len(ids(recorder, "LM")) == 5


@pytest.mark.parametrize(("questions", "count"), [("none", 0), ("some", 3), ("all", 5)])
def test_sampling_hides_questions_with_all_that_is_inside(reranker, judge_lm, questions, count):
    recorder = SampledRecorder(questions)
    with dspy.context(lm=judge_lm, callbacks=[recorder]):
        reranker(query=QUERY, documents=CORPUS)
    assert len(ids(recorder, "ScoreSort")) == 1
    assert len(ids(recorder, "Predict")) == len(ids(recorder, "LM")) == count
    assert set(recorder.ended) == set(recorder.started)


def test_sampling_ends_with_the_ranking(reranker, judge_lm):
    recorder = SampledRecorder("none")
    answer = scripted_lm("[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]")
    with dspy.context(lm=judge_lm, callbacks=[recorder]):
        reranker(query=QUERY, documents=CORPUS)
        with dspy.context(lm=answer):
            dspy.Predict("question -> answer")(question="?")
    assert len(ids(recorder, "Predict")) == len(ids(recorder, "LM")) == 1


def test_two_sampled_callbacks_do_not_disturb_each_other(reranker, judge_lm):
    some, none = SampledRecorder("some"), SampledRecorder("none")
    with dspy.context(lm=judge_lm, callbacks=[some, none]):
        for _ in range(2):
            reranker(query=QUERY, documents=CORPUS)
    for recorder, count in ((some, 6), (none, 0)):
        assert len(ids(recorder, "ScoreSort")) == 2
        assert len(ids(recorder, "Predict")) == len(ids(recorder, "LM")) == count
        assert set(recorder.ended) == set(recorder.started)


def test_sampling_is_the_same_in_threads(reranker, judge_lm):
    recorder = SampledRecorder("some")
    examples = [dspy.Example(query=QUERY, documents=CORPUS).with_inputs("query", "documents")] * 4
    with dspy.context(lm=judge_lm, callbacks=[recorder]):
        reranker.batch(examples, num_threads=2, disable_progress_bar=True)
    rankings = ids(recorder, "ScoreSort")
    parents = [recorder.started[q][1] for q in ids(recorder, "Predict")]
    assert [parents.count(r) for r in rankings] == [3] * 4


def test_a_callback_that_raises_changes_nothing(reranker, judge_lm):
    class Broken(BaseCallback):
        def on_module_start(self, call_id, instance, inputs):
            raise RuntimeError("broken")

        def on_module_end(self, call_id, outputs, exception=None):
            raise RuntimeError("broken")

    class SampledBroken(Sampled, Broken):
        pass

    plain = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    with dspy.context(lm=judge_lm):
        expected = plain(query=QUERY, documents=CORPUS).ranking.indices
        with dspy.context(callbacks=[Broken(), SampledBroken()]):
            assert reranker(query=QUERY, documents=CORPUS).ranking.indices == expected
