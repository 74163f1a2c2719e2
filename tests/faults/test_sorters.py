"""Every sorter and every kind of judge, under every fault.

Engine, synchronous or not, policy and how often the fault is met go round, so that each sorter
and each fault meets all of them; ``test_matrix`` has the full product for one sorter.
"""

from itertools import product

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.sorters import SORTERS
from dspy_rerank.testing.faults import CATALOGUE
from tests.faults import effects
from tests.faults.effects import effect
from tests.faults.harness import AMPLE, GRADES, STALLED, best_first, ranked, serving

JUDGES = {
    "pointwise": dr.PointwiseJudge, "pairwise": dr.PairwiseJudge,
    "setwise": dr.SetwiseJudge, "listwise": dr.ListwiseJudge,
}  # fmt: skip
SMALL = {dr.SlidingWindow: {"window": 4, "step": 2}}
"""Several rounds over six documents."""
CASES = [
    (dr.ScoreSort, "pointwise"), (dr.AllPairs, "pairwise"), (dr.MergeSort, "pairwise"),
    (dr.PRPSliding, "pairwise"), (dr.HeapSort, "setwise"), (dr.Survivor, "setwise"),
    (dr.Tournament, "setwise"), (dr.TDPart, "setwise"), (dr.SlidingWindow, "listwise"),
    (dr.TourRank, "listwise"), (dr.Consensus, "listwise"), (dr.TopDown, "listwise"),
    (dr.TopDown, "pairwise"),
]  # fmt: skip
ROUND = list(product(("direct", "litellm"), ("sync", "async"), ("original", "raise"), (1, 1000)))
EVERY = [
    pytest.param(sorter, kind, fault, *ROUND[(5 * i + 3 * j) % len(ROUND)],
                 id=f"{sorter.__name__}-{kind}-{fault}")
    for i, (sorter, kind) in enumerate(CASES) for j, fault in enumerate(CATALOGUE)
]  # fmt: skip


def built(sorter, kind, **options):
    judge = JUDGES[kind]()
    if sorter is dr.Consensus:
        return dr.Consensus(dr.TopDown(judge), passes=2, **options)
    return sorter(judge, **SMALL.get(sorter, {}), **options)


def outcomes(fault, engine, kind):
    """What may come of a fault: an order is asked for without log-probabilities."""
    found = effect(fault, engine)
    return effects.LASTING if (found, kind) == (effects.REFUSED, "listwise") else found


@pytest.mark.parametrize(("sorter", "kind", "fault", "engine", "mode", "policy", "times"), EVERY)
def test_every_sorter_under_every_fault(sorter, kind, fault, engine, mode, policy, times):
    outcome = outcomes(fault, engine, kind)
    deadline = STALLED if outcome == effects.STALLED else AMPLE
    reranker = built(sorter, kind, error_retries=1, on_error=policy, deadline=deadline)
    fails = outcome == effects.LASTING or (
        times > 1 and outcome in (effects.RETRIED, effects.REFUSED)
    )
    with serving(engine, faults=[CATALOGUE[fault]] * times) as (server, lm):
        if outcome == effects.FATAL or (fails and policy == "raise"):
            expected = effects.FATAL_TYPES if outcome == effects.FATAL else ModelError
            with pytest.raises(expected):
                ranked(reranker, lm, mode)
            return
        ranking = ranked(reranker, lm, mode)
        assert sorted(ranking.indices) == list(range(len(GRADES)))
        assert ranking.usage.calls + ranking.usage.failed_calls <= server.requests
        if fails:
            assert (ranking.indices, ranking.degraded) == (list(range(6)), True)
            assert ranking.usage.failed_calls >= 1
            assert all(item.score is None for item in ranking)
        elif outcome == effects.STALLED:
            assert ranking.degraded
            assert "deadline" in ranking.reasons[0]
        elif outcome == effects.UNREAD and times > 1:
            assert ranking.unknowns == len(ranking.judgments) > 0
            assert (ranking.indices, ranking.degraded) == (list(range(6)), False)
        else:
            assert ranking.indices[0] == best_first()[0]
            assert (ranking.degraded, ranking.unknowns) == (False, 0)
            assert server.requests == ranking.usage.calls + ranking.usage.failed_calls


def test_every_sorter_and_every_kind_of_judge_is_here():
    assert {sorter for sorter, _ in CASES} == set(SORTERS)
    assert {kind for _, kind in CASES} == set(JUDGES)


def test_the_round_covers_every_pair():
    """Each sorter and each fault meets both engines, both ways to call and both policies."""
    for axis in ((0, 3), (2, 3), (0, 4), (2, 4), (0, 5), (2, 5), (0, 6), (2, 6)):
        seen = {tuple(param.values[place] for place in axis) for param in EVERY}
        kinds = [len({param.values[place] for param in EVERY}) for place in axis]
        assert len(seen) == kinds[0] * kinds[1]
