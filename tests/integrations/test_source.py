"""What integrations take as a reranker, and what they say when an extra is missing."""

import subprocess
import sys

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.background import run_sync
from dspy_rerank.errors import InputError, NoModelError, ProgramError
from dspy_rerank.integrations._ranking import Wanted, arank
from dspy_rerank.integrations._source import Default, model_name, opened, written, written_lm
from dspy_rerank.testing import oracle_judge, scripted_lm
from tests.integrations.builders import BEST, CORPUS, GRADES, QUERY

FRAMEWORKS = {
    "llama_index": ("llama_index", "llama-index"),
    "langchain": ("langchain_core", "langchain"),
    "haystack": ("haystack", "haystack"),
    "pyterrier": ("pyterrier", "pyterrier"),
    "opentelemetry": ("opentelemetry", "otel"),
    "mlflow": ("mlflow", "mlflow"),
}


def best(source, lm=None):
    places, _ = run_sync(arank(opened(source, lm), QUERY, CORPUS, [None] * 5, Wanted(top_k=1)))
    return CORPUS[places[0].index]


def test_a_path_an_object_and_the_content_of_a_program(reranker, program, judge_lm, tmp_path):
    content = written(reranker)
    for source in (reranker, program, tmp_path / "reranker.json", content):
        assert best(source, judge_lm) == BEST
        with dspy.context(lm=judge_lm):
            assert best(source) == BEST


def test_an_object_is_not_bound_to_the_model_given_beside_it(reranker, judge_lm):
    opened(reranker, judge_lm)
    assert reranker.judge.predict.lm is None


def test_nothing_takes_the_default_for_the_model_of_each_call():
    def order(prompt):
        return "[2] > [1]"

    reranks = opened(None)
    assert isinstance(reranks, Default)
    with dspy.context(lm=scripted_lm(order)):
        ranking = run_sync(reranks.acall(query="q", documents=["a", "b"])).ranking
    assert ranking.indices == [1, 0]


def test_without_any_model_there_is_an_error(monkeypatch):
    monkeypatch.setattr(dr.models, "available", lambda: False)
    with pytest.raises(NoModelError):
        run_sync(opened(None).acall(query="q", documents=["a", "b"]))


def test_something_else_is_refused():
    with pytest.raises(InputError, match="int"):
        opened(3)
    with pytest.raises(ProgramError, match="no such file"):
        opened("missing.json")


def test_models_are_written_by_name_only():
    assert written_lm(None) is None
    assert written_lm("judge") == "judge"
    with pytest.raises(ProgramError, match="name"):
        written_lm(scripted_lm("x"))


def test_the_model_is_named_where_there_is_one(reranker, judge_lm):
    assert model_name(opened(reranker, judge_lm)) == "scripted/judge"
    oracle = dr.ScoreSort(oracle_judge(GRADES, "pointwise"))
    assert model_name(oracle).startswith("ScoreSort(")


def test_inputs_reach_the_judge_and_options_the_ranking(judge_lm):
    class Helpful(dspy.Signature):
        """Grade how far the passage helps."""

        query: str = dspy.InputField()
        criteria: str = dspy.InputField()
        passage: str = dspy.InputField()
        grade: float = dspy.OutputField()

    reranks = opened(dr.ScoreSort(dr.PointwiseJudge(Helpful, evidence="generate")), judge_lm)
    wanted = Wanted(inputs={"criteria": "prefer the trash", "max_calls": 2})
    places, ranking = run_sync(arank(reranks, QUERY, CORPUS, [None] * 5, wanted))
    assert ranking.degraded
    assert len(judge_lm.engine.prompts) == 2
    assert all("prefer the trash" in prompt for prompt in judge_lm.engine.prompts)
    assert all(place.notes["rerank_degraded"] for place in places)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_a_missing_extra_is_one_line_that_says_what_to_install(module):
    package, extra = FRAMEWORKS[module]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"try:\n    import dspy_rerank.integrations.{module}\n"
        "except ImportError as error:\n    print(error)\n"
    )
    said = run(code).stdout.strip().splitlines()
    assert len(said) == 1
    assert f"dspy_rerank.integrations.{module}" in said[0]
    assert f"pip install 'dspy-rerank[{extra}]'" in said[0]


def test_the_core_and_the_dspy_integration_import_no_framework():
    heavy = {"rich", "pandas", *(package for package, _ in FRAMEWORKS.values())}
    code = (
        "import sys, dspy_rerank, dspy_rerank.integrations.retriever\n"
        "import dspy_rerank.integrations.sampling\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert run(code).stdout.strip() == "[]"
