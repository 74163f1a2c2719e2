"""Small groups over a shrinking pool, whose best members tell the strengths of all."""

from collections.abc import Sequence

from ...errors import InputError
from ...types import Group, Judgment, Outcome, Plan
from .evidence import falling, strengths_of
from .shape import NOTHING, Shape, between


def top_down_sets(
    n: int,
    top_k: int,
    *,
    window: int = 5,
    rounds: int = 6,
    meetings: int = 2,
    prior: Sequence[float] | None = None,
    prior_sd: float = 2.0,
) -> Plan:
    """The top-down sort for judges that name the best of a group: small groups, few rounds.

    Only one member of a group is told from the others, so groups are small and everyone is in
    ``meetings`` of them a round, each time in other company. The first round deals them over the
    whole list; later ones form groups of neighbours, shifted against each other. One strength a
    candidate explains all choices best (Plackett-Luce with a Gaussian prior), and the pool shrinks
    to about 1.5 ``top_k`` in geometric steps. No group is asked twice.

    n=100, top_k=10 is about 120 questions and 570 reads in 6 rounds, against 30 questions, 300
    reads and 22 rounds for a heap of c=9, and 8 points of nDCG@10 better at noise 1.0
    (``benchmarks/sorting.py``).

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        window: Most candidates in a question, at least 2.
        rounds: Most rounds, at least 2.
        meetings: Groups of each candidate in a round, at least 1.
        prior: Expected strength of each candidate (mean 0, standard deviation near 1).
        prior_sd: How far judgments may move a strength from its prior, above 0.

    Returns:
        All positions: the last pool in order, then the dropped ones, latest first. Scores are
        strengths on a log-odds scale, lowered where needed never to rise along the order; ties
        keep the incoming order.
    """
    order, judged, met = list(range(n)), list[Judgment](), set[Group]()
    strengths = [0.0] * n if prior is None else list(prior)
    for turn, size in enumerate(_pools(n, top_k, window, rounds, meetings)):
        groups = _groups(order[:size], window, meetings, first=turn == 0)
        fresh = [group for group in dict.fromkeys(groups) if group not in met]
        if not fresh:
            continue
        met.update(fresh)
        judged += yield fresh
        strengths = strengths_of(judged, n, prior, prior_sd, strengths)
        ranks = [(-strengths[p], p) for p in range(n)]
        order[:size] = sorted(order[:size], key=ranks.__getitem__)
    return Outcome(tuple(order), falling(order, strengths) if judged else None)


def top_down_sets_shape(
    n: int, top_k: int, *, window: int = 5, rounds: int = 6, meetings: int = 2
) -> Shape:
    """Cost of ``top_down_sets``, from all groups of later rounds asked before to none."""
    sizes = _pools(n, top_k, window, rounds, meetings)
    if not sizes:
        return NOTHING
    asked = [
        {*_groups(range(size), window, meetings, first=turn == 0)}
        for turn, size in enumerate(sizes)
    ]
    counts, reads = [len(groups) for groups in asked], [sum(map(len, groups)) for groups in asked]
    return Shape(
        between(counts[0], sum(counts)),
        between(1, sum(count > 0 for count in counts)),
        between(reads[0], sum(reads)),
    )


def _pools(n: int, top_k: int, window: int, rounds: int, meetings: int) -> list[int]:
    if window < 2 or rounds < 2 or meetings < 1:
        raise InputError(
            f"window={window}, rounds={rounds}, meetings={meetings}: at least 2, 2 and 1 are needed"
        )
    last = min(n, max(window, -(-3 * top_k // 2)))
    return [round(n * (last / n) ** (turn / (rounds - 1))) for turn in range(rounds) if n > 1]


def _groups(pool: Sequence[int], window: int, meetings: int, *, first: bool) -> list[Group]:
    """Groups of two or more, each in incoming order."""
    split = _dealt if first else _blocks
    groups = [group for turn in range(meetings) for group in split(pool, window, turn, meetings)]
    return [tuple(sorted(group)) for group in groups if len(group) > 1]


def _dealt(pool: Sequence[int], window: int, turn: int, meetings: int) -> list[Sequence[int]]:
    """Rows of as many as there are groups, one of a row to each, turned by ``turn`` a row."""
    count = -(-len(pool) // window)
    groups: list[list[int]] = [[] for _ in range(count)]
    for place, position in enumerate(pool):
        row, column = divmod(place, count)
        groups[(column + row * turn) % count].append(position)
    return list(groups)


def _blocks(pool: Sequence[int], window: int, turn: int, meetings: int) -> list[Sequence[int]]:
    """Neighbours, shifted by a part of the window each time."""
    starts = [0, *range(turn * window // meetings or window, len(pool), window)]
    return [pool[a:b] for a, b in zip(starts, [*starts[1:], len(pool)], strict=True)]
