"""Which request meets which fault, and how long answers take."""

import math
import random
from collections.abc import Callable, Mapping, Sequence

from ..errors import InputError
from .faults import Fault

Schedule = Callable[[int], Fault | None]
"""The fault of the request with this number, from 0; ``None`` for a right answer."""
Latency = Callable[[int], float]
"""The seconds that the request with this number takes, from 0."""

P99 = 2.3263478740408408
"""The 99th percentile of a standard normal distribution."""


def schedule(faults: Fault | Sequence[Fault | None] | Schedule | None) -> Schedule:
    """Faults as a schedule: one is always met, several in turn and then none."""
    if faults is None:
        return lambda number: None
    if isinstance(faults, Fault):
        return lambda number: faults
    if callable(faults):
        return faults
    listed = tuple(faults)
    return lambda number: listed[number] if number < len(listed) else None


def at_random(faults: Mapping[Fault, float], seed: int = 0) -> Schedule:
    """Each fault with its probability, by the request's number and the seed alone.

    Raises:
        InputError: The probabilities are no such, or sum to more than 1.
    """
    if any(not 0 <= p <= 1 for p in faults.values()) or sum(faults.values()) > 1 + 1e-9:
        raise InputError(f"probabilities {list(faults.values())}; expected a sum of at most 1")
    named = list(faults.items())

    def drawn(number: int) -> Fault | None:
        at = random.Random(f"{seed} {number}").random()
        for fault, probability in named:
            at -= probability
            if at < 0:
                return fault
        return None

    return drawn


def tailed(median: float, p99: float, seed: int = 0) -> Latency:
    """Log-normal latencies, in seconds, with this median and 99th percentile.

    Raises:
        InputError: Not ``0 < median <= p99``.
    """
    if not 0 < median <= p99:
        raise InputError(f"median={median}, p99={p99}; expected 0 < median <= p99")
    mean, spread = math.log(median), math.log(p99 / median) / P99
    return lambda number: random.Random(f"{seed} {number}").lognormvariate(mean, spread)
