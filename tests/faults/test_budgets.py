"""No limit is exceeded under faults, as the server counts: retries, re-asks and refusals too."""

import pytest

import dspy_rerank as dr
from dspy_rerank.prices import set_price
from dspy_rerank.testing import at_random, faults
from tests.faults.harness import GRADES, ranked, serving

TRIED_AGAIN = [
    faults.rate_limit(0), faults.status(500), faults.reset(), faults.half_body(), faults.prose(),
    faults.refused_logprobs(), faults.empty_answer(), faults.invalid_json(),
]  # fmt: skip
MIXED = dict.fromkeys(TRIED_AGAIN, 0.08)
UNPAID = ("rate limit, Retry-After 0", "status 500", "logprobs refused")
"""Faults by which the provider says no, and bills nothing."""
PER_TOKEN = 0.001


def sorters(**options):
    return [
        dr.ScoreSort(dr.PointwiseJudge(), retries=3, **options),
        dr.AllPairs(dr.PairwiseJudge(), retries=3, **options),
        dr.TopDown(dr.ListwiseJudge(), retries=3, **options),
    ]


def billed(server):
    """Tokens of all requests that a provider would bill, counted as the server counts."""
    return sum(len(a.prompt.split()) + 1 for a in server.asked if a.fault not in UNPAID)


def assert_whole(ranking):
    assert sorted(ranking.indices) == list(range(len(GRADES)))


@pytest.mark.parametrize("limit", [1, 4, 9])
@pytest.mark.parametrize("fault", TRIED_AGAIN, ids=str)
def test_max_calls_holds_under_each_fault(fault, limit):
    for sorter in sorters(max_calls=limit, error_retries=5):
        with serving(faults=[fault] * 1000) as (server, lm):
            assert_whole(ranked(sorter, lm))
            assert server.requests <= limit


@pytest.mark.parametrize("engine", ["direct", "litellm"])
@pytest.mark.parametrize("seed", range(3))
def test_max_calls_holds_under_a_mixture(engine, seed):
    for sorter in sorters(max_calls=7, error_retries=5):
        with serving(engine, faults=at_random(MIXED, seed)) as (server, lm):
            ranking = ranked(sorter, lm)
            assert_whole(ranking)
            assert server.requests <= 7
            assert ranking.usage.calls + ranking.usage.failed_calls <= server.requests


@pytest.mark.parametrize("limit", [50, 400, 1500])
@pytest.mark.parametrize("seed", range(3))
def test_max_tokens_holds_under_a_mixture(seed, limit):
    for sorter in sorters(max_tokens=limit, error_retries=5):
        with serving(faults=at_random(MIXED, seed)) as (server, lm):
            ranking = ranked(sorter, lm.copy(max_tokens=5))
            assert_whole(ranking)
            assert billed(server) <= limit


@pytest.mark.parametrize("limit", [0.05, 0.4, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_max_cost_holds_under_a_mixture(seed, limit):
    for sorter in sorters(max_cost=limit, error_retries=5):
        with serving(faults=at_random(MIXED, seed)) as (server, lm):
            priced = lm.copy(max_tokens=5)
            set_price(priced, input_cost_per_token=PER_TOKEN, output_cost_per_token=PER_TOKEN)
            assert_whole(ranked(sorter, priced))
            assert billed(server) * PER_TOKEN <= limit + 1e-9


@pytest.mark.parametrize("fault", [faults.hang(), faults.slow(60), faults.rate_limit(60)], ids=str)
@pytest.mark.parametrize("engine", ["direct", "litellm"])
def test_the_deadline_holds_while_nothing_comes(engine, fault):
    for sorter in sorters(deadline=0.2):
        with serving(engine, faults=fault) as (server, lm):
            ranking = ranked(sorter, lm)
            assert_whole(ranking)
            assert ranking.reasons == ("deadline=0.2s was reached",)
            assert server.requests <= 8
