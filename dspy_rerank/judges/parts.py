"""A group that is too long for one question, asked about in parts. Pure."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import zip_longest

from ..types import Group, Judgment, Kind

Parts = Generator[list[Group], list[Judgment], Judgment]
"""Yields groups that may be asked about at the same time; returns the judgment of the whole."""

REASON = "asked in parts: the context is too small for all at once"


def in_parts(group: Group, kind: Kind) -> Parts:
    """The judgment of a group out of those of its halves and of the best of these.

    Three questions in two steps, of half the size. The best half of each half meets in the last
    one; of a choice, both winners. Below these an order takes turns between the halves.

    Args:
        group: Positions in the order shown, at least 3.
        kind: ``setwise`` or ``listwise``.

    Returns:
        ``repaired``, with a reason; ``none`` where all parts say so; unknown as soon as one is.
    """
    middle = (len(group) + 1) // 2
    halves = [group[:middle], group[middle:]]
    told = yield [half for half in halves if len(half) > 1]
    lost = next((judgment for judgment in told if not judgment.known), None)
    if lost is not None:
        return _lost(group, lost, told)
    silent = {p for judgment in told if judgment.status == "none" for p in judgment.group}
    ranked = [judgment.ranked for judgment in told] + [half for half in halves if len(half) == 1]
    heard = [order for order in ranked if not silent & {*order}]
    best = [p for order in heard for p in order[: 1 if kind == "setwise" else -(-len(order) // 2)]]
    if not best:
        return _whole(group, told, status="none", reason="no passage is relevant")
    if len(heard) > 1:
        (last,) = yield [tuple(sorted(best, key=group.index))]
        told = [*told, last]
        if not last.known:
            return _lost(group, last, told)
        best = list(last.ranked)
    if kind == "setwise":
        return _whole(group, told, best=best[0])
    rests = [[p for p in order if p not in best] for order in heard]
    turns = [p for each in zip_longest(*rests) for p in each if p is not None]
    order = (*best, *turns, *(p for p in group if p in silent))
    return _whole(group, told, order=order)


def _lost(group: Group, lost: Judgment, told: Sequence[Judgment]) -> Judgment:
    return _whole(group, told, status="unknown", reason=f"a part was not answered: {lost.reason}")


def _whole(group: Group, told: Sequence[Judgment], **found: object) -> Judgment:
    """One judgment, with what its parts have in common; how sure they were says nothing of it."""
    cut = {position for judgment in told for position in judgment.cut}
    plain = Judgment(told[0].kind, group, "repaired", evidence=told[0].evidence, reason=REASON)
    return replace(
        plain, asks=sum(judgment.asks for judgment in told), cut=tuple(sorted(cut)),
        raw="\n".join(judgment.raw for judgment in told), **found,
    )  # fmt: skip
