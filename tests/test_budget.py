"""Limits hold exactly: calls in flight, retries, fallbacks and re-asks included."""

import asyncio
import itertools

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.models import set_price
from dspy_rerank.testing import scripted_lm

DOCUMENTS = [f"document number {i} about something" for i in range(40)]
FAULTS = {
    "none": None,
    "refused": lm15.RateLimitError("slow down", status=429, retry_after=0.0),
    "broken": lm15.ServerError("oops", status=500),
    "lost": lm15.TransportError("gone"),
    "unreadable": "I cannot say",
}


class Taking:
    """A model's answers, and what they took, failing ones included where they were paid."""

    def __init__(self, fault=None, *, words=1, every=3):
        self.fault, self.every, self.words = fault, every, words
        self.calls = self.tokens = 0

    def __call__(self, prompt):
        self.calls += 1
        said = "2 " * self.words
        if self.fault is not None and self.calls % self.every == 0:
            said = self.fault
        if isinstance(said, str):
            self.tokens += len(prompt.split()) + len(said.split())
        return said


def ranked(lm, concurrency=64, judge=None, **limits):
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(
            judge or dr.PointwiseJudge(), concurrency=concurrency, error_retries=1
        )
        return sorter("q", DOCUMENTS, **limits).ranking


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("limit", [300, 1000, 2500])
def test_max_tokens_is_never_exceeded(fault, limit):
    takes = Taking(FAULTS[fault])
    ranking = ranked(scripted_lm(takes, latency=0.001), max_tokens=limit)
    assert takes.calls > 0
    assert takes.tokens <= limit
    assert sorted(ranking.indices) == list(range(40))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("limit", [1, 7, 30])
def test_max_calls_is_never_exceeded(fault, limit):
    takes = Taking(FAULTS[fault])
    ranked(scripted_lm(takes, latency=0.001), max_calls=limit)
    assert 0 < takes.calls <= limit


@pytest.mark.parametrize("fault", FAULTS)
def test_max_cost_is_never_exceeded(fault):
    takes = Taking(FAULTS[fault])
    lm = scripted_lm(takes, latency=0.001)
    set_price(lm, input_cost_per_token=0.001, output_cost_per_token=0.001)
    ranking = ranked(lm, max_cost=1.0)
    assert 0 < takes.tokens * 0.001 <= 1.0
    assert ranking.degraded


def test_what_was_held_and_not_taken_is_free_again():
    takes = Taking()
    ranking = ranked(scripted_lm(takes), max_tokens=2 * len(DOCUMENTS) * 60, concurrency=1)
    assert not ranking.degraded
    assert takes.calls == len(DOCUMENTS)


def test_long_answers_are_held_before_they_come():
    """Forty answers of 200 tokens in flight at once would be 8,000."""
    takes = Taking(words=200)
    ranking = ranked(
        scripted_lm(takes, latency=0.001), judge=dr.PointwiseJudge(max_tokens=200), max_tokens=1200
    )
    assert 0 < takes.tokens <= 1200
    assert "max_tokens=1200 was reached" in ranking.reasons[0]


def test_an_answer_that_nobody_has_limited_is_limited_to_what_is_left():
    lm = scripted_lm("2")
    seen = []
    engine = lm._async_engine_spec
    complete = engine.complete

    async def recorded(request):
        seen.append(request.config.max_tokens)
        return await complete(request)

    engine.complete = recorded
    ranked(lm, max_tokens=100_000)
    ranked(lm, max_tokens=500)
    assert set(seen[:40]) == {2048}
    assert all(cap < 500 for cap in seen[40:])


def test_an_answers_own_limit_is_left_alone():
    lm = scripted_lm("2", max_tokens=30)
    config = []
    engine = lm._async_engine_spec
    complete = engine.complete

    async def recorded(request):
        config.append(request.config.max_tokens)
        return await complete(request)

    engine.complete = recorded
    ranked(lm, max_tokens=100_000)
    assert set(config) == {30}


def test_a_price_nobody_knows_is_an_error_before_any_call():
    lm = scripted_lm("2", model="nobody/knows")
    with pytest.raises(InputError, match=r"'nobody/knows'.*input_cost_per_token.*set_price"):
        ranked(lm, max_cost=1.0)
    assert not lm.engine.prompts


def test_functions_and_the_embedded_model_cost_nothing():
    judge = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")
    assert not dr.ScoreSort(judge)("q", DOCUMENTS, max_cost=0.01).ranking.degraded


def test_an_answer_from_a_cache_takes_nothing():
    lm = scripted_lm("2", cache=True)
    set_price(lm, input_cost_per_token=1.0, output_cost_per_token=1.0)
    judge = dr.PointwiseJudge(max_tokens=5)
    first = ranked(lm, judge=judge).usage
    again = ranked(lm, judge=judge, max_cost=200.0)
    assert first.cost == first.prompt_tokens + first.completion_tokens > 200
    assert (again.usage.cost, again.usage.cached_calls, again.degraded) == (0.0, 40, False)


def test_an_abandoned_call_counts_as_its_worst():
    """A call past the deadline may have been paid for: nobody knows."""
    from dspy_rerank.budget import Allowance, Amount, Hold, Meter
    from dspy_rerank.options import Options

    meter = Meter(Options(max_tokens=100))
    assert meter.try_hold(Amount(60))[0] == ""
    Hold(Allowance(meter), Amount(60)).settle(None)
    assert meter.try_hold(Amount(41)) == ("max_tokens=100 was reached", False)


def test_a_prompt_that_proved_longer_than_estimated_is_estimated_higher_from_then_on():
    class Counting(Taking):
        def __call__(self, prompt):
            self.tokens += 1000
            return super().__call__(prompt)

    lm = scripted_lm("2")
    engine = lm._async_engine_spec
    complete, asked = engine.complete, []

    async def dear(request):
        asked.append(request)
        answer = await complete(request)
        from dataclasses import replace

        return replace(answer, usage=lm15.Usage(input_tokens=900, output_tokens=1))

    engine.complete = dear
    ranked(lm, max_tokens=2000, concurrency=1)
    assert len(asked) == 2


def test_calls_wait_for_each_other_rather_than_stop_the_ranking():
    """Each may take nearly all of the limit and takes little: one after another they fit."""
    takes = Taking()
    lm = scripted_lm(takes, latency=0.001)
    ranking = ranked(lm, judge=dr.PointwiseJudge(max_tokens=3000), max_tokens=6000)
    assert takes.calls == 40
    assert not ranking.degraded


def test_the_deadline_holds_while_waiting_for_a_place_among_many_rankings():
    lm = scripted_lm("2", latency=30.0)
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), concurrency=1)
        queries = [{"query": f"q{i}", "documents": ["a"]} for i in range(3)]
        found = sorter.rank_many(queries, deadline=0.1, queries_at_once=3)
    assert all(p.ranking.reasons == ("deadline=0.1s was reached",) for p in found)


def test_nothing_more_is_asked_once_a_limit_was_reached():
    sizes = itertools.cycle([40, 1])
    documents = [f"{i} " + "word " * next(sizes) for i in range(20)]
    lm = scripted_lm("2")
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge(max_tokens=2), concurrency=1)
        ranking = sorter("q", documents, max_tokens=400).ranking
    known = [judgment.known for judgment in ranking.judgments]
    assert known == sorted(known, reverse=True)


def test_limits_hold_on_any_event_loop():
    lm = scripted_lm(Taking(), latency=0.001)
    sorter = dr.ScoreSort(dr.PointwiseJudge(), concurrency=64)

    async def app():
        with dspy.context(lm=lm):
            return (await sorter.acall("q", DOCUMENTS, max_tokens=1000)).ranking

    used = asyncio.run(app()).usage
    assert 0 < used.prompt_tokens + used.completion_tokens <= 1000


@pytest.mark.parametrize("limit", [{"max_cost": 1e-9}, {"max_cost": 0.0}, {"max_calls": 0}])
def test_no_call_costs_nothing(limit):
    lm = scripted_lm("2")
    set_price(lm, input_cost_per_token=1.0, output_cost_per_token=1.0)
    ranking = ranked(lm, **limit)
    assert (lm.engine.prompts, ranking.usage.cost, ranking.usage.cost_reason) == ([], 0.0, "")
    assert "0 tokens, $0, " in ranking.summary()
    assert "unknown" not in ranking.summary().replace("40 unknown", "")


def test_nothing_to_ask_costs_nothing():
    with dspy.context(lm=scripted_lm("2")):
        ranking = dr.TopDown(dr.ListwiseJudge())("q", ["alone"]).ranking
    assert (ranking.usage.calls, ranking.usage.cost) == (0, 0.0)


def test_a_call_that_was_broken_off_may_have_cost_something():
    ranking = ranked(scripted_lm("2", latency=5.0), deadline=0.05)
    assert (ranking.usage.calls, ranking.usage.cost) == (0, None)
    assert ranking.usage.cost_reason == "no call was answered"


def test_a_sum_is_known_only_where_all_of_it_is():
    known, unknown, nothing = dr.Usage(calls=1, cost=2.0), dr.Usage(calls=1), dr.Usage()
    broken = dr.Usage(cost_reason="why")
    assert (known + nothing).cost == 2.0
    assert (nothing + nothing).cost == 0.0
    assert [(known + other).cost for other in (unknown, broken)] == [None, None]
    assert (broken + known).cost_reason == "why"
