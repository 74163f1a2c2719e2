"""What the engine does with an answer that comes later."""

import asyncio
from collections import Counter

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import Deferred

DOCUMENTS = [f"text {n}" for n in range(50)]


def later(known, asked):
    """A judge that has no answer yet where ``known`` is false; the first to be asked is slowest."""

    async def order(query, passages):
        asked.append(passages)
        number = len(asked)
        await asyncio.sleep(0.01 if number == 1 else 0)
        if not known(number):
            raise Deferred("later")
        return list(range(len(passages)))

    return dr.FunctionJudge(order, "listwise")


@pytest.mark.parametrize("on_error", ["original", "raise"])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_whole_round_is_asked_once(on_error, concurrency):
    asked = []
    sorter = dr.TopDown(later(lambda n: False, asked), on_error=on_error, concurrency=concurrency)
    with pytest.raises(Deferred):
        sorter("query", DOCUMENTS)
    assert len(asked) == 3
    assert len(set(map(tuple, asked))) == 3


def test_one_answer_that_is_missing_holds_the_next_round_back():
    asked = []
    with pytest.raises(Deferred):
        dr.TopDown(later(lambda n: n != 1, asked))("query", DOCUMENTS)
    assert len(asked) == 3


def test_other_queries_of_the_same_call_are_asked_too():
    asked = []
    queries = [(f"query {n}", DOCUMENTS) for n in range(3)]
    with pytest.raises(Deferred):
        dr.TopDown(later(lambda n: False, asked)).rank_many(queries)
    assert Counter(map(tuple, asked)).most_common(1)[0][1] == 3
    assert len(asked) == 9
