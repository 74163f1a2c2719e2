"""Parallel windows over a shrinking pool, ranked by one model of all judgments so far."""

from collections.abc import Sequence
from itertools import pairwise

from ...errors import InputError
from ...types import Group, Judgment, Outcome, Plan
from .evidence import certain_superiors, certainty, falling, strengths_of, told
from .shape import Shape, spanned
from .simulate import fixed_shape


def top_down(
    n: int,
    top_k: int,
    *,
    window: int = 20,
    rounds: int = 3,
    finals: int = 1,
    prior: Sequence[float] | None = None,
    prior_sd: float = 1.0,
    trusting: bool = True,
    enough: float | None = None,
) -> Plan:
    """Judges the pool in parallel windows, keeps the strongest, and repeats in few rounds.

    A round deals the pool, strongest first, into ceil(m/w) windows of at most w, like cards, so
    that all windows are alike and former neighbours are mixed. Every candidate gets a strength
    from *all* judgments so far (``plackett_luce``, read from both ends), and the pool shrinks to
    the strongest: 100 -> 40 -> 20 candidates in windows of 20 is 5 + 2 + 1 = 8 questions, 160
    reads, 3 rounds. With ``rounds=2`` it is 100 -> 20: 6 questions, 120 reads. With ``finals=2``
    the last 20 are judged twice: 9 questions, 180 reads, 4 rounds.

    With ``enough``, asking stops after a judgment of the last pool as soon as the expected share
    of the first ``top_k`` that belongs there reaches it (see ``certainty``). So ``finals`` can be
    many, and are used up only where the judge contradicts itself. At 0.8 and ``finals=6``, a
    perfect judge is asked for one final of 100 candidates, one with noise 0.5 for about 3 and one
    with noise 1.0 for about 4, and the quality is that of as many finals fixed beforehand. Judging
    those again who are nearest to the boundary, instead of the strongest, was measured and is no
    better (0.3 points of nDCG@10 worse to 0.2 better).

    A judge may favour the places at which candidates are shown. Rounds after the first therefore
    show those first who were shown late so far.

    Where ``top_k`` exceeds the window the pool cannot shrink to one window. The rounds after the
    first then judge blocks of neighbours instead, shifted by half a window every other round.

    While every window was put in full order and none contradicts another, the judge is taken at
    its word: the number of known ``superiors`` decides before strength. So a perfect listwise
    judge surely gets the best ``top_down_promise(...)`` right, in order, and mostly more. Without
    ``trusting`` the strengths alone decide, and nothing is promised.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        window: Most candidates in a question, at least 2.
        rounds: Rounds when the candidates exceed a window, at least 2; fewer where pools agree.
        finals: How often the last pool is judged, at least 1; more than once adds rounds.
        prior: Expected strength of each candidate (mean 0, standard deviation near 1), from a
            retrieval score or rank.
        prior_sd: How far judgments may move a strength from its prior, above 0.
        trusting: Whether a judge that never contradicts itself is taken at its word.
        enough: Expected share of the first ``top_k`` that belongs there, in [0, 1], at which
            asking stops; ``None`` asks for all ``finals``.

    Returns:
        All positions: the last pool in order, then the dropped ones, latest first. Scores are
        strengths on a log-odds scale, lowered where needed never to rise along the order; ties
        keep the incoming order. A trusting sort has no scores, and the incoming order, where no
        answer told any candidates apart.
    """
    order, judged, late = list(range(n)), list[Judgment](), [0.0] * n
    strengths, above = [0.0] * n if prior is None else list(prior), [0] * n
    consistent, heard = trusting, False
    sizes = top_down_pools(n, top_k, window=window, rounds=rounds, finals=finals)
    for turn, size in enumerate(sizes):
        split = _blocks if turn and top_k > window else _deal
        judged += yield _balanced(split(order[:size], window, turn), late)
        heard = told(judged) or not trusting
        if not heard:
            continue
        strengths = strengths_of(judged, n, prior, prior_sd, strengths)
        known = certain_superiors(judged, n) if consistent else None
        consistent, above = known is not None, known or [0] * n
        ranks = [(above[p], -strengths[p], p) for p in range(n)]
        order[:size] = sorted(order[:size], key=ranks.__getitem__)
        if enough is not None and len(sizes) - turn <= finals:
            settled = turn > 0 and sum(count < top_k for count in above) == top_k
            if settled or certainty(judged, strengths, top_k, prior_sd) >= enough:
                break
    return Outcome(tuple(order), falling(order, strengths) if heard else None)


def top_down_pools(
    n: int, top_k: int, *, window: int = 20, rounds: int = 3, finals: int = 1
) -> tuple[int, ...]:
    """How many candidates each round judges: geometric steps, in whole windows."""
    if window < 2 or rounds < 2 or finals < 1:
        raise InputError(
            f"window={window}, rounds={rounds}, finals={finals}: at least 2, 2 and 1 are needed"
        )
    if n < 2:
        return ()
    last = min(n, max(window, top_k))
    shrink = (last / n) ** (1 / (rounds - 1))
    wanted = (window * round(n * shrink**turn / window) for turn in range(1, rounds - 1))
    sizes = (n, *(min(n, max(last, size)) for size in wanted), last)
    # A pool that fits into windows as it is need not be judged twice in the same company.
    sizes = sizes if last > window else tuple(dict.fromkeys(sizes))
    return (*sizes, *[last] * (finals - 1))


def top_down_promise(n: int, top_k: int, *, window: int = 20, rounds: int = 3) -> int:
    """How many of the best a perfect listwise judge is sure to bring to the top, in order.

    At most g * k of m candidates in g windows have fewer than k known superiors, so that the
    best k survive for sure where g * k are kept. All n are right where one window holds them;
    n=100 in windows of 20 gives 8 in 3 rounds (4 in 2 rounds).
    """
    if n <= window:
        return n
    sizes = top_down_pools(n, top_k, window=window, rounds=rounds)
    kept = sizes[1:] if top_k <= window else (window,)
    return min(size // _windows(pool, window) for pool, size in zip(sizes, kept, strict=False))


def top_down_shape(
    n: int,
    top_k: int,
    *,
    window: int = 20,
    rounds: int = 3,
    finals: int = 1,
    enough: float | None = None,
) -> Shape:
    """Cost of ``top_down``; exact, since only the members of groups depend on answers.

    With ``enough`` it lies between one final and all of them.
    """
    most = fixed_shape(top_down(n, top_k, window=window, rounds=rounds, finals=finals))
    if enough is None:
        return most
    least = fixed_shape(top_down(n, top_k, window=window, rounds=rounds))
    return spanned(least, most)


def _windows(size: int, window: int) -> int:
    return -(-size // window)


def _deal(pool: Sequence[int], window: int, turn: int) -> list[Group]:
    """Windows that are alike: rank j goes to window j mod g."""
    count = _windows(len(pool), window)
    return [tuple(pool[first::count]) for first in range(count)]


def _blocks(pool: Sequence[int], window: int, turn: int) -> list[Group]:
    """Windows of neighbours, shifted by half a window on even turns."""
    first = window // 2 if turn % 2 == 0 else window
    cuts = [0, *range(first, len(pool), window), len(pool)]
    return [tuple(pool[lo:hi]) for lo, hi in pairwise(cuts)]


def _balanced(groups: Sequence[Group], late: list[float]) -> list[Group]:
    """Groups of two or more, those first who were shown late so far, which is added up."""
    shown = [tuple(sorted(group, key=lambda p: -late[p])) for group in groups if len(group) > 1]
    for group in shown:
        for place, position in enumerate(group):
            late[position] += place / len(group)
    return shown
