"""Several plans side by side, their orders fused into one."""

from collections.abc import Callable, Sequence

from ...aggregate import Vector, WeakOrder, descending, rrf
from ...types import Outcome, Plan
from .lockstep import Steps, lockstep
from .shape import NOTHING, Shape, between, bounds, largest, total

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
        All positions by falling fused score, ties in incoming order, with these scores. Plans
        that learned nothing are left out; without any other the incoming order stays.
    """
    outcomes = yield from lockstep([_heard(plan) for plan in plans])
    orders = [[(p,) for p in outcome.order] for outcome in outcomes if outcome is not None]
    if not orders:
        return Outcome(tuple(range(n)))
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
    """Cost of ``consensus``: at most that of all plans, in the rounds of the deepest.

    At least, one plan asks and every other asks the same questions, which are not asked again.
    """
    if len(shapes) < 2:
        return shapes[0] if shapes else NOTHING
    questions, rounds, reads = zip(*shapes, strict=True)
    return Shape(
        between(min(bounds(c).lo for c in questions), bounds(total(questions)).hi),
        between(min(1, *(bounds(c).lo for c in rounds)), bounds(largest(rounds)).hi),
        between(min(bounds(c).lo for c in reads), bounds(total(reads)).hi),
    )


def _heard(plan: Plan) -> Steps[Outcome | None]:
    """The plan's outcome, or ``None`` when no judgment told any candidates apart."""
    told = False
    try:
        groups = next(plan)
        while True:
            judgments = yield groups
            told = told or any(len(j.tiers) > 1 or j.score is not None for j in judgments)
            groups = plan.send(judgments)
    except StopIteration as stop:
        return stop.value if told else None


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=lambda i: permutation[i]))


def _renamed(outcome: Outcome, positions: Sequence[int], places: Sequence[int]) -> Outcome:
    order = tuple(positions[i] for i in outcome.order)
    scores = outcome.scores
    return Outcome(order, None if scores is None else tuple(scores[i] for i in places))
