"""Every candidate judged on its own, then sorted by score."""

from collections.abc import Sequence

from ...types import Outcome, Plan
from .shape import Shape
from .simulate import fixed_shape


def score_sort(n: int) -> Plan:
    """Pointwise sorting: n questions of one candidate each, in one round.

    Candidates without a score keep their incoming slots, and those with one are sorted into the
    slots that are left; equal scores keep their incoming order.

    Args:
        n: Number of candidates, at least 0.

    Returns:
        All positions by falling score, with the judged scores.
    """
    judgments = (yield [(position,) for position in range(n)]) if n else ()
    scores = tuple(judgment.score for judgment in judgments)
    return Outcome(order_by_score(scores), scores)


def order_by_score(scores: Sequence[float | None]) -> tuple[int, ...]:
    """Positions by falling score; those without one keep their slots, ties the incoming order."""
    known = {position: score for position, score in enumerate(scores) if score is not None}
    best_first = iter(sorted(known, key=lambda position: -known[position]))
    return tuple(next(best_first) if p in known else p for p in range(len(scores)))


def score_shape(n: int) -> Shape:
    """Cost of ``score_sort``: n questions, 1 round, n reads."""
    return fixed_shape(score_sort(n))
