"""Reranking Haystack documents."""

import asyncio

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, ModelError, ProgramError
from dspy_rerank.testing import oracle_judge
from tests.integrations.builders import BEST, BY_GRADE, CORPUS, GRADES, QUERY

pytest.importorskip("haystack")

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.serialization import component_from_dict, component_to_dict
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore

from dspy_rerank.integrations.haystack import DSPyRanker


@pytest.fixture
def documents():
    return [
        Document(content=text, id=f"d{i}", meta={"page": i}, score=1 - i / 10)
        for i, text in enumerate(CORPUS)
    ]


def texts(found):
    return [document.content for document in found["documents"]]


def test_documents_come_best_first_with_the_judges_scores(reranker, judge_lm, documents):
    found = DSPyRanker(reranker, lm=judge_lm, top_k=3).run(QUERY, documents)
    assert texts(found) == BY_GRADE
    best = found["documents"][0]
    assert (best.id, best.score) == ("d1", 3.0)
    assert best.meta == {"page": 1, "retrieval_score": 0.9}
    assert (documents[1].score, documents[1].meta) == (0.9, {"page": 1})


def test_async_gives_the_same(reranker, judge_lm, documents):
    ranker = DSPyRanker(reranker, lm=judge_lm)
    assert asyncio.run(ranker.run_async(QUERY, documents)) == ranker.run(QUERY, documents)


def test_top_k_of_a_run_comes_before_the_components(reranker, judge_lm, documents):
    ranker = DSPyRanker(reranker, lm=judge_lm, top_k=3)
    assert texts(ranker.run(QUERY, documents, top_k=1)) == [BEST]
    for wrong in (0, -1):
        with pytest.raises(InputError, match="top_k"):
            ranker.run(QUERY, documents, top_k=wrong)
        with pytest.raises(ValueError, match="top_k"):
            DSPyRanker(top_k=wrong)


def test_less_confident_documents_are_flagged_and_kept(doubtful, documents):
    found = DSPyRanker(doubtful, confidence_threshold=0.5).run(QUERY, documents)["documents"]
    assert [d.meta["low_confidence"] for d in found] == [False, True, True, True, True]


def test_a_failing_model_leaves_the_documents_as_they_came(reranker, broken_lm, documents):
    found = DSPyRanker(reranker, lm=broken_lm, top_k=2).run(QUERY, documents)
    assert texts(found) == CORPUS[:2]
    assert [d.score for d in found["documents"]] == [1.0, 0.9]
    assert all(d.meta["rerank_degraded"] for d in found["documents"])
    with pytest.raises(ModelError):
        DSPyRanker(reranker, lm=broken_lm, raise_on_failure=True).run(QUERY, documents)


def test_documents_without_text_come_last_unjudged(reranker, judge_lm, documents):
    picture = Document(blob=ByteStream(b"png", mime_type="image/png"), id="picture", score=7.0)
    found = DSPyRanker(reranker, lm=judge_lm).run(QUERY, [picture, *documents])["documents"]
    assert len(judge_lm.engine.prompts) == len(documents)
    assert (found[-1].id, found[-1].score) == ("picture", None)
    assert found[-1].meta == {"retrieval_score": 7.0, "rerank_unjudged": True}


def test_duplicates_stay(reranker, judge_lm, documents):
    found = DSPyRanker(reranker, lm=judge_lm).run(QUERY, [*documents, documents[1]])["documents"]
    assert [d.id for d in found[:2]] == ["d1", "d1"]


def test_nothing_gives_nothing(reranker):
    assert DSPyRanker(reranker).run(QUERY, []) == {"documents": []}


def test_the_program_is_read_at_warm_up(tmp_path):
    ranker = DSPyRanker(str(tmp_path / "missing.json"))
    with pytest.raises(ProgramError, match="no such file"):
        ranker.warm_up()


def test_a_component_survives_serialization(program, judge_lm, documents):
    ranker = DSPyRanker(program, top_k=2, confidence_threshold=0.3, inputs={"deadline": 60.0})
    state = component_to_dict(ranker, "ranker")
    assert state["type"] == "dspy_rerank.integrations.haystack.DSPyRanker"
    again = component_from_dict(DSPyRanker, state, "ranker")
    assert component_to_dict(again, "ranker") == state
    with dspy.context(lm=judge_lm):
        assert texts(again.run(QUERY, documents)) == BY_GRADE[:2]


def test_what_cannot_be_written_says_so(reranker, judge_lm):
    with pytest.raises(ProgramError, match="FunctionJudge"):
        DSPyRanker(dr.ScoreSort(oracle_judge(GRADES, "pointwise"))).to_dict()
    with pytest.raises(ProgramError, match="give its name"):
        DSPyRanker(reranker, lm=judge_lm).to_dict()


@component
class Answer:
    """A generator that repeats the prompt."""

    @component.output_types(reply=str)
    def run(self, prompt: str):
        return {"reply": prompt}


@pytest.fixture
def rag():
    """From a ranker to a pipeline around it."""
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in CORPUS])

    def build(ranker):
        pipeline = Pipeline()
        pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=5))
        pipeline.add_component("ranker", ranker)
        template = "{% for d in documents %}{{ d.content }}\n{% endfor %}{{ query }}"
        variables = ["documents", "query"]
        pipeline.add_component("prompt", PromptBuilder(template, required_variables=variables))
        pipeline.add_component("answer", Answer())
        pipeline.connect("retriever", "ranker")
        pipeline.connect("ranker", "prompt.documents")
        pipeline.connect("prompt", "answer")
        return pipeline

    return build


ASKED = {name: {"query": QUERY} for name in ("retriever", "ranker", "prompt")}


def test_a_rag_pipeline_reads_the_best_passages(rag, program, judge_lm):
    pipeline = rag(DSPyRanker(program, lm=judge_lm, top_k=2))
    expected = {"answer": {"reply": "\n".join([*BY_GRADE[:2], QUERY])}}
    assert pipeline.run(ASKED) == expected
    assert asyncio.run(pipeline.run_async(ASKED)) == expected


@pytest.mark.parametrize("form", ["path", "object"])
def test_a_pipeline_survives_yaml(rag, program, reranker, judge_lm, form):
    ranker = DSPyRanker(program if form == "path" else reranker, top_k=1)
    pipeline = Pipeline()
    pipeline.add_component("ranker", ranker)
    text = pipeline.dumps()
    again = Pipeline.loads(text)
    assert again.dumps() == text
    with dspy.context(lm=judge_lm):
        found = again.run({"query": QUERY, "documents": [Document(content=t) for t in CORPUS]})
    assert texts(found["ranker"]) == [BEST]
