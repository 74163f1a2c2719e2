"""The best so far meets a few new candidates at a time, from worst to best."""

from ...errors import InputError
from ...types import Outcome, Plan
from .choice import Choices, best_of
from .lockstep import Steps
from .shape import NOTHING, Shape, between


def survivor(n: int, top_k: int, *, window: int = 8) -> Plan:
    """Iterated choice, the bubble sort of Setwise (arXiv 2310.09497).

    One pass finds the best in ceil((n-1)/w) questions of w + 1, each after the other; ``top_k``
    passes find the best few. Questions that earlier answers settle are not asked, so later
    passes start where the last winner came in. A tie, a "none" or an unknown lets the earliest
    of the group survive.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many must be in order, in 1..n.
        window: New candidates in a question, at least 1.

    Returns:
        The best ``top_k`` in order, then the others in incoming order; no scores.
    """
    if window < 1:
        raise InputError(f"window={window}: a question holds at least 1 new candidate")
    best, rest = list[int](), list(range(n))
    known = Choices(n)
    while rest and len(best) < top_k:
        winner = yield from _pass(rest, window, known)
        best.append(winner)
        rest = [position for position in rest if position != winner]
    return Outcome((*best, *rest))


def survivor_shape(n: int, top_k: int, *, window: int = 8) -> Shape:
    """Cost of ``survivor``, from one pass to ``top_k`` passes without a repeated question."""
    if n < 2:
        return NOTHING
    passes = [(size, -(-(size - 1) // window)) for size in range(n, n - min(top_k, n - 1), -1)]
    reads = [size + questions - 1 for size, questions in passes]
    asked = between(passes[0][1], sum(questions for _, questions in passes))
    return Shape(asked, asked, between(reads[0], sum(reads)))


def _pass(candidates: list[int], window: int, known: Choices) -> Steps[int]:
    best, ahead = candidates[-1], candidates[:-1]
    while ahead:
        best = yield from best_of([best, *ahead[-window:]], known)
        ahead = ahead[:-window]
    return best
