"""No prompt is paid for twice while one judge is compiled."""

from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

import dspy_rerank as dr
from dspy_rerank.judges import PointwiseJudge
from dspy_rerank.optimizers import JudgeCompiler
from dspy_rerank.optimizers.judge_program import JudgeProgram, Watch
from dspy_rerank.optimizers.reuse import Reuse
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import labelled, skilled

QUESTION = {"query": "q", "passage": "worth 2"}


def program():
    return JudgeProgram(PointwiseJudge(evidence="generate"), Watch())


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_random_search_asks_every_prompt_once_unless_the_judge_samples(temperature):
    lm = scripted_lm(skilled)
    options = {"max_bootstrapped_demos": 1, "max_labeled_demos": 0, "num_candidate_programs": 0}
    judge = PointwiseJudge(evidence="generate", temperature=temperature)
    compiled = JudgeCompiler(BootstrapFewShotWithRandomSearch, options, lm=lm, per_query=4).compile(
        dr.ScoreSort(judge), trainset=labelled(8), valset=labelled(6, seed=1)
    )
    prompts = lm.engine.prompts
    if temperature == 0:
        assert len(set(prompts)) == len(prompts)
        spent = compiled.card["spent"]
        assert spent["calls"] == spent["judge_calls"] == len(prompts)
        assert spent["questions"] > spent["calls"]
    else:
        assert len(set(prompts)) < len(prompts)


def test_a_known_answer_is_in_the_trace_like_a_new_one():
    single = program()
    with dspy.context(lm=scripted_lm("2")):
        traces = []
        for _ in range(2):
            with dspy.context(trace=[]):
                single.deepcopy()(**QUESTION)
                traces.append(dspy.settings.trace)
    (first,), (second,) = traces
    assert single.watch.asked == 1
    assert second[1] == first[1]
    assert dict(second[2]) == dict(first[2])
    assert second[0] is not first[0]  # the predictor of the copy that was asked


def test_answers_are_those_of_one_model_and_one_prompt():
    single = program()
    for answer in ("1", "2"):
        with dspy.context(lm=scripted_lm(answer)):
            assert single(**QUESTION).relevance == answer
    other = single.deepcopy()
    other.predict.demos = [dspy.Example(query="q", passage="p", relevance=1)]
    with dspy.context(lm=scripted_lm("3")):
        assert other(**QUESTION).relevance == "3"


def test_a_failure_is_not_kept():
    single = program()
    with dspy.context(lm=scripted_lm([dspy.lm15.InvalidRequestError("no"), "2"], num_retries=0)):
        with pytest.raises(dspy.LMError):
            single(**QUESTION)
        assert single(**QUESTION).relevance == "2"


def test_an_optimizer_that_samples_gets_a_new_answer():
    single = program()
    lm = scripted_lm(["1", "2"])
    with dspy.context(lm=lm):
        single(**QUESTION)
    with dspy.context(lm=lm.copy(rollout_id=1, temperature=1.0)):
        assert single(**QUESTION).relevance == "2"


def test_threads_wait_for_the_answer_of_the_first():
    asked, reuse = [], Reuse()

    def ask():
        asked.append(1)
        return dspy.Prediction(answer="1")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: reuse(asked, "prompt", ask), range(32)))
    assert len(asked) == 1
    assert [known for _, known in found].count(False) == 1
    assert all(prediction.answer == "1" for prediction, _ in found)


def test_changing_an_answer_leaves_the_kept_one_alone():
    reuse = Reuse()
    first, _ = reuse(None, "prompt", lambda: dspy.Prediction(answer="1"))
    first.answer = "2"
    second, known = reuse(None, "prompt", lambda: dspy.Prediction(answer="3"))
    assert known
    assert second.answer == "1"
