"""MLflow's traces of rankings, in a real store."""

import collections

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.testing import scripted_lm

mlflow = pytest.importorskip("mlflow")

from dspy_rerank.integrations.mlflow import RankingCallback, autolog  # noqa: E402

PASSAGES = [f"passage {i}" for i in range(100)]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A new SQLite store."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db")
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture
def store(database, monkeypatch, request):
    """An experiment of the test's own; gives a function that fetches its traces."""
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    mlflow.set_experiment(request.node.name)
    yield lambda: mlflow.search_traces(return_type="list", include_spans=True)
    mlflow.dspy.autolog(disable=True)


@pytest.fixture
def lm():
    return scripted_lm(lambda prompt: str(len(prompt) % 4), model="scripted/judge")


@pytest.fixture
def reranker():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


def names(trace):
    return collections.Counter(span.name for span in trace.data.spans)


def root(trace):
    (span,) = [span for span in trace.data.spans if span.parent_id is None]
    return span


def test_a_hundred_documents_make_a_small_trace_with_the_whole_bill(store, reranker, lm):
    autolog()
    with dspy.context(lm=lm):
        ranking = reranker(query="q", documents=PASSAGES, top_k=10).ranking
    (trace,) = store()
    assert names(trace)["ScoreSort.forward"] == 1
    assert names(trace)["Predict.forward"] == names(trace)["LM.__call__"] == 7
    assert len(trace.data.spans) == 36
    span = root(trace)
    assert span.name == "ScoreSort.forward"
    assert span.inputs["documents"][3] == {"id": None, "text": "passage 3"}
    assert [place["index"] for place in span.outputs["ranking"]["places"]] == ranking.indices
    assert span.outputs["ranking"]["usage"]["calls"] == 100
    assert trace.info.token_usage["input_tokens"] == ranking.usage.prompt_tokens
    asked = [s for s in trace.data.spans if s.name == "Predict.forward"]
    assert {s.parent_id for s in asked} == {span.span_id}


def test_mlflows_own_autolog_works_and_is_large(store, reranker, lm):
    mlflow.dspy.autolog()
    with dspy.context(lm=lm):
        reranker(query="q", documents=PASSAGES[:20])
    (trace,) = store()
    assert names(trace)["Predict.forward"] == 20
    assert root(trace).name == "ScoreSort.forward"


def test_no_questions_leave_the_ranking_alone(store, reranker, lm):
    autolog(questions="none")
    with dspy.context(lm=lm):
        reranker("q", PASSAGES)
    (trace,) = store()
    assert names(trace) == {"ScoreSort.forward": 1}
    assert root(trace).inputs["query"] == "q"
    assert len(root(trace).inputs["documents"]) == 100


def test_a_program_around_the_ranking_is_traced_in_full(store, reranker, lm):
    class Rag(dspy.Module):
        def __init__(self):
            super().__init__()
            self.reranker = reranker
            self.answer = dspy.Predict("context -> answer")

        def forward(self, question):
            best = self.reranker(query=question, documents=PASSAGES).ranking[0]
            return self.answer(context=best.text)

    autolog(questions="none")
    said = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"
    both = scripted_lm(lambda p: said if "[[ ## context ## ]]" in p else str(len(p) % 4))
    with dspy.context(lm=both):
        Rag()(question="q")
    (trace,) = store()
    assert names(trace)["Predict.forward"] == names(trace)["LM.__call__"] == 1
    assert root(trace).name == "Rag.forward"


def test_documents_that_can_be_read_once_are_left_to_the_ranking(store, reranker, lm):
    autolog(questions="none")
    with dspy.context(lm=lm):
        found = reranker(query="q", documents=(text for text in PASSAGES[:3])).ranking
    assert len(found) == 3
    assert len(store()) == 1


def test_an_error_is_traced_as_one(store, reranker):
    autolog()
    lm = scripted_lm(lambda prompt: 1 / 0)
    with dspy.context(lm=lm), pytest.raises(dr.errors.ModelError):
        reranker(query="q", documents=PASSAGES[:2], on_error="raise", error_retries=0)
    assert {trace.info.state.value for trace in store()} == {"ERROR"}


def test_calling_it_twice_keeps_one_callback(store):
    autolog()
    autolog(questions="all")
    kept = [c for c in dspy.settings.callbacks if isinstance(c, RankingCallback)]
    assert len(kept) == 1
    assert kept[0]._questions == "all"
    mlflow.dspy.autolog(disable=True)
    assert not [c for c in dspy.settings.callbacks if isinstance(c, RankingCallback)]
