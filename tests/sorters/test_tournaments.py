"""Tournaments and partitions: their formulas, what they promise, and where they stop."""

import random
from functools import partial

import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.sorters.plans import (
    drive,
    prp_sliding,
    td_part,
    tour_rank,
    tour_rank_shape,
    tournament,
)
from dspy_rerank.sorters.plans.relations import Relations
from dspy_rerank.sorters.plans.shape import bounds
from dspy_rerank.sorters.plans.tournament import _ordered
from dspy_rerank.types import Judgment


def truth_of(n, seed=0):
    return random.Random(1000 * seed + n).sample(range(n), n)


def perfect(truth, group):
    return Judgment("listwise", group, "ok", order=tuple(sorted(group, key=truth.index)))


def unknown(group):
    return Judgment("listwise", group, "unknown", reason="no answer")


# Relations.


def test_relations_follow_chains():
    relations = Relations(4)
    assert relations.add([(0,), (1,)])
    assert relations.add([(1,), (2,)])
    assert not relations.add([(0,), (2,)])
    assert [relations.superiors(item) for item in range(4)] == [0, 1, 2, 0]
    assert relations.open(0, 0b1111) == 0b1000


def test_a_cycle_makes_its_members_equal():
    relations = Relations(4)
    for order in ([(0,), (1,)], [(1,), (2,)], [(2,), (0,)], [(2,), (3,)]):
        relations.add(order)
    assert [relations.superiors(item) for item in range(4)] == [0, 0, 0, 3]
    assert relations.open(1, 0b1111) == 0


def test_a_closed_group_is_open_no_more():
    relations = Relations(3)
    relations.close((0, 1))
    assert relations.open(0, 0b111) == 0b100


# Tournament.


@pytest.mark.parametrize("seed", range(20))
def test_the_best_three_of_25_horses_by_fives_in_seven_races(seed):
    truth = truth_of(25, seed)
    run = drive(tournament(25, 3, window=5), partial(perfect, truth))
    assert list(run.outcome.order[:3]) == truth[:3]
    assert (run.questions, run.rounds) == (7, 3)


@pytest.mark.parametrize("n", range(61))
@pytest.mark.parametrize("window", [2, 5, 20])
def test_a_perfect_judge_gives_the_right_top(n, window):
    truth = truth_of(n)
    for k in {1, 3, 10, n} & set(range(1, n + 1)):
        for plan in (tournament(n, k, window=window), td_part(n, k, window=window)):
            order = drive(plan, partial(perfect, truth)).outcome.order
            assert list(order[:k]) == truth[:k]


def test_tournament_asks_as_little_as_the_field_measured():
    """n=100, k=10, w=20: 6.7 questions (FIELD.md 3.2), here in fewer than 3 rounds."""
    runs = [drive(tournament(100, 10), partial(perfect, truth_of(100, seed))) for seed in range(20)]
    assert sum(run.questions for run in runs) / len(runs) <= 7
    assert max(run.rounds for run in runs) <= 3


def test_strength_orders_those_whom_contradictions_made_equal():
    """Each of three beats the next once: a cycle. Then 2 wins the most, of both the others."""
    relations = [((0,), (1,)), ((1,), (2,)), ((2,), (0,)), ((2,), (0,))]
    assert _ordered(_related(relations), relations, 3) == (2, 1, 0)


def _related(orders):
    relations = Relations(3)
    for order in orders:
        relations.add(order)
    return relations


# TDPart.


def test_td_part_that_finds_nobody_above_its_pivot_is_two_deep():
    run = drive(td_part(100, 10), partial(perfect, list(range(100))))
    assert (run.questions, run.rounds, run.reads) == (6, 2, 105)


def test_td_part_drops_nobody_unread():
    """All the best come last: a buffer would overflow, and the judge is perfect."""
    truth = list(range(100))[::-1]
    order = drive(td_part(100, 10), partial(perfect, truth)).outcome.order
    assert list(order[:10]) == truth[:10]


def test_td_part_is_not_deep_in_python_however_poor_its_pivots():
    """The pivot is always the worst: one candidate is settled at a time."""
    run = drive(td_part(400, 5, window=5), lambda g: perfect(list(range(400))[::-1], g))
    assert sorted(run.outcome.order) == list(range(400))
    assert run.rounds > 300


# TourRank.


@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_tour_rank_of_the_field(rounds):
    """13 R questions and 185 R reads, 5 deep (FIELD.md 3.2)."""
    shape = drive(tour_rank(100, rounds=rounds), unknown).shape
    assert shape == (13 * rounds, 5, 185 * rounds)
    assert tuple(map(bounds, tour_rank_shape(100, rounds=rounds))) == (
        (13, 13 * rounds), (5, 5), (185, 185 * rounds),
    )  # fmt: skip


def test_tour_rank_scores_are_stages_survived():
    outcome = drive(tour_rank(100, rounds=3), partial(perfect, list(range(100)))).outcome
    assert outcome.order == tuple(range(100))
    assert [outcome.scores[p] for p in (0, 2, 5, 10, 20, 50)] == [15, 12, 9, 6, 3, 0]


def test_tour_rank_shows_groups_in_another_order_each_time():
    groups = []
    drive(tour_rank(20, rounds=2), lambda group: groups.append(group) or unknown(group))
    assert sorted(groups[0]) == sorted(groups[1]) == list(range(20))
    assert groups[0] != groups[1]


# Sliding pairs.


@pytest.mark.parametrize(("n", "passes"), [(100, 10), (30, 1), (7, 20), (2, 2)])
def test_sliding_passes_run_one_behind_the_other(n, passes):
    done = min(passes, n - 1)
    run = drive(prp_sliding(n, n, passes=passes), partial(perfect, list(range(n))[::-1]))
    assert run.rounds == n + done - 2
    assert run.questions <= sum(n - 1 - turn for turn in range(done))
    assert list(run.outcome.order[:done]) == list(range(n))[::-1][:done]


@pytest.mark.parametrize("plan", [td_part(9, 3, window=1), tournament(9, 3, window=1)])
def test_windows_of_one_are_refused(plan):
    with pytest.raises(InputError, match="window"):
        next(plan)


def test_tour_rank_needs_a_round():
    with pytest.raises(InputError, match="rounds"):
        next(tour_rank(9, rounds=0))
