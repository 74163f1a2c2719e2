"""In which orders a group is shown, and how often."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace

from ..types import Group, Judgment


def rollouts(presentations: Sequence[Group]) -> list[tuple[Group, int]]:
    """Each presentation with how often it came before: a repeated one asks for another answer."""
    return [(shown, presentations[:i].count(shown)) for i, shown in enumerate(presentations)]


def shuffled(group: Group, query: str, seed: int) -> Group:
    """A repeatable permutation that depends on the seed, the query and the group only."""
    key = hashlib.sha256(f"{seed}\x1f{query}\x1f{group}".encode("utf-8", "replace")).digest()
    order = list(group)
    random.Random(key).shuffle(order)
    return tuple(order)


def regrouped(judgment: Judgment, group: Group) -> Judgment:
    """A judgment of passages shown in another order, its probabilities in the group's order."""
    if judgment.probabilities is None:
        return replace(judgment, group=group)
    each = dict(zip(judgment.group, judgment.probabilities, strict=True))
    return replace(judgment, group=group, probabilities=tuple(each[p] for p in group))
