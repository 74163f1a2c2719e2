"""Every relation of every answer is kept, and asking stops when the top is certain."""

from collections import Counter
from collections.abc import Sequence

from ...aggregate import WeakOrder, plackett_luce
from ...errors import InputError
from ...types import Group, Outcome, Plan
from .relations import Relations, members
from .shape import NOTHING, Shape, between

PATIENCE = 3
"""Answers about a candidate that tell nobody apart before it is left in peace."""


def tournament(n: int, top_k: int, *, window: int = 20, whole: bool = True) -> Plan:
    """Tournament graph with transitive closure: about n/w + 2 questions for a short top.

    A question to a listwise judge tells how w(w-1)/2 pairs stand, and more follows (the 25 horses:
    the best 3 of 25, by fives, in 7 questions). Candidates with ``top_k`` known superiors are
    out. While more of the best known candidates are unbeaten than fit into a window they play in
    parallel; then one question a round takes the best known and those that are nearest to it.
    Asking stops when it is known how all that are left stand to each other. After BlitzRank, whose
    algorithm this follows in the main; the start in parallel and the order within cycles are ours.

    A contradiction makes a cycle, and the members of a cycle are equal; the strengths of all
    answers together (``plackett_luce``) order them. A group whose answer tells nobody apart is not
    asked about again, nor is a candidate after three such answers.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        window: Most candidates in a question, at least 2.
        whole: Whether an answer puts all of its group in order; a best-only answer does not.

    Returns:
        All positions by number of known superiors; the best ``top_k`` are right under a perfect
        judge. No scores.
    """
    if window < 2:
        raise InputError(f"window={window}: a question holds at least 2 candidates")
    relations, orders = Relations(n), list[WeakOrder]()
    left, silent = (1 << n) - 1, Counter[int]()
    while groups := _groups(relations, left, window, whole):
        for judgment in (yield groups):
            orders.append(judgment.tiers)
            if not relations.add(judgment.tiers) or whole:
                relations.close(judgment.group)
            if len(judgment.tiers) < 2:
                _tire(relations, judgment.group, silent)
        left = _still_in(relations, left, top_k)
    return Outcome(_ordered(relations, orders, n))


def tournament_shape(n: int, top_k: int, *, window: int = 20, whole: bool = True) -> Shape:
    """Cost of ``tournament``, between proven bounds that lie far apart.

    At least, questions connect all candidates. At most, every question settles a single pair; or
    with whole answers every candidate meets all others, and those who play in parallel have not
    met before.
    """
    if n < 2:
        return NOTHING
    if n <= window and whole:
        return Shape(1, 1, n)
    fewest = -(-(n - 1) // (window - 1))
    most, half = n * (n - 1) // 2, max(2, window // 2)
    if whole:
        most = min(most, n * fewest + -(-n * (n - 1) // (half * (half - 1))))
    return Shape(
        between(fewest, most), between(1 if n <= window else 2, most),
        between(fewest + n - 1, most * window),
    )  # fmt: skip


def _tire(relations: Relations, group: Group, silent: Counter[int]) -> None:
    silent.update(group)
    for position in group:
        if silent[position] == PATIENCE:
            relations.retire(position)


def _still_in(relations: Relations, left: int, top_k: int) -> int:
    return sum(1 << item for item in members(left) if relations.superiors(item) < top_k)


def _groups(relations: Relations, left: int, window: int, whole: bool) -> list[Group]:
    """The questions of the next round; none when all that are left are settled."""
    ranked = [(relations.superiors(p), p) for p in members(left) if relations.open(p, left)]
    if not ranked:
        return []
    ranked.sort()
    leaders = [position for superiors, position in ranked if superiors == ranked[0][0]]
    strangers = sum(1 << leader for leader in leaders)
    met = any(relations.open(p, strangers) != strangers & ~(1 << p) for p in leaders)
    if len(leaders) <= window or met:
        return [_around(relations, [position for _, position in ranked], window, whole)]
    count = -(-len(leaders) // window)
    dealt = [tuple(leaders[first::count]) for first in range(count)]
    return [group for group in dealt if len(group) > 1]


def _around(relations: Relations, ranked: Sequence[int], window: int, whole: bool) -> Group:
    """The best known candidate with those it has not met, then others that have not met them."""
    first = ranked[0]
    fresh = relations.open(first, sum(1 << position for position in ranked))
    chosen = [first, *[position for position in ranked if fresh >> position & 1][: window - 1]]
    taken = sum(1 << position for position in chosen)
    more = [p for p in ranked[1:] if not taken >> p & 1 and relations.open(p, taken)]
    chosen += more[: window - len(chosen)] if whole else []
    return tuple(sorted(chosen))


def _ordered(relations: Relations, orders: Sequence[WeakOrder], n: int) -> Group:
    above = [relations.superiors(p) for p in range(n)]
    if len(set(above)) == n:
        return tuple(sorted(range(n), key=above.__getitem__))
    strengths = plackett_luce(orders, n).round(9).tolist()
    keys = [(above[p], -strengths[p], p) for p in range(n)]
    return tuple(sorted(range(n), key=keys.__getitem__))
