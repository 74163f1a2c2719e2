"""Spans of rankings: how many, where they hang, what they hold and what they must not."""

import asyncio

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, ModelError
from dspy_rerank.testing import oracle_judge, scripted_lm
from tests.integrations.builders import CORPUS, GRADES, QUERY

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dspy_rerank.integrations import opentelemetry as otel


@pytest.fixture
def provider():
    return TracerProvider()


@pytest.fixture
def exporter(provider):
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def instrumented(provider, exporter):
    otel.instrument(provider)
    return exporter


def split(exporter):
    """The spans of rankings, and those of questions."""
    spans = exporter.get_finished_spans()
    rankings = [s for s in spans if s.name.startswith("rerank ") and s.name != "rerank question"]
    return rankings, [s for s in spans if s.name == "rerank question"]


def test_a_ranking_is_one_span_with_its_bill(instrumented, reranker, judge_lm):
    with dspy.context(lm=judge_lm):
        ranking = reranker(query=QUERY, documents=CORPUS, top_k=2).ranking
    (span,), _ = split(instrumented)
    assert span.name == "rerank ScoreSort"
    assert dict(span.attributes) == {
        "rerank.sorter": "ScoreSort",
        "rerank.judge": "PointwiseJudge",
        "rerank.judge.kind": "pointwise",
        "rerank.top_k": 2,
        "gen_ai.request.model": "scripted/judge",
        "rerank.documents": 5,
        "rerank.returned": 2,
        "rerank.calls": 5,
        "rerank.cached_calls": 0,
        "rerank.failed_calls": 0,
        "rerank.rounds": 1,
        "rerank.passages_read": 5,
        "gen_ai.usage.input_tokens": ranking.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": 5,
        "rerank.unknowns": 0,
        "rerank.truncated": 0,
        "rerank.degraded": False,
        "rerank.evidence": "generate",
    }
    assert span.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(("questions", "count"), [("none", 0), ("some", 7), ("all", 100)])
def test_questions_are_sampled_under_their_ranking(provider, exporter, questions, count):
    otel.instrument(provider, questions=questions)
    with dspy.context(lm=scripted_lm("2")):
        reranker = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
        reranker(query=QUERY, documents=[f"passage {i}" for i in range(100)])
    (ranking,), asked = split(exporter)
    assert len(asked) == count
    assert {span.parent.span_id for span in asked} <= {ranking.context.span_id}
    assert ranking.attributes["rerank.calls"] == 100


def test_a_ranking_hangs_under_the_span_that_is_current(instrumented, provider, reranker, judge_lm):
    with dspy.context(lm=judge_lm), provider.get_tracer("app").start_as_current_span("request"):
        reranker(query=QUERY, documents=CORPUS)
        asyncio.run(reranker.acall(query=QUERY, documents=CORPUS))
    rankings, _ = split(instrumented)
    (request,) = [s for s in instrumented.get_finished_spans() if s.name == "request"]
    assert [span.parent.span_id for span in rankings] == [request.context.span_id] * 2


def test_many_rankings_do_not_mix(instrumented, reranker, judge_lm):
    with dspy.context(lm=judge_lm):
        reranker.rank_many([(QUERY, CORPUS)] * 6)
    rankings, asked = split(instrumented)
    ids = [span.context.span_id for span in rankings]
    parents = [span.parent.span_id for span in asked]
    assert len(ids) == 6
    assert {parents.count(i) for i in ids} == {3}
    assert all(span.parent is None for span in rankings)


def test_spans_hold_no_texts_and_no_keys(instrumented, reranker):
    def leak(prompt):
        raise ValueError(f"bad key sk-secret for {prompt}")

    lm = scripted_lm(leak)
    with dspy.context(lm=lm):
        assert reranker(query=QUERY, documents=CORPUS).ranking.degraded
        with pytest.raises(ModelError):
            reranker(query=QUERY, documents=CORPUS, on_error="raise")
    spans = instrumented.get_finished_spans()
    shown = "".join(span.to_json() for span in spans)
    assert not [text for text in [QUERY, "sk-secret", *CORPUS] if text in shown]
    rankings, _ = split(instrumented)
    assert [span.attributes.get("rerank.degraded") for span in rankings] == [True, None]
    assert rankings[1].status.status_code is StatusCode.ERROR
    assert rankings[1].status.description == "ModelError"
    assert not rankings[1].events


def test_functions_as_judges_give_a_span_without_a_model(instrumented):
    dr.MergeSort(oracle_judge(GRADES, "pairwise"))(query=QUERY, documents=CORPUS)
    (span,), asked = split(instrumented)
    assert span.attributes["rerank.judge"] == "FunctionJudge"
    assert not asked


def test_fused_rankings_are_one_span(instrumented):
    sorter = dr.Consensus(dr.TopDown(oracle_judge(GRADES, "listwise")), passes=2)
    sorter(query=QUERY, documents=CORPUS)
    (span,), _ = split(instrumented)
    assert span.attributes["rerank.sorter"] == "Consensus"


def test_other_modules_make_no_spans(instrumented):
    with dspy.context(lm=scripted_lm("[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]")):
        assert dspy.Predict("question -> answer")(question="?").answer == "yes"
    assert instrumented.get_finished_spans() == ()


def test_instrumenting_twice_replaces_and_uninstrumenting_ends(provider, exporter):
    other = dspy.utils.BaseCallback()
    dspy.configure(callbacks=[other])
    otel.instrument(provider)
    otel.instrument(provider, questions="none")
    dr.MergeSort(oracle_judge(GRADES, "pairwise"))(query=QUERY, documents=CORPUS)
    assert len(exporter.get_finished_spans()) == 1
    otel.uninstrument()
    assert dspy.settings.callbacks == [other]


def test_an_unknown_choice_is_refused(provider):
    with pytest.raises(InputError, match="questions='few'"):
        otel.instrument(provider, questions="few")
