"""Tournaments in stages, side by side, in which candidates collect points."""

import random
from collections.abc import Iterator, Sequence

from ...aggregate import descending
from ...errors import InputError
from ...types import Group, Judgment, Outcome, Plan
from .lockstep import Steps, lockstep
from .shape import Shape, between, bounds
from .simulate import fixed_shape


def tour_rank(n: int, *, rounds: int = 1, window: int = 20, seed: int = 0) -> Plan:
    """TourRank (arXiv 2406.11678): for n=100 in windows of 20 it is 13 R questions, depth 5.

    A tournament takes its pool down the series 1-2-5 (100, 50, 20, 10, 5, 2). A stage deals the
    pool into groups, like cards, and the upper part of each group goes on and gets a point. All R
    tournaments run side by side and differ in the order in which groups are shown.

    A tie, a "none" or an unknown lets the earlier candidates go on.

    Args:
        n: Number of candidates, at least 0.
        rounds: Tournaments R, at least 1.
        window: Most candidates in a question, at least 2.
        seed: Of the order in which groups are shown.

    Returns:
        All positions by falling points, ties in incoming order; scores are the points, 0 to R
        times the number of stages, and there are none where no answer told anybody apart.
    """
    if window < 2 or rounds < 1:
        raise InputError(f"window={window}, rounds={rounds}: at least 2 and 1 are needed")
    rngs = [random.Random(f"{seed} {tournament}") for tournament in range(rounds)]
    played = yield from lockstep([_tournament(n, window, rng) for rng in rngs])
    if not any(told for _, told in played):
        return Outcome(tuple(range(n)))
    points = [0.0] * n
    for position in (winner for winners, _ in played for winner in winners):
        points[position] += 1
    return Outcome(descending(points), tuple(points))


def tour_rank_shape(n: int, *, rounds: int = 1, window: int = 20) -> Shape:
    """Cost of ``tour_rank``: R times that of one tournament, which is exact.

    At least, it is that of one: tournaments may come to ask the same question in the same order,
    and it is not asked again.
    """
    one = fixed_shape(tour_rank(n, window=window))
    questions, reads = (bounds(count).hi for count in (one.questions, one.reads))
    return Shape(between(questions, rounds * questions), one.rounds, between(reads, rounds * reads))


def _tournament(n: int, window: int, rng: random.Random) -> Steps[tuple[list[int], bool]]:
    """Everyone who got on, once for each stage survived, and whether any answer told why."""
    winners, pool, told = list[int](), list(range(n)), False
    for size in _sizes(n):
        groups = _groups(pool, n, window)
        judgments = yield [tuple(rng.sample(group, len(group))) for group in groups]
        places = [size // len(groups) + (i < size % len(groups)) for i in range(len(groups))]
        ranked = [_ranked(judgment) for judgment in judgments]
        pool = sorted(p for order, kept in zip(ranked, places, strict=True) for p in order[:kept])
        winners += pool
        told = told or any(len(judgment.tiers) > 1 for judgment in judgments)
    return winners, told


def _sizes(n: int) -> Iterator[int]:
    """How many are left after each stage: the numbers 1, 2, 5, 10, 20, ... below n, from above."""
    decades = [10**power for power in range(len(str(n)))]
    series = (step * decade for decade in reversed(decades) for step in (5, 2, 1))
    yield from (size for size in series if size < n and (size > 1 or n == 2))


def _groups(pool: Sequence[int], n: int, window: int) -> list[Sequence[int]]:
    """As many groups as at the start, but none under half a window, and one as soon as it fits."""
    most, fewest = -(-n // window), -(-2 * len(pool) // window)
    count = 1 if len(pool) <= window else min(most, fewest)
    return [pool[first::count] for first in range(count)]


def _ranked(judgment: Judgment) -> Group:
    """The group best first, equals in incoming order, however they were shown."""
    tiers = judgment.tiers or (judgment.group,)
    return tuple(position for tier in tiers for position in sorted(tier))
