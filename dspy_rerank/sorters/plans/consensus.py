"""Several plans side by side, their orders fused into one."""

from collections.abc import Callable, Sequence

from ...aggregate import Vector, WeakOrder, descending, rrf
from ...types import Outcome, Plan
from .lockstep import lockstep
from .shape import Shape, largest, total

Fuse = Callable[[Sequence[WeakOrder], int], Vector]
"""Orders over n positions to one score a position: ``rrf``, ``plackett_luce`` or your own."""


def consensus(plans: Sequence[Plan], n: int, *, fuse: Fuse = rrf) -> Plan:
    """Runs plans in lock-step and fuses their orders; as deep as the deepest of them.

    Permutation self-consistency (arXiv 2310.07712) is one plan ``relabelled`` by several
    shuffles.

    Args:
        plans: Fresh plans over the same n candidates.
        n: Number of candidates, at least 0.
        fuse: How orders become scores; reciprocal rank fusion when left out.

    Returns:
        All positions by falling fused score, ties in incoming order, with these scores.
    """
    outcomes = yield from lockstep(plans)
    orders = [[(position,) for position in outcome.order] for outcome in outcomes]
    scores = fuse(orders, n)
    return Outcome(descending(scores), tuple(scores.tolist()))


def relabelled(plan: Plan, permutation: Sequence[int]) -> Plan:
    """A plan that takes the candidates in another incoming order; same cost.

    Args:
        plan: A fresh plan over as many candidates.
        permutation: Which position the plan meets at each place of its incoming order.

    Returns:
        The plan's outcome, said of the true positions.
    """
    positions, places = tuple(permutation), _inverse(permutation)
    try:
        groups = next(plan)
        while True:
            judgments = yield [tuple(positions[i] for i in group) for group in groups]
            groups = plan.send([judgment.at(places) for judgment in judgments])
    except StopIteration as stop:
        return _renamed(stop.value, positions, places)


def consensus_shape(shapes: Sequence[Shape]) -> Shape:
    """Cost of ``consensus``: questions and reads of all plans, rounds of the deepest."""
    questions, rounds, reads = zip(*shapes, strict=True) if shapes else ((), (), ())
    return Shape(total(questions), largest(rounds), total(reads))


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=lambda i: permutation[i]))


def _renamed(outcome: Outcome, positions: Sequence[int], places: Sequence[int]) -> Outcome:
    order = tuple(positions[i] for i in outcome.order)
    scores = outcome.scores
    return Outcome(order, None if scores is None else tuple(scores[i] for i in places))
