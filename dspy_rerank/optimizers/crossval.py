"""Choices checked on queries that took no part in them, and when a change is worth making."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..stats import Interval, paired_interval, standard_error

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Nested:
    """What choosing gains, by queries that were left out while choosing.

    Attributes:
        values: Of the setting chosen without the query, for each query.
        gain: Over the uncompiled program, paired by query.
        flattery: How much better the setting chosen on all queries looks on those same queries:
            the winner's curse, in the metric.
    """

    values: tuple[float, ...]
    gain: Interval
    flattery: float

    def worth_it(self, sure: float) -> bool:
        """Whether the gain is more than so many standard errors; one query tells nothing."""
        return self.gain.n > 1 and self.gain.mean > max(1e-9, sure * self.gain.error)


def folds(count: int, parts: int, seed: int) -> list[tuple[int, ...]]:
    """The places ``0..count-1`` dealt at random into parts of nearly equal size.

    Raises:
        InputError: There are fewer than two places.
    """
    if count < 2:
        raise InputError(f"{count} labelled queries cannot be cross-validated; expected 2 or more")
    dealt = random.Random(seed).sample(range(count), count)
    size = min(count, max(2, parts))
    return [tuple(sorted(dealt[start::size])) for start in range(size)]


def others(places: Sequence[int], count: int) -> list[int]:
    """The places that are not among these."""
    left = set(places)
    return [place for place in range(count) if place not in left]


def best_of(values: Array, sure: float) -> int:
    """The setting to keep: the first one, unless the best is clearly better; then the simplest.

    The one-standard-error rule (Breiman et al. 1984): of the settings whose mean is within
    ``sure`` standard errors of the best, paired by query, the first is taken. With ``sure`` 0 it
    is the best, and of equals the first.

    Args:
        values: One row a setting, the uncompiled one first and the simpler before the more
            complex; one column a query.
        sure: Standard errors.
    """
    means = values.mean(axis=1)
    best = int(means.argmax())
    for row in range(best):
        lead = values[best] - values[row]
        error = standard_error(lead.tolist()) if len(lead) > 1 else float("inf")
        if lead.mean() <= sure * error + 1e-12:
            return row
    return best


def told(held: Array, before: Array, seen: float, seed: int) -> Nested:
    """The verdict on values of queries that were left out.

    Args:
        held: Of the compiled program, each query left out of its compiling.
        before: Of the uncompiled program.
        seen: Mean of the program compiled on all of them, on those same queries.
        seed: Of the bootstrap.
    """
    gain = paired_interval(held.tolist(), before.tolist(), seed=seed)
    return Nested(tuple(map(float, held)), gain, seen - float(held.mean()))
