"""Partitioning around a pivot, all parts in parallel."""

from collections.abc import Sequence
from typing import NamedTuple

from ...errors import InputError
from ...types import Group, Outcome, Plan
from .lockstep import Steps, lockstep
from .shape import NOTHING, Shape, between


class Part(NamedTuple):
    """Neighbours in the order that is looked for.

    Attributes:
        pool: Candidates; in order where none are wanted.
        wanted: How many of the best of them must be in order.
    """

    pool: Group
    wanted: int

    @property
    def open(self) -> bool:
        """Whether there is something left to ask."""
        return len(self.pool) > 1 and self.wanted > 0


def td_part(n: int, top_k: int, *, window: int = 20) -> Plan:
    """Top-down partitioning (TDPart, arXiv 2405.14589): 2 + ceil((n-w)/(w-1)) questions, depth 3.

    The first window is ranked and its ``top_k``-th becomes the pivot. All others meet the pivot
    in windows of w - 1 newcomers, and those above it join the candidates, which are partitioned
    again until one window holds them. Where the pivot leaves fewer than ``top_k``, those below
    are partitioned as well.

    All partitions are judged in one round. One after the other with a buffer, as published, is
    cheaper, but drops what was not read when the buffer is full: a perfect judge then loses 5
    points of nDCG@10. Ties and unknowns keep the incoming order.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        window: Most candidates in a question, at least 2.

    Returns:
        All positions; the best ``top_k`` are right under a perfect judge. No scores.
    """
    if window < 2:
        raise InputError(f"window={window}: a question holds at least 2 candidates")
    parts = [Part(tuple(range(n)), top_k)]
    while any(part.open for part in parts):
        split = yield from lockstep([_split(part, window) for part in parts])
        parts = [smaller for each in split for smaller in each]
    return Outcome(tuple(position for part in parts for position in part.pool))


def td_part_shape(n: int, top_k: int, *, window: int = 20) -> Shape:
    """Cost of ``td_part``, between no newcomer above the pivot and all of them, always.

    Every partitioning settles its pivot, and leaves at most one pool more than it found.
    """
    if n < 2:
        return NOTHING
    if n <= window:
        return Shape(1, 1, n)
    parts = [-(-(size - window) // (window - 1)) for size in range(window + 1, n + 1)]
    reads = [size + count for size, count in enumerate(parts, start=window + 1)]
    levels = len(parts)
    return Shape(
        between(1 + parts[-1], sum(parts) + 2 * levels + 1),
        between(2, 2 * levels + 1),
        between(reads[-1], sum(reads) + window * (levels + 1)),
    )


def _split(part: Part, window: int) -> Steps[list[Part]]:
    """Smaller parts, the better first, of one that is still open; another as it is."""
    if not part.open:
        return [part]
    pool, top_k = part
    (judgment,) = yield [pool[:window]]
    head = judgment.ranked
    if len(pool) <= window:
        return [Part(head, 0)]
    place = min(top_k, window) - 1
    above, below = yield from _parted(head[place], pool[window:], window)
    uppers, lowers = (*head[:place], *above), (*head[place + 1 :], *below)
    upper = Part(tuple(sorted(uppers)), top_k) if above else Part(uppers, 0)
    lower = Part(tuple(sorted(lowers)), top_k - 1 - len(uppers))
    return [upper, Part(head[place : place + 1], 0), lower]


def _parted(pivot: int, others: Sequence[int], window: int) -> Steps[tuple[list[int], list[int]]]:
    """Those above and those below a pivot."""
    parts = [others[i : i + window - 1] for i in range(0, len(others), window - 1)]
    judgments = yield [tuple(sorted((pivot, *part))) for part in parts]
    above, below = list[int](), list[int]()
    for judgment in judgments:
        place = judgment.ranked.index(pivot)
        above += judgment.ranked[:place]
        below += judgment.ranked[place + 1 :]
    return above, below
