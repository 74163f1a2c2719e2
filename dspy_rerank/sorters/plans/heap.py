"""Heap selection of the best few, with questions of a parent and its children."""

from collections.abc import Iterator, MutableSequence

from ...types import Outcome, Plan
from .choice import Choices, best_of
from .lockstep import Steps, lockstep
from .shape import NOTHING, Shape, between


def heap_sort(n: int, top_k: int, *, children: int = 1) -> Plan:
    """Setwise heap sort (arXiv 2310.09497): about n/c + k log_c n questions of c + 1.

    The heap is built level by level from below; the nodes of a level are sifted side by side.
    Then the root is taken ``top_k`` times, and each time the last leaf sinks from the top. With
    ``children=1`` the heap is binary and every question a pair: the two children, then the
    better one against the parent. What follows from earlier answers is not asked again:
    the leaf that sinks from the top has mostly lost to its ancestors before. Groups are in
    incoming order, so that ties and unknowns favour the earlier candidate.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        children: Children compared with their parent at once, at least 1.

    Returns:
        The best ``top_k`` in order, then the others in incoming order; no scores.
    """
    heap, best = list(range(n)), list[int]()
    known = Choices(n)
    for level in reversed(list(_levels(n, children))):
        yield from lockstep([_sift(heap, node, children, known) for node in level])
    while heap and len(best) < top_k:
        best.append(heap[0])
        heap[0] = heap[-1]
        heap.pop()
        if len(best) < top_k:
            yield from _sift(heap, 0, children, known)
    rest = sorted(set(range(n)).difference(best))
    return Outcome((*best, *rest))


def heap_shape(n: int, top_k: int, *, children: int = 1) -> Shape:
    """Cost of ``heap_sort``, between proven bounds.

    At least, building asks every parent once and nothing that follows is new: ceil((n-1)/c)
    questions. At most, everything sinks to the bottom: twice the height in pairs, else once.
    """
    if n < 2:
        return NOTHING
    levels = list(_levels(n, children))
    toll = 2 if children == 1 else 1
    sinks = toll * sum(_height(n - taken, 0, children) for taken in range(1, top_k))
    build = toll * sum(_height(n, node, children) for level in levels for node in level)
    depth = toll * sum(_height(n, level[0], children) for level in levels)
    fewest = -(-(n - 1) // children)
    most = min(build + sinks, n * (n - 1) // 2 if children == 1 else build + sinks)
    return Shape(
        between(fewest, most),
        between(len(levels), min(depth + sinks, most)),
        between(n - 1 + fewest, most * (children + 1)),
    )


def _children(size: int, node: int, children: int) -> range:
    arity = max(2, children)
    return range(arity * node + 1, min(arity * node + arity + 1, size))


def _levels(n: int, children: int) -> Iterator[range]:
    """The nodes that have children, level by level from the root."""
    level = range(min(n, 1))
    parents = len(range(0, n - 1, max(2, children)))
    while inner := range(level.start, min(level.stop, parents)):
        yield inner
        level = range(level.stop, level.stop + max(2, children) * len(level))


def _height(size: int, node: int, children: int) -> int:
    """Levels below a node of a heap; its first children lead all the way down."""
    below = _children(size, node, children)
    return 1 + _height(size, below[0], children) if below else 0


def _sift(heap: MutableSequence[int], node: int, children: int, known: Choices) -> Steps[None]:
    """Lets the candidate at a node sink to its place below."""
    while below := _children(len(heap), node, children):
        rivals = [heap[child] for child in below]
        if children == 1:
            rivals = [(yield from best_of(rivals, known))]
        best = yield from best_of([heap[node], *rivals], known)
        if best == heap[node]:
            return
        winner = next(child for child in below if heap[child] == best)
        heap[node], heap[winner] = heap[winner], heap[node]
        node = winner
