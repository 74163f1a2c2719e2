"""What a plan will cost: questions, rounds and passages read, exact or between bounds."""

from collections.abc import Sequence
from typing import NamedTuple

from ...types import Count, Span


class Shape(NamedTuple):
    """The cost of a plan before it runs; a ``Span`` holds proven bounds, an int is exact.

    Attributes:
        questions: Groups to be judged.
        rounds: Steps that must follow one another.
        reads: Members of all groups together.
    """

    questions: Count
    rounds: Count
    reads: Count


NOTHING = Shape(0, 0, 0)


def between(lo: int, hi: int) -> Count:
    """The count itself where the bounds meet, else their span."""
    return lo if lo == hi else Span(lo, hi)


def bounds(count: Count) -> Span:
    """A count as a span, also where it is exact."""
    return count if isinstance(count, Span) else Span(count, count)


def total(counts: Sequence[Count]) -> Count:
    """Sum of counts."""
    spans = [bounds(count) for count in counts]
    return between(sum(span.lo for span in spans), sum(span.hi for span in spans))


def largest(counts: Sequence[Count]) -> Count:
    """Largest of counts; 0 for none."""
    spans = [bounds(count) for count in counts]
    lows, highs = (span.lo for span in spans), (span.hi for span in spans)
    return between(max(lows, default=0), max(highs, default=0))


def spanned(least: Shape, most: Shape) -> Shape:
    """From the cheapest case to the dearest."""
    cases = zip(least, most, strict=True)
    return Shape(*(between(bounds(low).lo, bounds(high).hi) for low, high in cases))
