"""Bubble sort on pairs, its passes one behind the other."""

from ...types import Outcome, Plan
from .choice import Choices, best_of
from .lockstep import Steps, lockstep
from .shape import NOTHING, Shape, between


def prp_sliding(n: int, top_k: int, *, passes: int | None = None) -> Plan:
    """PRP-Sliding-K (arXiv 2306.17563): K passes of n - 1 pairs or fewer, depth n + K - 2.

    A pass compares neighbours from the end of the list to its front and lets the better one go
    up; K passes bring the best K to the front. A pass follows two places behind the one before,
    at the same time. Places that are settled are not asked, nor pairs that earlier answers settle.

    The left of a pair is the earlier one, and a tie or an unknown lets it be the better.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        passes: K; ``None`` makes ``top_k`` of them.

    Returns:
        All positions; the best K are right under a perfect judge. No scores.
    """
    order = list(range(n))
    known = Choices(n)
    count = _passes(n, top_k, passes)
    for step in range(n + count - 2 if count else 0):
        places = [n - 2 - step + 2 * turn for turn in range(count)]
        inside = [place for turn, place in enumerate(places) if turn <= place <= n - 2]
        yield from lockstep([_settle(order, place, known) for place in inside])
    return Outcome(tuple(order))


def prp_sliding_shape(n: int, top_k: int, *, passes: int | None = None) -> Shape:
    """Cost of ``prp_sliding``, from all pairs of later passes met before to none."""
    count = _passes(n, top_k, passes)
    if not count:
        return NOTHING
    fewest, most = n - 1, sum(n - 1 - turn for turn in range(count))
    return Shape(
        between(fewest, most), between(n - 1, n + count - 2), between(2 * fewest, 2 * most)
    )


def _passes(n: int, top_k: int, passes: int | None) -> int:
    return max(0, min(n - 1, top_k if passes is None else passes))


def _settle(order: list[int], place: int, known: Choices) -> Steps[None]:
    """Puts the better of two neighbours first."""
    pair = order[place : place + 2]
    best = yield from best_of(pair, known)
    if best != pair[0]:
        order[place : place + 2] = reversed(pair)
