"""Streams: every query once, in bounded memory, whatever happens to one of them."""

import asyncio
import threading

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.testing import scripted_lm
from tests.streaming.builders import by_length

QUERIES = [{"query": f"q{i}", "documents": ["a", "bb", "ccc"]} for i in range(20)]


def waiting_for(event, name="slow"):
    """A reranker whose judge answers one query only once an event is set."""

    async def judge(query, passages):
        if query == name:
            while not event.is_set():
                await asyncio.sleep(0.001)
        return float(len(passages[0]))

    return dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"))


def test_every_query_gives_one_result():
    found = list(dr.stream(by_length(), QUERIES))
    assert sorted(result.number for result in found) == list(range(20))
    assert all(result.ranking.indices == [2, 1, 0] for result in found)
    assert all(result.query is QUERIES[result.number] for result in found)


def test_asynchronous_streams_give_the_same():
    async def collect(queries):
        return [r.number async for r in dr.stream(by_length(), queries, in_order=True)]

    async def later():
        for query in QUERIES:
            yield query

    assert asyncio.run(collect(QUERIES)) == list(range(20))
    assert asyncio.run(collect(later())) == list(range(20))


def test_a_slow_query_holds_nobody_up_unless_the_order_is_kept():
    event = threading.Event()
    queries = [{"query": "slow", "documents": ["a"]}, *QUERIES[:6]]
    numbers = []
    for result in dr.stream(waiting_for(event), queries, queries_at_once=2):
        numbers.append(result.number)
        if len(numbers) == 6:
            event.set()
    assert numbers[-1] == 0
    event.set()
    kept = dr.stream(waiting_for(event), queries, queries_at_once=2, in_order=True)
    assert [result.number for result in kept] == list(range(7))


def test_a_query_that_cannot_be_ranked_is_a_result_with_its_error():
    queries = [QUERIES[0], {"query": " ", "documents": ["a"]}, 3, {"query": "q", "documents": [4]}]
    found = list(dr.stream(by_length(), queries, in_order=True))
    assert found[0].ranking is not None
    assert [type(result.error).__name__ for result in found] == [
        "NoneType", "InputError", "InputError", "DocumentTypeError",
    ]  # fmt: skip


@pytest.mark.parametrize("in_order", [False, True])
def test_no_more_is_read_than_there_is_room_for(in_order):
    read = 0

    def reading():
        nonlocal read
        for query in QUERIES:
            read += 1
            yield query

    taken = 0
    for _ in dr.stream(by_length(), reading(), queries_at_once=2, ahead=4, in_order=in_order):
        taken += 1
        assert read <= taken + 4
    assert taken == 20


def test_a_stalled_first_query_does_not_let_results_pile_up():
    event, read = threading.Event(), []

    def reading():
        for query in [{"query": "slow", "documents": ["a"]}, *QUERIES]:
            read.append(query)
            if len(read) == 6:
                event.set()
            yield query

    stream = dr.stream(waiting_for(event), reading(), queries_at_once=2, ahead=6, in_order=True)
    first = next(iter(stream))
    assert first.number == 0
    assert len(read) <= 7


def test_a_wrong_key_ends_the_stream():
    lm = scripted_lm([dspy.lm15.AuthError("bad key")])
    with pytest.raises(dspy.LMError, match="bad key"):
        list(dr.stream(dr.ScoreSort(dr.PointwiseJudge()), QUERIES, lm=lm))


def test_all_queries_share_one_limit_on_questions():
    running, most = 0, 0

    async def judge(query, passages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return 1.0

    reranker = dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"), concurrency=3)
    assert len(list(dr.stream(reranker, QUERIES, queries_at_once=6))) == 20
    assert most == 3


def test_all_queries_share_one_budget():
    lm = scripted_lm("2")
    stream = dr.stream(
        dr.ScoreSort(dr.PointwiseJudge()), QUERIES, lm=lm, total=dr.Options(max_calls=7)
    )
    found = [result.ranking for result in stream]
    assert sum(ranking.usage.calls for ranking in found) == 7
    assert len(lm.engine.prompts) == 7
    assert any("the run's max_calls=7" in reason for r in found for reason in r.reasons)


def test_leaving_the_loop_cancels_what_is_under_way():
    cancelled, begun = threading.Event(), threading.Event()

    async def judge(query, passages):
        if query == "q0":
            await asyncio.to_thread(begun.wait)
            return 1.0
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    reranker = dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"))
    for _ in dr.stream(reranker, QUERIES[:2]):
        break
    assert cancelled.wait(20)


def test_a_stream_inside_an_asynchronous_judge_says_what_to_do():
    async def judge(query, passages):
        return len(list(dr.stream(by_length(), QUERIES)))

    reranker = dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"), on_error="raise")
    (found,) = dr.stream(reranker, QUERIES[:1])
    assert "await" in str(found.error)


def test_common_keywords_give_way_to_a_querys_own():
    queries = [QUERIES[0], {**QUERIES[1], "top_k": 2}]
    found = dr.stream(by_length(), queries, top_k=1, in_order=True)
    assert [len(result.ranking) for result in found] == [1, 2]


@pytest.mark.parametrize("options", [{"queries_at_once": 0}, {"ahead": 0}, {"concurrency": 0}])
def test_a_limit_that_lets_nothing_through_is_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        dr.stream(by_length(), QUERIES, **options)


def test_a_query_without_its_keys_says_what_came():
    (found,) = dr.stream(by_length(), [{"q": "a", "documents": ["a"]}])
    assert "there is no 'query'; it has q, documents" in str(found.error)


def test_an_id_is_told_where_it_goes():
    judge = dr.ScoreSort(dr.PointwiseJudge())
    (found,) = dr.stream(judge, [{"id": 7, **QUERIES[0]}], lm=scripted_lm("2"))
    assert "unknown input 'id'" in str(found.error)
    assert "Item(id, query, documents)" in str(found.error)


def test_a_result_is_shown_without_its_documents():
    many = {"query": "q", "documents": ["long text"] * 1000}
    found = [*dr.stream(by_length(), [many, {"query": " " * 500, "documents": []}], in_order=True)]
    assert repr(found[0]).startswith("<Streamed 0: <Ranking of 1000/1000: ")
    assert repr(found[1]).startswith("<Streamed 1: no ranking: InputError: query is blank")
    assert all(len(repr(each)) < 250 for each in found)
