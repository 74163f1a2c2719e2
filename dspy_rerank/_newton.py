"""The maximum of a smooth, strictly concave function, without LAPACK."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Curve(NamedTuple):
    """A concave log-likelihood at one point.

    Attributes:
        value: The log-likelihood.
        slope: Its gradient.
        bend: Product of its negated Hessian with a vector.
    """

    value: float
    slope: Vector
    bend: Callable[[Vector], Vector]


Objective = Callable[[Vector], Curve]


def climb(objective: Objective, start: Vector, steps: int = 50) -> Vector:
    """The maximum of a strictly concave function, by Newton steps that never go down."""
    here, curve = start, objective(start)
    for _ in range(steps):
        steepest = np.abs(curve.slope).max(initial=0.0)
        if steepest < 1e-8:
            break
        # A rough step is enough far from the top; near it, steps this exact still square the error.
        step = _solve(curve.bend, curve.slope, min(0.1, steepest))
        after = objective(here + step)
        while after.value < curve.value and np.abs(step).max() > 1e-9:
            step = step / 2
            after = objective(here + step)
        here, curve = here + step, after
    return here


def _solve(bend: Callable[[Vector], Vector], target: Vector, error: float) -> Vector:
    """Solves ``bend(x) = target`` for a positive definite linear map, by conjugate gradients.

    Stops when the residual is that share of the target.

    No LAPACK: its threads cost more than these small systems where cores are few or shared.
    """
    x, residual = np.zeros_like(target), target
    direction, size = residual, float(residual @ residual)
    enough = size * error**2
    for _ in range(2 * len(target)):
        if size <= enough:
            break
        bent = bend(direction)
        length = size / float(direction @ bent)
        x, residual = x + length * direction, residual - length * bent
        previous, size = size, float(residual @ residual)
        direction = residual + size / previous * direction
    return x
