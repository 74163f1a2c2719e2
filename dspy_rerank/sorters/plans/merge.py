"""Merge sort on pairs, independent merges side by side."""

from ...types import Group, Outcome, Plan
from .lockstep import Steps, lockstep
from .shape import NOTHING, Shape, between, largest, total


def merge_sort(n: int, top_k: int) -> Plan:
    """Merge sort: at most about n log2 n - n questions of two candidates, depth under 2n.

    Both halves of the list are sorted side by side, then merged; runs are cut to ``top_k``, which
    saves questions when only the top matters. Two candidates meet at most once, so that no pair
    is ever asked twice. The left of a pair is the earlier one, and a tie or an unknown puts it
    first.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.

    Returns:
        The best ``top_k`` in order, then the others in incoming order; no scores.
    """
    best = yield from _sort(range(n), top_k)
    rest = sorted(set(range(n)).difference(best))
    return Outcome((*best, *rest))


def merge_shape(n: int, top_k: int) -> Shape:
    """Cost of ``merge_sort``, between all merges one-sided and all merges in turns.

    Merging runs of a and b asks min(a, b) to min(a + b - 1, top_k) questions, one a round.
    """
    if n < 2:
        return NOTHING
    sizes = (n - n // 2, n // 2)
    halves = [merge_shape(size, top_k) for size in sizes]
    a, b = (min(size, top_k) for size in sizes)
    merge = between(min(a, b), min(a + b - 1, top_k))
    questions = total([*(half.questions for half in halves), merge])
    rounds = total([largest([half.rounds for half in halves]), merge])
    return Shape(questions, rounds, total([questions, questions]))


def _sort(candidates: range, top_k: int) -> Steps[Group]:
    """The best ``top_k`` of neighbouring candidates, in order."""
    if len(candidates) < 2:
        return tuple(candidates)
    middle = len(candidates) - len(candidates) // 2
    halves = (candidates[:middle], candidates[middle:])
    left, right = yield from lockstep([_sort(half, top_k) for half in halves])
    return (yield from _merge(left, right, top_k))


def _merge(left: Group, right: Group, top_k: int) -> Steps[Group]:
    """The best ``top_k`` of two sorted runs, of which the left came in first."""
    merged: Group = ()
    while left and right and len(merged) < top_k:
        (judgment,) = yield [(left[0], right[0])]
        if judgment.ranked[0] == left[0]:
            merged, left = (*merged, left[0]), left[1:]
        else:
            merged, right = (*merged, right[0]), right[1:]
    return (merged + left + right)[:top_k]
