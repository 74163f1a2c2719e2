"""The best of a few candidates, asked only where it does not follow from earlier answers."""

from collections.abc import Iterable

from ...types import Group
from .lockstep import Steps
from .relations import Relations


class Choices:
    """What was found out so far; filled in by ``best_of``.

    Args:
        n: Number of candidates.
    """

    def __init__(self, n: int):
        self.relations = Relations(n)
        self.made: dict[Group, int] = {}


def best_of(candidates: Iterable[int], known: Choices) -> Steps[int]:
    """The best of some candidates, with a question only where earlier answers leave it open.

    Who is known to be worse than another of the candidates, over a chain of answers, is not shown
    again; one who is left alone is the best. The rest is asked in incoming order, so that a tie, a
    "none" or an unknown leaves its earliest member as the best.

    Args:
        candidates: Distinct positions, at least one.
        known: Earlier answers; the new one is added.
    """
    group = known.relations.unbeaten(tuple(sorted(candidates)))
    if len(group) == 1:
        return group[0]
    if group not in known.made:
        (judgment,) = yield [group]
        known.made[group] = judgment.ranked[0]
        known.relations.add(judgment.tiers)
    return known.made[group]
