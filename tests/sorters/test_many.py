"""Many queries at once: one limit, in order, nobody waits for the slowest."""

import asyncio
import threading

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, JudgeError
from dspy_rerank.testing import oracle_judge, scripted_lm

GRADES = {"a": 0.0, "b": 1.0, "c": 3.0}
QUERIES = [{"query": f"q{i}", "documents": ["a", "b", "c"][: 1 + i % 3]} for i in range(9)]


def sorter(**options):
    return dr.MergeSort(oracle_judge(GRADES, "pairwise"), **options)


def test_rankings_come_in_the_order_of_the_queries():
    found = sorter().rank_many(QUERIES)
    assert [p.ranking.query for p in found] == [q["query"] for q in QUERIES]
    assert [len(p.ranking) for p in found] == [1, 2, 3] * 3
    assert found[2].ranking.indices == [2, 1, 0]


def test_sync_and_async_agree():
    found = asyncio.run(sorter().arank_many(QUERIES))
    assert [p.ranking.indices for p in found] == [
        p.ranking.indices for p in sorter().rank_many(QUERIES)
    ]


def test_pairs_and_examples_are_read_as_queries():
    example = dspy.Example(query="q", documents=["a", "c"], relevance=[0, 3])
    found = sorter().rank_many(
        [("q", ["a", "b"]), example, example.with_inputs("query", "documents")]
    )
    assert [p.ranking.indices for p in found] == [[1, 0]] * 3


def test_common_keywords_give_way_to_a_querys_own():
    found = sorter().rank_many([*QUERIES[2:3], {**QUERIES[2], "top_k": 2}], top_k=1)
    assert [len(p.ranking) for p in found] == [1, 2]


def test_no_queries_give_no_rankings():
    assert sorter().rank_many([]) == []


def test_all_queries_share_one_limit_on_questions():
    running, most = 0, 0

    async def fn(query, passages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return 1.0

    reranker = dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), concurrency=3)
    reranker.rank_many(QUERIES)
    assert most == 3


def test_one_slow_query_does_not_hold_the_rest():
    """The slow query is answered only when all others are done."""
    done, others = [], asyncio.Event()

    async def fn(query, passages):
        if query == "slow":
            await others.wait()
        return 1.0

    def progress(finished, total):
        done.append(finished)
        if finished == total - 1:
            others.set()

    reranker = dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), concurrency=2)
    queries = [("slow", ["a"]), *((f"q{i}", ["a", "b"]) for i in range(20))]
    assert len(reranker.rank_many(queries, progress=progress)) == 21
    assert done == list(range(1, 22))


def test_the_limit_is_gone_afterwards():
    from dspy_rerank.engine import shared_limit

    async def work():
        await sorter().arank_many(QUERIES)
        return shared_limit.get()

    assert asyncio.run(work()) is None


def test_a_query_of_another_shape_says_what_was_expected():
    with pytest.raises(InputError, match="query 1 is str"):
        sorter().rank_many([QUERIES[0], "what is this"])


GOOD = {"query": "q", "documents": ["a", "b"]}
BAD = {
    "query 2: query is blank": {**GOOD, "query": " "},
    "query 2: there is no 'query'; it has q, documents": {"q": "a", "documents": ["a"]},
    "query 2: there is no 'documents'; it has query": {"query": "q"},
    "query 2: documents must be a list": {**GOOD, "documents": None},
    "query 2: query is NoneType": {**GOOD, "query": None},
    "query 2: unknown input 'id'; .*Item": {**GOOD, "id": 7},
    r"query 2: documents\[1\] is int": {**GOOD, "documents": ["a", 7]},
    "query 2: top_k is -1": {**GOOD, "top_k": -1},
    "query 2: deadline=-1": {**GOOD, "deadline": -1},
    "query 2: unknown input 'creiteria'": {**GOOD, "creiteria": "x"},
}


@pytest.mark.parametrize("says", BAD)
def test_a_query_that_cannot_be_used_is_named_before_anything_is_asked(says):
    lm = scripted_lm("2")
    with dspy.context(lm=lm), pytest.raises((InputError, TypeError), match=says):
        dr.ScoreSort(dr.PointwiseJudge()).rank_many([GOOD, GOOD, BAD[says]])
    assert lm.engine.prompts == []


def test_an_input_that_the_judge_needs_is_missed_before_anything_is_asked():
    lm = scripted_lm("2")
    judge = dr.PointwiseJudge("query, criteria, passage -> grade: float")
    with dspy.context(lm=lm), pytest.raises(InputError, match=r"query 1: .*needs criteria"):
        dr.ScoreSort(judge).rank_many([{**GOOD, "criteria": "x"}, GOOD])
    assert lm.engine.prompts == []


def test_documents_that_can_be_read_once_are_read_once():
    (found,) = sorter().rank_many([("q", (text for text in "abc"))])
    assert found.ranking.indices == [2, 1, 0]


def test_a_stream_ranks_the_rest():
    found = list(dr.stream(sorter(), [GOOD, ("", ["a"]), GOOD], in_order=True))
    assert [type(result.error) for result in found] == [type(None), InputError, type(None)]


def test_an_error_of_one_query_ends_them_all():
    broken = dr.FunctionJudge(lambda query, passages: "nonsense", "pairwise")
    with pytest.raises(JudgeError):
        dr.MergeSort(broken).rank_many(QUERIES)


def test_dspy_batch_works_and_keeps_its_meaning():
    examples = [dspy.Example(**q).with_inputs("query", "documents") for q in QUERIES]
    with dspy.context(lm=scripted_lm("A")):
        found = dr.MergeSort(dr.PairwiseJudge()).batch(
            examples, num_threads=3, disable_progress_bar=True
        )
    assert [len(p.ranking) for p in found] == [1, 2, 3] * 3
    assert threading.active_count() < 50


@pytest.mark.parametrize("options", [{"queries_at_once": 0}, {"concurrency": 0}])
def test_a_limit_that_lets_nothing_through_is_refused(options):
    judge = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")
    with pytest.raises(ValueError, match=next(iter(options))):
        dr.ScoreSort(judge).rank_many([("q", ["a"])], **options)
