"""A number that is known within bounds only."""

from collections.abc import Callable
from dataclasses import dataclass

from ..types import Count, Span


@dataclass(frozen=True, slots=True)
class Range:
    """From the least to the most."""

    lo: float = 0.0
    hi: float = 0.0

    @classmethod
    def of(cls, count: Count | float) -> "Range":
        """A count, exact or not."""
        return cls(count.lo, count.hi) if isinstance(count, Span) else cls(count, count)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.lo + other.lo, self.hi + other.hi)

    def __mul__(self, factor: "Range | float") -> "Range":
        by = factor if isinstance(factor, Range) else Range(factor, factor)
        return Range(self.lo * by.lo, self.hi * by.hi)

    def most(self, other: "Range") -> "Range":
        """The larger of two, end by end."""
        return Range(max(self.lo, other.lo), max(self.hi, other.hi))

    def shown(self, how: Callable[[float], str]) -> str:
        """As text: one number where both ends look the same."""
        lo, hi = how(self.lo), how(self.hi)
        return lo if lo == hi else f"{lo} to {hi}"

    def __contains__(self, value: float) -> bool:
        return self.lo <= value <= self.hi


NONE = Range()
"""Nothing at all."""
