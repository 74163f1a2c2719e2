"""Reranking LlamaIndex nodes."""

import asyncio
import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, ModelError
from dspy_rerank.testing import oracle_judge
from tests.integrations.builders import BEST, BY_GRADE, CORPUS, GRADES, QUERY

pytest.importorskip("llama_index.core")

from llama_index.core import QueryBundle
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, TextNode

from dspy_rerank.integrations.llama_index import DSPyRerank


@pytest.fixture
def nodes():
    return [
        NodeWithScore(node=TextNode(text=text, id_=f"n{i}", metadata={"page": i}), score=1 - i / 10)
        for i, text in enumerate(CORPUS)
    ]


@pytest.fixture
def retriever(search):
    class Bm25(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle):
            found, scores = search(query_bundle.query_str)
            return [
                NodeWithScore(node=TextNode(text=CORPUS[i]), score=s)
                for i, s in zip(found, scores, strict=True)
            ]

    return Bm25()


def texts(nodes):
    return [node.node.get_content() for node in nodes]


def test_nodes_come_best_first_with_the_judges_scores(reranker, judge_lm, nodes):
    rerank = DSPyRerank(reranker, lm=judge_lm, top_n=3)
    found = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert texts(found) == BY_GRADE
    assert [node.score for node in found] == [3.0, 2.0, 1.0]


def test_async_gives_the_same(reranker, judge_lm, nodes):
    rerank = DSPyRerank(reranker, lm=judge_lm)
    found = asyncio.run(rerank.apostprocess_nodes(nodes, query_str=QUERY))
    again = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert [n.node_id for n in found] == [n.node_id for n in again]
    assert len(found) == len(nodes)


def test_it_works_inside_a_running_loop(reranker, judge_lm, nodes):
    async def cell():
        return DSPyRerank(reranker, lm=judge_lm).postprocess_nodes(nodes, query_str=QUERY)

    assert texts(asyncio.run(cell()))[0] == BEST


def test_the_retrieval_score_is_kept_and_the_given_nodes_are_not_touched(reranker, judge_lm, nodes):
    best = DSPyRerank(reranker, lm=judge_lm, top_n=1).postprocess_nodes(nodes, query_str=QUERY)[0]
    assert best.metadata == {"retrieval_score": 0.9, "page": 1}
    assert nodes[1].metadata == {"page": 1}
    assert nodes[1].score == 0.9
    assert best.node_id == "n1"


def test_a_second_reranker_keeps_the_first_retrieval_score(reranker, judge_lm, nodes):
    rerank = DSPyRerank(reranker, lm=judge_lm)
    once = rerank.postprocess_nodes(nodes, query_str=QUERY)
    twice = rerank.postprocess_nodes(once, query_str=QUERY)
    assert twice[0].metadata["retrieval_score"] == 0.9


def test_what_was_noted_is_not_shown_to_models(reranker, judge_lm, nodes):
    best = DSPyRerank(reranker, lm=judge_lm).postprocess_nodes(nodes, query_str=QUERY)[0]
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert best.node.get_content(metadata_mode=mode) == f"page: 1\n\n{BEST}"


def test_less_confident_nodes_are_flagged_and_kept(doubtful, nodes):
    rerank = DSPyRerank(doubtful, confidence_threshold=0.5, metadata_mode="none")
    found = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert texts(found)[0] == BEST
    assert [n.metadata["low_confidence"] for n in found] == [False, True, True, True, True]
    assert found[0].metadata["rerank_confidence"] == pytest.approx(0.9)


def test_a_failing_model_leaves_the_nodes_as_they_came(reranker, broken_lm, nodes):
    rerank = DSPyRerank(reranker, lm=broken_lm, top_n=2)
    found = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert texts(found) == CORPUS[:2]
    assert [node.score for node in found] == [1.0, 0.9]
    assert all(node.metadata["rerank_degraded"] for node in found)


def test_a_failing_model_raises_when_asked_to(reranker, broken_lm, nodes):
    rerank = DSPyRerank(reranker, lm=broken_lm, raise_on_error=True)
    with pytest.raises(ModelError):
        rerank.postprocess_nodes(nodes, query_str=QUERY)
    with pytest.raises(ModelError):
        asyncio.run(rerank.apostprocess_nodes(nodes, query_str=QUERY))


def test_nodes_without_text_are_not_judged_and_come_last(reranker, judge_lm, nodes):
    picture = NodeWithScore(node=ImageNode(image_path="cat.png", metadata={"page": 9}), score=5.0)
    blank = NodeWithScore(node=TextNode(text="  "), score=4.0)
    rerank = DSPyRerank(reranker, lm=judge_lm)
    found = rerank.postprocess_nodes([picture, *nodes, blank], query_str=QUERY)
    assert len(judge_lm.engine.prompts) == len(nodes)
    assert [n.node_id for n in found[-2:]] == [picture.node_id, blank.node_id]
    assert [n.score for n in found[-2:]] == [None, None]
    assert found[-2].metadata["rerank_unjudged"]
    assert found[-2].metadata["retrieval_score"] == 5.0


def test_only_pictures_keep_their_order_and_need_no_model(reranker):
    pictures = [NodeWithScore(node=ImageNode(image_path=f"{i}.png"), score=i) for i in range(3)]
    found = DSPyRerank(reranker).postprocess_nodes(pictures, query_str=QUERY)
    assert [n.node_id for n in found] == [n.node_id for n in pictures]


def test_no_nodes_give_none(reranker):
    assert DSPyRerank(reranker).postprocess_nodes([], query_str=QUERY) == []


def test_without_a_query_there_is_an_error(reranker, nodes):
    with pytest.raises(InputError, match="query"):
        DSPyRerank(reranker).postprocess_nodes(nodes)


def test_sorters_without_scores_give_none(nodes):
    rerank = DSPyRerank(dr.MergeSort(oracle_judge(GRADES, "pairwise")), metadata_mode="none")
    found = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert texts(found)[:3] == BY_GRADE
    assert {node.score for node in found} == {None}


def test_start_and_end_are_told_as_events(reranker, judge_lm, nodes):
    seen = []

    class Handler(BaseEventHandler):
        def handle(self, event, **_):
            seen.append(event)

    debug = LlamaDebugHandler(print_trace_on_end=False)
    rerank = DSPyRerank(reranker, lm=judge_lm, top_n=2, callback_manager=CallbackManager([debug]))
    root, handler = get_dispatcher(), Handler()
    root.add_event_handler(handler)
    try:
        rerank.postprocess_nodes(nodes, query_str=QUERY)
        asyncio.run(rerank.apostprocess_nodes(nodes, query_str=QUERY))
    finally:
        root.event_handlers.remove(handler)
    names = [event.class_name() for event in seen if "ReRank" in event.class_name()]
    assert names == ["ReRankStartEvent", "ReRankEndEvent"] * 2
    start = next(event for event in seen if event.class_name() == "ReRankStartEvent")
    assert (start.top_n, start.model_name) == (2, "scripted/judge")
    assert len(debug.get_event_pairs(CBEventType.RERANKING)) == 2


def test_it_survives_llama_indexs_serialization(program, nodes, judge_lm):
    rerank = DSPyRerank(program, top_n=2, inputs={"deadline": 60.0})
    again = DSPyRerank.from_json(rerank.to_json())
    assert again.to_dict() == rerank.to_dict()
    assert rerank.to_dict()["class_name"] == "DSPyRerank"
    with dspy.context(lm=judge_lm):
        assert texts(again.postprocess_nodes(nodes, query_str=QUERY)) == BY_GRADE[:2]


def test_a_reranker_object_is_serialized_as_the_program_it_is(reranker, nodes, judge_lm):
    state = json.loads(DSPyRerank(reranker, top_n=1).to_json())
    again = DSPyRerank.from_dict(state)
    with dspy.context(lm=judge_lm):
        assert texts(again.postprocess_nodes(nodes, query_str=QUERY)) == [BEST]


def test_a_function_as_judge_and_a_bound_model_cannot_be_serialized(reranker, judge_lm):
    with pytest.raises(ValueError, match="FunctionJudge"):
        DSPyRerank(dr.ScoreSort(oracle_judge(GRADES, "pointwise"))).to_dict()
    with pytest.raises(ValueError, match="give its name"):
        DSPyRerank(reranker, lm=judge_lm).to_dict()


def test_it_is_a_postprocessor():
    assert issubclass(DSPyRerank, BaseNodePostprocessor)
    with pytest.raises(ValueError, match="top_n"):
        DSPyRerank(top_n=-1)


def test_a_rag_pipeline_reads_the_best_passages(retriever, program, judge_lm):
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=[DSPyRerank(program, lm=judge_lm, top_n=2)]
    )
    answer = engine.query(QUERY)
    assert texts(answer.source_nodes) == BY_GRADE[:2]
    assert BEST in str(answer)
    assert "retrieval_score" not in str(answer)
    answer = asyncio.run(engine.aquery(QUERY))
    assert texts(answer.source_nodes) == BY_GRADE[:2]
