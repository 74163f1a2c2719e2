"""Judgments to scores: choice models and voting rules over weak orders. Pure numpy.

Two kinds of data make a grid. *Weak orders* (tiers of positions, best tier first; what
``Judgment.tiers`` gives) go to ``plackett_luce``, ``rrf`` and ``wins``; a *wins matrix* (what
``wins`` gives) goes to ``bradley_terry``, ``borda`` and ``copeland``. Items are positions
``0..n-1``; every function returns one value an item, higher is better.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._newton import Curve, Objective, Vector, climb
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


class _Choices(NamedTuple):
    """Successive choices, the form in which Plackett-Luce reads weak orders.

    Attributes:
        item: Row per choice: who stood for election, filled up with item 0.
        log_share: The log of the share with which each of them stood; that of a filling is -inf.
        weight: How much each choice counts.
        credit: How often each item was chosen, by weight.
    """

    item: NDArray[np.intp]
    log_share: Matrix
    weight: Vector
    credit: Vector


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
    choices = _choices(orders, weights, n)
    objective, mean = _posterior(lambda s: _luce(choices, s), n, prior_mean, prior_sd)
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
    choices = _choices(orders, weights, n)
    mean = climb(*_posterior(lambda s: _luce(choices, s), n, prior_mean, prior_sd))
    precision = _information(choices, mean) + np.eye(n) * prior_sd**-2
    return Posterior(mean, np.sqrt(np.diag(np.linalg.inv(precision))))


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


def _choices(orders: Sequence[WeakOrder], weights: Sequence[float] | None, n: int) -> _Choices:
    listed = [[item for tier in tiers for item in tier] for tiers in orders]
    width = max(map(len, listed), default=0)
    items, shares, counts = [np.zeros((0, width), np.intp)], [np.zeros((0, width))], [np.zeros(0)]
    credit = np.zeros(n)
    given = [1.0] * len(orders) if weights is None else weights
    for tiers, members, weight in zip(orders, listed, given, strict=True):
        share, each = _shares(tuple(map(len, tiers)), width)
        row = np.array(members + [0] * (width - len(members)), dtype=np.intp)
        items.append(np.broadcast_to(row, share.shape))
        shares.append(share)
        counts.append(np.full(len(share), weight))
        credit[members] += weight * each
    return _Choices(
        np.concatenate(items),
        np.concatenate(shares),
        np.concatenate(counts),
        credit,
    )


@lru_cache(maxsize=16)
def _shares(sizes: tuple[int, ...], width: int) -> tuple[Matrix, Vector]:
    """Log shares of an order's members in each of its choices, and how often each was chosen.

    Of t tied items, j are gone before choice j and nobody knows which: each stands with 1 - j/t.
    What is left at the end was not chosen from, unless the order is one tier.
    """
    ends, whole = list(accumulate(sizes)), sum(sizes)
    share, chosen = np.zeros((max(0, whole - 1), width)), np.zeros(whole)
    for size, end in zip(sizes, ends, strict=True):
        start = end - size
        count = size if end < whole else size - 1 if start == 0 else 0
        share[start : start + count, start:whole] = 1.0
        share[start : start + count, start:end] -= np.arange(count)[:, None] / max(size, 1)
        chosen[start:end] = count / max(size, 1)
    rows = whole - sizes[-1] if len(sizes) > 1 else max(0, whole - 1)
    with np.errstate(divide="ignore"):
        return np.log(share[:rows]), chosen


def _luce(choices: _Choices, strength: Vector) -> Curve:
    item, n = choices.item, len(strength)
    chance, log_total = _chances(choices, strength)
    weighted = chance * choices.weight[:, None]
    expected = _gathered(item, weighted, n)
    value = choices.credit @ strength - choices.weight @ log_total

    def bend(v: Vector) -> Vector:
        mean = np.einsum("ci,ci->c", chance, v[item])
        return expected * v - _gathered(item, weighted * mean[:, None], n)

    return Curve(float(value), choices.credit - expected, bend)


def _chances(choices: _Choices, strength: Vector) -> tuple[Matrix, Vector]:
    """The chance of everyone in each choice, and the log of what the chances are shares of."""
    utility = choices.log_share + strength[choices.item]
    peak = utility.max(axis=1, keepdims=True, initial=-np.inf)
    mass = np.exp(utility - peak)
    total = mass.sum(axis=1, keepdims=True)
    return mass / total, (peak + np.log(total)).ravel()


def _information(choices: _Choices, strength: Vector) -> Matrix:
    """The negated Hessian of ``_luce``, as a matrix."""
    chance, _ = _chances(choices, strength)
    rows, n = len(chance), len(strength)
    cells = choices.item + n * np.arange(rows)[:, None]
    table = _gathered(cells, chance, rows * n).reshape(rows, n)
    weighted = table * choices.weight[:, None]
    return np.diag(weighted.sum(axis=0)) - table.T @ weighted


def _gathered(item: NDArray[np.intp], amount: Matrix, n: int) -> Vector:
    return np.bincount(item.ravel(), amount.ravel(), minlength=n).astype(np.float64)


def _terry(won: Matrix, strength: Vector) -> Curve:
    gap = strength[:, None] - strength[None, :]
    surprise = np.logaddexp(0.0, -gap)
    chance, games = np.exp(-surprise), won + won.T
    pull = games * chance * chance.T
    return Curve(
        -float((won * surprise).sum()),
        (won - games * chance).sum(axis=1),
        lambda v: pull.sum(axis=1) * v - np.einsum("ij,j->i", pull, v),
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
        )

    return objective, mean
