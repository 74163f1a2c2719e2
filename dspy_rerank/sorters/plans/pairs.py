"""Every pair judged once, candidates sorted by the share of pairs they win."""

from itertools import combinations

from ...aggregate import descending, wins
from ...types import Outcome, Plan
from .shape import Shape
from .simulate import fixed_shape


def all_pairs(n: int) -> Plan:
    """All-pairs sorting (PRP, arXiv 2306.17563): n(n-1)/2 questions in one round.

    Args:
        n: Number of candidates, at least 0.

    Returns:
        All positions by falling score; a score is the share of pairs won, in [0, 1], where ties
        and unknowns are half won. Equal scores keep their incoming order.
    """
    if n < 2:
        return Outcome(tuple(range(n)))
    judgments = yield list(combinations(range(n), 2))
    points = wins([judgment.tiers or (judgment.group,) for judgment in judgments], n)
    scores = points.sum(axis=1) / (n - 1)
    return Outcome(descending(scores), tuple(scores.tolist()))


def all_pairs_shape(n: int) -> Shape:
    """Cost of ``all_pairs``: n(n-1)/2 questions, 1 round, n(n-1) reads."""
    return fixed_shape(all_pairs(n))
