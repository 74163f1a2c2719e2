"""What a ranking would cost, in calls, rounds, passages and tokens, before it is asked for."""

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InputError
from ..reading.labels import clean, estimate_tokens, truncate
from ..types import Count, Estimate, Span
from .plans import Shape

SCAFFOLDING = 10
"""Tokens of headings and labels in a question."""


def counted(n: int | None, documents: Sequence[Any] | None) -> int:
    """How many candidates an estimate is for.

    Raises:
        InputError: Neither a number of at least 0 nor documents were given.
    """
    if n is None and documents is not None:
        return len(documents)
    if n is None or n < 0:
        raise InputError(f"n={n}; expected the number of documents, 0 or more, or documents=...")
    return n


def estimated(shape: Shape, asks: int, judge: Any, query: str, texts: Sequence[str]) -> Estimate:
    """A plan's shape in calls of a judge that asks each question ``asks`` times.

    Tokens are estimated when ``texts``, as they will be shown, are given.
    """
    calls, reads = times(shape.questions, asks), times(shape.reads, asks)
    tokens = prompt_tokens(calls, reads, judge, query, texts) if texts else None
    return Estimate(calls, shape.rounds, reads, tokens)


def prompt_tokens(
    calls: Count, reads: Count, judge: Any, query: str, texts: Sequence[str]
) -> Count:
    """Instructions, demonstrations and query in every call, and a mean passage for each read."""
    mean = sum(map(estimate_tokens, texts)) / len(texts)
    each = _constant(judge) + estimate_tokens(query) + SCAFFOLDING
    return combined(calls, reads, lambda c, r: round(c * each + r * mean))


def _constant(judge: Any) -> int:
    predict = getattr(judge, "predict", None)
    if predict is None:
        return 0
    shown = [value for demo in predict.demos for value in dict(demo).values()]
    return sum(estimate_tokens(str(text)) for text in (predict.signature.instructions, *shown))


def fitted(texts: Sequence[str], max_tokens: int | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Texts as judges can take them, and the positions of those that had to be cut."""
    cleaned = [clean(text) for text in texts]
    if max_tokens is None:
        return tuple(cleaned), ()
    pairs = [_truncated(text, max_tokens) for text in cleaned]
    return tuple(text for text, _ in pairs), tuple(i for i, (_, cut) in enumerate(pairs) if cut)


def _truncated(text: str, max_tokens: int) -> tuple[str, bool]:
    """A token has at least a byte, so that short texts need not be counted."""
    return (text, False) if len(text.encode()) <= max_tokens else truncate(text, max_tokens)


def times(count: Count, factor: int) -> Count:
    """A count, exact or not, multiplied."""
    return Span(count.lo * factor, count.hi * factor) if isinstance(count, Span) else count * factor


def combined(a: Count, b: Count, how: Callable[[int, int], int]) -> Count:
    """Two counts put together by a rising function."""
    low, high = bounds(a), bounds(b)
    lo, hi = how(low[0], high[0]), how(low[1], high[1])
    return lo if lo == hi else Span(lo, hi)


def bounds(count: Count) -> tuple[int, int]:
    """Least and most of a count."""
    return (count.lo, count.hi) if isinstance(count, Span) else (count, count)
