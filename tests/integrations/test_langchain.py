"""Reranking LangChain documents."""

import asyncio

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.testing import oracle_judge
from tests.integrations.builders import BEST, BY_GRADE, CORPUS, GRADES, QUERY

pytest.importorskip("langchain_core")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from dspy_rerank.integrations.langchain import DSPyRerank


@pytest.fixture
def documents():
    return [
        Document(text, id=f"d{i}", metadata={"page": i, "deep": {"list": [i]}})
        for i, text in enumerate(CORPUS)
    ]


@pytest.fixture
def retriever(search):
    class Bm25(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(CORPUS[i]) for i in search(query)[0]]

    return Bm25()


def texts(documents):
    return [document.page_content for document in documents]


def test_documents_come_best_first_with_their_scores(reranker, judge_lm, documents):
    found = DSPyRerank(reranker, lm=judge_lm, top_n=3).compress_documents(documents, QUERY)
    assert texts(found) == BY_GRADE
    assert [d.metadata["relevance_score"] for d in found] == [3.0, 2.0, 1.0]
    assert (found[0].id, found[0].metadata["page"]) == ("d1", 1)
    assert "relevance_score" not in documents[1].metadata


def test_async_gives_the_same(reranker, judge_lm, documents):
    compressor = DSPyRerank(reranker, lm=judge_lm)
    found = asyncio.run(compressor.acompress_documents(documents, QUERY))
    assert found == compressor.compress_documents(documents, QUERY)
    assert len(found) == len(documents)


def test_less_confident_documents_are_flagged_and_kept(doubtful, documents):
    found = DSPyRerank(doubtful, confidence_threshold=0.5).compress_documents(documents, QUERY)
    assert [d.metadata["low_confidence"] for d in found] == [False, True, True, True, True]


def test_sorters_without_scores_give_none(documents):
    compressor = DSPyRerank(dr.MergeSort(oracle_judge(GRADES, "pairwise")))
    found = compressor.compress_documents(documents, QUERY)
    assert texts(found)[:3] == BY_GRADE
    assert {d.metadata["relevance_score"] for d in found} == {None}


def test_a_failing_model_leaves_the_documents_as_they_came(reranker, broken_lm, documents):
    found = DSPyRerank(reranker, lm=broken_lm, top_n=4).compress_documents(documents, QUERY)
    assert texts(found) == CORPUS[:4]
    assert all(d.metadata["rerank_degraded"] for d in found)


def test_a_failing_model_raises_when_asked_to(reranker, broken_lm, documents):
    with pytest.raises(ModelError):
        DSPyRerank(reranker, lm=broken_lm, raise_on_error=True).compress_documents(documents, QUERY)


def test_blank_documents_come_last_unjudged(reranker, judge_lm, documents):
    blank = Document("\n", id="blank")
    found = DSPyRerank(reranker, lm=judge_lm).compress_documents([blank, *documents], QUERY)
    assert (found[-1].id, found[-1].metadata["rerank_unjudged"]) == ("blank", True)


def test_callbacks_see_one_run(reranker, judge_lm, documents):
    seen = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, *, name=None, **_):
            seen.append((name, inputs["query"]))

        def on_chain_end(self, outputs, **_):
            seen.append(len(outputs))

    compressor = DSPyRerank(reranker, lm=judge_lm, top_n=2)
    compressor.compress_documents(documents, QUERY, callbacks=[Handler()])
    asyncio.run(compressor.acompress_documents(documents, QUERY, callbacks=[Handler()]))
    assert seen == [("DSPyRerank", QUERY), 2] * 2


def test_settings_survive_pydantics_serialization(program, judge_lm, documents):
    compressor = DSPyRerank(program, top_n=2)
    again = DSPyRerank(**compressor.model_dump())
    assert again.model_dump() == compressor.model_dump()
    with dspy.context(lm=judge_lm):
        assert texts(again.compress_documents(documents, QUERY)) == BY_GRADE[:2]


def test_wrong_settings_are_refused():
    assert issubclass(DSPyRerank, BaseDocumentCompressor)
    with pytest.raises(ValueError, match="top_n"):
        DSPyRerank(top_n=-1)
    with pytest.raises(ValueError, match="top_k"):
        DSPyRerank(top_k=3)


def test_a_rag_pipeline_reads_the_best_passages(retriever, program, judge_lm):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    compressor = DSPyRerank(program, lm=judge_lm, top_n=2)
    compressed = retrievers.ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=retriever
    )
    shown = []

    def join(found):
        shown.append(texts(found))
        return "\n".join(texts(found))

    chain = (
        {"context": compressed | join, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context}\n\n{question}")
        | FakeListChatModel(responses=["Open the trash."])
        | StrOutputParser()
    )
    assert chain.invoke(QUERY) == "Open the trash."
    assert asyncio.run(chain.ainvoke(QUERY)) == "Open the trash."
    assert shown == [BY_GRADE[:2]] * 2
    assert compressed.invoke(QUERY)[0].page_content == BEST
