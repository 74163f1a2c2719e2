"""What follows from judgments that do not contradict each other."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from ...aggregate import WeakOrder


def superiors(orders: Sequence[WeakOrder], n: int) -> tuple[int, ...] | None:
    """How many others are known to be better than each item, directly or through others.

    Under a perfect judge the true i-th best has fewer than i superiors, and a list covered by g
    complete orders has at most g * i items with fewer than i.

    Args:
        orders: Weak orders over positions ``0..n-1``.
        n: Number of items.

    Returns:
        One count an item, or ``None`` when the orders contradict each other.
    """
    better: dict[int, set[int]] = {item: set() for item in range(n)}
    for upper, lower in (tiers for order in orders for tiers in pairwise(order)):
        for item in lower:
            better[item].update(upper)
    try:
        best_first = tuple(TopologicalSorter(better).static_order())
    except CycleError:
        return None
    # Sets of items as the bits of an integer: unions stay fast for thousands of candidates.
    above = [0] * n
    for item in best_first:
        for other in better[item]:
            above[item] |= above[other] | 1 << other
    return tuple(items.bit_count() for items in above)
