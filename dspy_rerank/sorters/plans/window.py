"""A window that slides from the end of the list to its front."""

from ...errors import InputError
from ...types import Outcome, Plan
from .shape import Shape
from .simulate import fixed_shape


def sliding_window(n: int, *, window: int, step: int) -> Plan:
    """Sliding windows (RankGPT, arXiv 2304.09542): ceil((n-w)/s) + 1 questions, one a round.

    Each window is put in the order judged and passes its best ``window - step`` on to the next
    one. The first window of the list is the last judged and is always full, however the steps
    fall. Ties and unknowns keep the order found.

    Args:
        n: Number of candidates, at least 0.
        window: Candidates in a question, at least 2.
        step: How far the window moves, in 1..window.

    Returns:
        All positions; the best ``promised(window, step)`` are right under a perfect judge. No
        scores.
    """
    _check(window, step)
    order = list(range(n))
    for start in _starts(n, window, step):
        (judgment,) = yield [tuple(order[start : start + window])]
        order[start : start + window] = judgment.ranked
    return Outcome(tuple(order))


def window_shape(n: int, *, window: int, step: int) -> Shape:
    """Cost of ``sliding_window``; exact, and as many rounds as questions."""
    return fixed_shape(sliding_window(n, window=window, step=step))


def promised(window: int, step: int, n: int | None = None) -> int:
    """How many of the best a perfect judge is sure to bring to the top, in order.

    Args:
        window: Candidates in a question.
        step: How far the window moves.
        n: Number of candidates; when all fit into one window, all are right.
    """
    return n if n is not None and n <= window else window - step


def _starts(n: int, window: int, step: int) -> list[int]:
    if n < 2:
        return []
    return [*range(n - window, 0, -step), 0]


def _check(window: int, step: int) -> None:
    if window < 2 or not 1 <= step <= window:
        raise InputError(
            f"window={window}, step={step}: the window holds at least 2 candidates and moves by "
            "1 to window of them"
        )
