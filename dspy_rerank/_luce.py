"""The Plackett-Luce likelihood of weak orders, in time that grows with the members of the orders.

An order is a row of its members, tier by tier. Whoever is chosen at a place stood against all in
lower tiers, whose sum is a difference of running sums, and against a share of its own tier: of t
tied items, j are gone before the choice number j and nobody knows which, so that each stands with
1 - j/t (Efron 1977). What is left at the end was not chosen from, unless the order is one tier.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._newton import Curve, Vector

Matrix = NDArray[np.float64]
Places = NDArray[np.intp]


class Choices(NamedTuple):
    """Successive choices: a row an order, a column a place; rows are filled up with item 0.

    Attributes:
        item: Who stands at the place.
        real: 1, or 0 for fillings.
        start: Where the tier of the place begins, in the flat table of running sums.
        end: Where it ends.
        share: With which its members stand in the choice made at the place.
        weight: How much that choice counts; 0 where none is made.
        credit: How often each item was chosen, by weight.
        strict: Whether there are no ties, so that running sums are all there is to add up.
    """

    item: Places
    real: Matrix
    start: Places
    end: Places
    share: Matrix
    weight: Matrix
    credit: Vector
    strict: bool


def choices_of(
    orders: Sequence[Sequence[Sequence[int]]], weights: Sequence[float] | None, n: int
) -> Choices:
    """Weak orders over n items as choices."""
    told = [tiers for tiers in orders if any(tiers)]
    counts = [1.0] * len(orders) if weights is None else list(weights)
    if len(counts) != len(orders):
        raise ValueError(f"{len(counts)} weights for {len(orders)} orders")
    counts = [count for count, tiers in zip(counts, orders, strict=True) if any(tiers)]
    members = [[*chain.from_iterable(tiers)] for tiers in told]
    width = max(map(len, members), default=0)
    item = np.array([row + [0] * (width - len(row)) for row in members], np.intp)
    item = item.reshape(len(told), width)
    real, start, end, share, chosen = _shapes(told, width)
    weight, each = np.array(counts).reshape(-1, 1), _credit(start, end, chosen)
    ahead = (width + 1) * np.arange(len(told))[:, None]
    return Choices(
        item, real, ahead + start.astype(np.intp), ahead + end.astype(np.intp), share,
        weight * chosen, gathered(item, weight * real * each, n),
        bool((end - start < 2).all()),
    )  # fmt: skip


def _shapes(orders: Sequence[Sequence[Sequence[int]]], width: int) -> Matrix:
    """The rows of ``_shape``, each as a table with a line for every order; most are alike."""
    kinds: dict[tuple[int, ...], int] = {}
    each = [kinds.setdefault(tuple(map(len, tiers)), len(kinds)) for tiers in orders]
    shapes = np.array([_shape(sizes, width) for sizes in kinds]).reshape(len(kinds), 5, width)
    return shapes[np.array(each, np.intp)].transpose(1, 0, 2)


@lru_cache(maxsize=64)
def _shape(sizes: tuple[int, ...], width: int) -> Matrix:
    """Rows of one order: which places are real, tiers' starts and ends, shares, choices made."""
    rows = np.zeros((5, width))
    whole = sum(sizes)
    rows[0, :whole] = 1.0
    for size, end in zip(sizes, accumulate(sizes), strict=True):
        start = end - size
        made = size if end < whole else size - 1 if start == 0 else 0
        rows[1, start:end], rows[2, start:end] = start, end
        rows[3, start:end] = 1 - np.arange(size) / max(size, 1)
        rows[4, start : start + made] = 1.0
    return rows


def _credit(start: Matrix, end: Matrix, chosen: Matrix) -> Matrix:
    """How often each member was chosen: a tier's choices are shared by its members."""
    made = _running(chosen)
    rows = np.arange(len(made))[:, None]
    first, last = start.astype(np.intp), end.astype(np.intp)
    return (made[rows, last] - made[rows, first]) / np.maximum(end - start, 1)


def luce(choices: Choices, strength: Vector) -> Curve:
    """The log-likelihood of the choices, its gradient and its curvature."""
    item, n = choices.item, len(strength)
    mass, total, log_total = _totals(choices, strength)
    alone, shared = choices.weight / total, choices.weight * choices.share / total
    expected = gathered(item, mass * _stood(choices, alone, shared), n)
    value = choices.credit @ strength - float((choices.weight * log_total).sum())

    def bend(v: Vector) -> Vector:
        mean = _against(choices, mass * v[item]) / total
        return expected * v - gathered(item, mass * _stood(choices, alone * mean, shared * mean), n)

    return Curve(float(value), choices.credit - expected, bend, expected)


def stiffness(choices: Choices, strength: Vector) -> Vector:
    """The diagonal of the negated Hessian of ``luce``."""
    mass, total, _ = _totals(choices, strength)
    alone, shared = choices.weight / total, choices.weight * choices.share / total
    once = mass * _stood(choices, alone, shared)
    twice = mass**2 * _stood(choices, alone / total, shared * choices.share / total)
    return gathered(choices.item, once - twice, len(strength))


def _totals(choices: Choices, strength: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """The members' masses, those of all who stood in each choice, and the logs of the latter."""
    utility = strength[choices.item]
    peak = utility.max(axis=1, keepdims=True, initial=-np.inf)
    mass = np.exp(utility - peak) * choices.real
    total = np.where(choices.weight > 0, _against(choices, mass), 1.0)
    return mass, total, peak + np.log(total)


def _against(choices: Choices, amount: Matrix) -> Matrix:
    """For each choice the sum over those who stood in it, by their shares."""
    if choices.strict:
        return amount[:, ::-1].cumsum(axis=1)[:, ::-1]
    left = np.zeros((len(amount), amount.shape[1] + 1))
    left[:, :-1] = amount[:, ::-1].cumsum(axis=1)[:, ::-1]
    below = left.take(choices.end)
    return below + choices.share * (left.take(choices.start) - below)


def _stood(choices: Choices, alone: Matrix, shared: Matrix) -> Matrix:
    """For each member the sum over the choices in which it stood, by its shares."""
    if choices.strict:
        return alone.cumsum(axis=1)
    above, within = _running(alone).take(choices.start), _running(shared)
    return above + within.take(choices.end) - within.take(choices.start)


def _running(amount: Matrix) -> Matrix:
    """Sums of what comes before each place, and at last of all."""
    sums = np.zeros((len(amount), amount.shape[1] + 1))
    amount.cumsum(axis=1, out=sums[:, 1:])
    return sums


def gathered(item: Places, amount: Matrix, n: int) -> Vector:
    """Amounts added up by item."""
    return np.bincount(item.ravel(), amount.ravel(), minlength=n).astype(np.float64, copy=False)
