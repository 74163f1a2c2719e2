"""The best of a few candidates, never asked twice."""

from collections.abc import Iterable, MutableMapping

from ...types import Group
from .lockstep import Steps

Choices = MutableMapping[Group, int]
"""Groups judged so far, each with its best member; filled in by ``best_of``."""


def best_of(candidates: Iterable[int], known: Choices) -> Steps[int]:
    """The best of some candidates: no question when remembered or alone, else one.

    The group is asked in incoming order, so that a tie, a "none" or an unknown leaves its
    earliest member as the best.

    Args:
        candidates: Distinct positions, at least one.
        known: What was chosen before; the new choice is added.
    """
    group = tuple(sorted(candidates))
    if len(group) == 1:
        return group[0]
    if group not in known:
        (judgment,) = yield [group]
        known[group] = judgment.ranked[0]
    return known[group]
