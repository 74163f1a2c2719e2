"""Who is better than whom, and what follows from it."""

from collections.abc import Iterator
from itertools import pairwise, product

from ...aggregate import WeakOrder
from ...types import Group


class Relations:
    """Better-than among ``0..n-1``, closed under "better than one who is better".

    Those who are better than each other, over a chain, are in a cycle, and equal. Sets are the
    bits of integers: a chain of thousands is closed at once.

    Args:
        n: Number of items.
    """

    def __init__(self, n: int):
        self._above = [0] * n
        self._below = [0] * n
        self._closed = [1 << item for item in range(n)]

    def add(self, order: WeakOrder) -> bool:
        """Takes a weak order in; whether it said anything that did not follow before."""
        edges = [edge for upper, lower in pairwise(order) for edge in product(upper, lower)]
        return sum(self._link(upper, lower) for upper, lower in edges) > 0

    def _link(self, upper: int, lower: int) -> bool:
        if self._below[upper] >> lower & 1:
            return False
        above, below = self._above[upper] | 1 << upper, self._below[lower] | 1 << lower
        for item in members(above):
            self._below[item] |= below
        for item in members(below):
            self._above[item] |= above
        return True

    def close(self, group: Group) -> None:
        """Nothing more will be found out within a group."""
        mask = sum(1 << item for item in group)
        for item in group:
            self._closed[item] |= mask

    def retire(self, item: int) -> None:
        """Nothing more will be found out about an item."""
        self._closed[item] = -1
        for other in range(len(self._closed)):
            self._closed[other] |= 1 << item

    def superiors(self, item: int) -> int:
        """How many are better than an item and not its equals."""
        return (self._above[item] & ~self._below[item]).bit_count()

    def unbeaten(self, group: Group) -> Group:
        """Those of a group whom none of the others is better than; never empty."""
        mask = sum(1 << item for item in group)
        return tuple(p for p in group if not self._above[p] & ~self._below[p] & mask)

    def open(self, item: int, among: int) -> int:
        """Those, as bits, of whom nobody knows how they stand to an item."""
        return among & ~(self._above[item] | self._below[item] | self._closed[item])


def members(bits: int) -> Iterator[int]:
    """The items of a set that is written as bits, rising."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
