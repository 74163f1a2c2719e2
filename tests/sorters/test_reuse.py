"""What has been answered is not bought again: in a ranking, by transitivity, across rankings."""

import random
from functools import partial

import pytest

import dspy_rerank as dr
from dspy_rerank.memo import remembering
from dspy_rerank.sorters.plans import (
    all_pairs,
    drive,
    heap_sort,
    merge_sort,
    prp_sliding,
    survivor,
    top_down_pairs,
    tournament,
)
from dspy_rerank.sorters.plans.relations import Relations
from dspy_rerank.types import Judgment

TEXTS = [f"document {i}" for i in range(30)]


def chooser(truth, group):
    """Names the truly best of the group."""
    return Judgment("setwise", group, "ok", best=min(group, key=truth.index))


def truth_of(n, seed=0):
    return random.Random(1000 * seed + n).sample(range(n), n)


TRANSITIVE = {
    "merge": merge_sort,
    "heap in pairs": heap_sort,
    "heap of 4": partial(heap_sort, children=3),
    "heap of 10": partial(heap_sort, children=9),
    "sliding pairs": prp_sliding,
    "survivor in pairs": partial(survivor, window=1),
    "survivor of 9": survivor,
    "tournament in pairs": partial(tournament, window=2, whole=False),
    "tournament of 5": partial(tournament, window=5, whole=False),
}


@pytest.mark.parametrize("name", TRANSITIVE)
@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_no_question_is_asked_whose_answer_follows(name, n):
    """Whoever is shown has not lost to any other who is shown, over any chain of answers."""
    relations, truth = Relations(n), truth_of(n)
    plan = TRANSITIVE[name](n, min(n, 10))
    try:
        groups = next(plan)
        while True:
            for group in groups:
                assert relations.unbeaten(group) == group or "tournament of" in name
                assert len(relations.unbeaten(group)) > 1
            answers = [chooser(truth, group) for group in groups]
            for answer in answers:
                relations.add(answer.tiers)
            groups = plan.send(answers)
    except StopIteration:
        pass


def test_a_heap_in_pairs_saves_what_follows():
    """n=100, k=10: 264 questions in the field (FIELD.md 3.2), where a pair is asked again."""
    runs = [drive(heap_sort(100, 10), partial(chooser, truth_of(100, seed))) for seed in range(10)]
    assert sum(run.questions for run in runs) / len(runs) < 250


@pytest.mark.parametrize("plan", [all_pairs(12), top_down_pairs(40, 10)])
def test_no_pair_meets_twice(plan):
    asked = []
    drive(plan, lambda group: asked.append(frozenset(group)) or chooser(list(range(40)), group))
    assert len(asked) == len(set(asked)) > 60


@pytest.mark.parametrize("first", [(1, 2), (0,)])
def test_who_is_known_to_be_worse_is_not_shown(first):
    relations = Relations(3)
    relations.add([(0,), (1,), (2,)])
    assert relations.unbeaten(first) == first[:1]


def counting():
    """A judge of pairs, and everything it was asked."""
    asked = []

    def fn(query, passages):
        asked.append((query, *passages))
        return int(passages[1].split()[1]) - int(passages[0].split()[1])

    return dr.FunctionJudge(fn, "pairwise"), asked


def test_passes_of_a_consensus_share_their_answers():
    judge, asked = counting()
    ranking = dr.Consensus(dr.AllPairs(judge), passes=3)("q", TEXTS[:8]).ranking
    pairs = {frozenset(question) for question in asked}
    assert len(pairs) == 28
    assert ranking.usage.calls == len(asked) == len(set(asked)) < 3 * 28


@pytest.mark.parametrize(
    "build", [dr.MergeSort, dr.HeapSort, dr.PRPSliding, dr.Tournament, dr.TopDown, dr.AllPairs]
)
def test_within_a_memo_another_sorter_buys_nothing_new(build):
    judge, asked = counting()
    with remembering():
        dr.AllPairs(judge)("q", TEXTS[:12])
        ranking = build(judge)("q", TEXTS[:12], top_k=5).ranking
    assert len(asked) == 66
    assert ranking.usage.calls == ranking.usage.cached_calls > 0
    assert ranking.indices == [11 - i for i in range(12)][::-1][:5]


def test_outside_of_a_memo_a_ranking_forgets():
    judge, asked = counting()
    for _ in range(2):
        dr.AllPairs(judge)("q", TEXTS[:5])
    assert len(asked) == 20
