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
        scale: Roughly the diagonal of that Hessian, above 0.
    """

    value: float
    slope: Vector
    bend: Callable[[Vector], Vector]
    scale: Vector


Objective = Callable[[Vector], Curve]


def climb(objective: Objective, start: Vector, steps: int = 50) -> Vector:
    """The maximum of a strictly concave function, by Newton steps that never go down."""
    here, curve = start, objective(start)
    for _ in range(steps):
        steepest = np.abs(curve.slope).max(initial=0.0)
        if steepest < 1e-8:
            break
        # A rough step is enough far from the top; near it, steps this exact still square the error.
        step = solve(curve, curve.slope, min(0.3, steepest))
        after, rounding = objective(here + step), 1e-12 * abs(curve.value)
        while after.value < curve.value - rounding and np.abs(step).max() > 1e-9:
            step = step / 2
            after = objective(here + step)
        here, curve = here + step, after
    return here


def solve(curve: Curve, target: Vector, error: float) -> Vector:
    """Solve ``curve.bend(x) = target``, by conjugate gradients with its scale as preconditioner.

    Stops when the residual is that share of the target.

    No LAPACK: its threads cost more than these small systems where cores are few or shared.
    """
    x, residual = np.zeros_like(target), target
    direction = residual / curve.scale
    size = float(residual @ direction)
    enough = size * error**2
    for _ in range(2 * len(target)):
        if size <= enough:
            break
        bent = curve.bend(direction)
        length = size / float(direction @ bent)
        x, residual = x + length * direction, residual - length * bent
        scaled = residual / curve.scale
        previous, size = size, float(residual @ scaled)
        direction = scaled + size / previous * direction
    return x
