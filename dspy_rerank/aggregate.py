"""Judgments to scores: choice models and voting rules over weak orders. Pure numpy.

Two kinds of data make a grid. *Weak orders* (tiers of positions, best tier first; what
``Judgment.tiers`` gives) go to ``plackett_luce``, ``rrf`` and ``wins``; a *wins matrix* (what
``wins`` gives) goes to ``bradley_terry``, ``borda`` and ``copeland``. Items are positions
``0..n-1``; every function returns one value an item, higher is better.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._luce import choices_of, luce, stiffness
from ._newton import Curve, Objective, Vector, climb, solve
from .errors import InputError

Matrix = NDArray[np.float64]

WeakOrder = Sequence[Sequence[int]]
"""Tiers of positions, best tier first; positions that were not compared are left out."""


class Posterior(NamedTuple):
    """Strengths with their uncertainty (Laplace approximation).

    Attributes:
        mean: Most probable strength of each item, on a log-odds scale.
        sd: Standard deviation of each strength, at most the prior's.
    """

    mean: Vector
    sd: Vector


def plackett_luce(
    orders: Sequence[WeakOrder],
    n: int,
    *,
    weights: Sequence[float] | None = None,
    prior_mean: Sequence[float] | None = None,
    prior_sd: float = 1.0,
    start: Sequence[float] | Vector | None = None,
) -> Vector:
    """Most probable strengths under the Plackett-Luce model with a Gaussian prior.

    Each order is read as a sequence of choices of the best among those that are left, with
    probability proportional to ``exp(strength)`` (Plackett 1975; Luce 1959). A tier of several is
    a tie and counts as the average of its arrangements (Efron 1977). A last tier below others is
    what was left when ranking stopped (a best-only answer leaves all the rest there) and says
    nothing about its own order; an order of one tier says that its members are equal.

    Args:
        orders: Weak orders over some of the items; empty ones say nothing.
        n: Number of items.
        weights: How much each order counts, at least 0; 1 each when left out.
        prior_mean: Expected strength of each item; 0 each when left out.
        prior_sd: Standard deviation of the prior, above 0; small values trust the orders less.
        start: Strengths near those looked for, such as those of fewer orders, which save time and
            change nothing; the prior's when left out.

    Returns:
        n strengths; items that no order separates are equal to about nine decimals.
    """
    choices = choices_of(orders, weights, n)
    objective, mean = _posterior(lambda s: luce(choices, s), n, prior_mean, prior_sd)
    return climb(objective, mean if start is None else np.asarray(start, dtype=float))


def plackett_luce_posterior(
    orders: Sequence[WeakOrder],
    n: int,
    *,
    weights: Sequence[float] | None = None,
    prior_mean: Sequence[float] | None = None,
    prior_sd: float = 1.0,
) -> Posterior:
    """Plackett-Luce strengths with their standard deviations; see ``plackett_luce``."""
    choices = choices_of(orders, weights, n)
    objective, start = _posterior(lambda s: luce(choices, s), n, prior_mean, prior_sd)
    mean = climb(objective, start)
    curve, axes = objective(mean), np.eye(n)
    variances = [solve(curve, axes[item], 1e-6)[item] for item in range(n)]
    return Posterior(mean, np.sqrt(np.array(variances)))


def plackett_luce_spread(
    orders: Sequence[WeakOrder],
    strengths: Sequence[float] | Vector,
    *,
    weights: Sequence[float] | None = None,
    prior_sd: float = 1.0,
) -> Vector:
    """Standard deviation of each strength, given those of all others.

    In one step, without a system of equations. It is less than ``plackett_luce_posterior`` says,
    by what all strengths have in common, which tells nothing about their order: some 3 percent
    for a hundred items in windows of twenty.

    Args:
        orders: As for ``plackett_luce``.
        strengths: What it made of them.
        weights: How much each order counts; 1 each when left out.
        prior_sd: Standard deviation of the prior, above 0.
    """
    point = np.asarray(strengths, dtype=float)
    return (stiffness(choices_of(orders, weights, len(point)), point) + prior_sd**-2) ** -0.5


def bradley_terry(
    won: Matrix, *, prior_mean: Sequence[float] | None = None, prior_sd: float = 1.0
) -> Vector:
    """Most probable strengths under the Bradley-Terry model with a Gaussian prior.

    An item beats another with probability ``1 / (1 + exp(-difference))`` (Bradley & Terry 1952).

    Args:
        won: n x n points of the row item against the column item; a tie is half a point each.
        prior_mean: Expected strength of each item; 0 each when left out.
        prior_sd: Standard deviation of the prior, above 0.

    Returns:
        n strengths on a log-odds scale.
    """
    return climb(*_posterior(lambda s: _terry(won, s), len(won), prior_mean, prior_sd))


def descending(scores: Sequence[float] | Vector) -> tuple[int, ...]:
    """Positions by falling score; ties (to nine decimals) keep their order."""
    rounded = np.round(np.asarray(scores, dtype=float), 9)
    return tuple(int(p) for p in np.argsort(-rounded, kind="stable"))


def borda(won: Matrix) -> Vector:
    """Share of points won by each item, in [0, 1]; 0.5 for an item that was never compared.

    Over complete orders this ranks as Borda's count (1781) does.

    Args:
        won: n x n points of the row item against the column item.
    """
    points, games = won.sum(axis=1), (won + won.T).sum(axis=1)
    return np.divide(points, games, out=np.full(len(won), 0.5), where=games > 0)


def copeland(won: Matrix) -> Vector:
    """Opponents that each item beats by majority minus those that beat it, in [1 - n, n - 1].

    Args:
        won: n x n points of the row item against the column item.
    """
    return np.sign(won - won.T).sum(axis=1)


def rrf(
    orders: Sequence[WeakOrder], n: int, *, k: float = 60.0, weights: Sequence[float] | None = None
) -> Vector:
    """Reciprocal rank fusion: the sum of ``1 / (k + rank)`` over the orders (Cormack 2009).

    Args:
        orders: Weak orders; members of a tier share their mean rank, absent items get nothing.
        n: Number of items.
        k: Damping, at least 0; large values make the top ranks matter less.
        weights: How much each order counts; 1 each when left out.
    """
    total = np.zeros(n)
    for tiers, weight in zip(orders, weights or [1.0] * len(orders), strict=True):
        ends = accumulate(len(tier) for tier in tiers)
        for tier, end in zip(tiers, ends, strict=True):
            total[list(tier)] += weight / (k + end - (len(tier) - 1) / 2)
    return total


def wins(orders: Sequence[WeakOrder], n: int, *, weights: Sequence[float] | None = None) -> Matrix:
    """Points of every item (row) against every other (column), counted over weak orders.

    Args:
        orders: Weak orders; members of a tier share the point.
        n: Number of items.
        weights: How much each order counts; 1 each when left out.
    """
    won = np.zeros((n, n))
    for tiers, weight in zip(orders, weights or [1.0] * len(orders), strict=True):
        for winner, loser, share in _points(tiers):
            won[winner, loser] += weight * share
    return won


def _points(tiers: WeakOrder) -> Iterator[tuple[int, int, float]]:
    for place, tier in enumerate(tiers):
        below = [item for lower in tiers[place + 1 :] for item in lower]
        yield from ((winner, loser, 1.0) for winner in tier for loser in below)
        yield from ((winner, loser, 0.5) for winner, loser in permutations(tier, 2))


def _terry(won: Matrix, strength: Vector) -> Curve:
    gap = strength[:, None] - strength[None, :]
    surprise = np.logaddexp(0.0, -gap)
    chance, games = np.exp(-surprise), won + won.T
    pull = games * chance * chance.T
    stiff = pull.sum(axis=1)
    return Curve(
        -float((won * surprise).sum()),
        (won - games * chance).sum(axis=1),
        lambda v: stiff * v - np.einsum("ij,j->i", pull, v),
        stiff,
    )


def _posterior(
    likelihood: Objective,
    n: int,
    prior_mean: Sequence[float] | None,
    prior_sd: float,
) -> tuple[Objective, Vector]:
    """The log-likelihood with a Gaussian prior added, and the prior's mean."""
    if not 0 < prior_sd < np.inf:
        raise InputError(f"prior_sd is {prior_sd}; give a finite number above 0")
    mean = np.zeros(n) if prior_mean is None else np.asarray(prior_mean, dtype=float)
    precision = prior_sd**-2

    def objective(strength: Vector) -> Curve:
        curve, gap = likelihood(strength), strength - mean
        return Curve(
            curve.value - precision * float(gap @ gap) / 2,
            curve.slope - precision * gap,
            lambda v: curve.bend(v) + precision * v,
            curve.scale + precision,
        )

    return objective, mean
