"""Forecasts against what runs on scripted models then take."""

import pytest

import dspy_rerank as dr
from dspy_rerank.planning import Range, forecast, measure
from dspy_rerank.planning.hours import Speed
from dspy_rerank.prices import Price
from dspy_rerank.streaming import Item, Journal, run
from dspy_rerank.testing import scripted_lm

ORDER = " > ".join(f"[{place}]" for place in range(1, 21))


def items(count=5, documents=24):
    for number in range(count):
        texts = [f"Passage {p} of {number} says this and that. " * 4 for p in range(documents)]
        yield Item(str(number), f"What is said about {number}?", texts)


def actual(reranker, lm, tmp_path, queries):
    with Journal(tmp_path / "o.jsonl", "p") as journal:
        return run(queries, reranker, journal, lm=lm)


RERANKERS = {
    "pointwise": (lambda: dr.ScoreSort(dr.PointwiseJudge()), "2"),
    "listwise": (lambda: dr.TopDown(dr.ListwiseJudge()), ORDER),
    "windows": (lambda: dr.SlidingWindow(dr.ListwiseJudge(), window=10, step=5), ORDER),
    "pairwise": (lambda: dr.MergeSort(dr.PairwiseJudge()), "A"),
    "setwise": (lambda: dr.HeapSort(dr.SetwiseJudge()), "A"),
    "panel": (lambda: dr.ScoreSort(dr.Panel([dr.PointwiseJudge(), dr.PointwiseJudge()])), "2"),
}


@pytest.mark.parametrize("name", RERANKERS)
def test_calls_and_tokens_are_within_what_was_said(tmp_path, name):
    """Calls exactly or within the range; tokens within the range of a measured call, 15 %."""
    make, answer = RERANKERS[name]
    queries = list(items(2, 24))
    lm = scripted_lm(answer)
    measured = measure(make(), queries[0], lm)
    assert len(lm.engine.prompts) == 1
    found = forecast(queries, make(), measured=measured)
    used = actual(make(), lm, tmp_path, queries).usage
    assert used.calls in found.calls
    assert used.prompt_tokens in found.prompt_tokens
    assert used.completion_tokens in found.completion_tokens
    spread = max(r.hi / r.lo for r in (found.calls, found.passages_read))
    assert found.prompt_tokens.hi <= found.prompt_tokens.lo * spread * 1.4


def test_calls_that_do_not_depend_on_answers_are_exact():
    found = forecast(items(3, 24), dr.ScoreSort(dr.PointwiseJudge()))
    assert found.calls == Range(72, 72)
    assert (found.queries, found.candidates, found.rounds) == (3, Range(24, 24), Range(1, 1))


def test_nothing_is_asked_and_a_functions_judge_is_not_called():
    def judge(query, passages):
        raise AssertionError("asked")

    found = forecast(items(2, 5), dr.ScoreSort(dr.FunctionJudge(judge, "pointwise")))
    assert found.calls == Range(10, 10)
    assert found.completion_tokens == Range()


def test_queries_that_cannot_be_ranked_are_counted_apart():
    queries = [*items(2, 3), Item("b", " ", ["a"]), Item("c", "q", [3]), Item("d", None)]
    found = forecast(queries, dr.ScoreSort(dr.PointwiseJudge()))
    assert (found.queries, found.unusable) == (2, 3)


def test_an_answer_that_explains_itself_may_be_long():
    short = forecast(items(1), dr.ScoreSort(dr.PointwiseJudge()))
    long = forecast(items(1), dr.ScoreSort(dr.PointwiseJudge(reasoning=True)))
    cut = forecast(items(1), dr.ScoreSort(dr.PointwiseJudge(reasoning=True, max_tokens=64)))
    assert short.completion_tokens.hi < cut.completion_tokens.hi < long.completion_tokens.hi
    assert cut.completion_tokens.hi == 24 * 64


def test_a_long_beginning_is_read_again_at_the_price_of_cached_tokens():
    judge = dr.PointwiseJudge(instructions="Grade the passage by these rules. " * 300)
    found = forecast(items(2), dr.ScoreSort(judge))
    price = Price(1.0, 1.0, cached=0.1)
    assert found.repeated_tokens.lo > 0.5 * found.prompt_tokens.lo
    assert found.cost(price, cached=True).hi < 0.6 * found.cost(price).hi
    assert forecast(items(2), dr.ScoreSort(dr.PointwiseJudge())).repeated_tokens == Range()


def test_the_slowest_limit_decides_the_time():
    calls, tokens, rounds = Range(600, 600), Range(6000, 6000), Range(3, 3)
    free = Speed(Range(2, 2), 10)
    assert free.seconds(calls, tokens, rounds) == (Range(120, 120), "10 questions in flight")
    slow = Speed(Range(2, 2), 10, rpm=60)
    assert slow.seconds(calls, tokens, rounds)[0] == Range(600, 600)
    tight = Speed(Range(2, 2), 10, rpm=60, tpm=300)
    assert tight.seconds(calls, tokens, rounds) == (Range(1200, 1200), "300 tokens a minute")
    deep = Speed(Range(2, 2), 10)
    assert deep.seconds(calls, tokens, Range(100, 100)) == (Range(200, 200), "one query's rounds")
