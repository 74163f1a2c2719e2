"""Maps from what a model claims to how often it is right, fitted on labels."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from ..errors import InputError
from ._reliability import check

EDGE = 1e-6
"""Confidences are kept this far from 0 and 1 where their logit is taken."""


@dataclass(frozen=True)
class Calibration:
    """A map from raw confidence to probability, rising, and constant outside of what was seen.

    Attributes:
        method: How it was fitted, ``isotonic`` or ``platt``.
        xs: Isotonic: where the probability is known, rising; between them it is interpolated.
        ys: The probabilities there, not falling.
        slope: Platt: of the logit.
        shift: Platt: of the logit.
        n: How many answers it was fitted on.
    """

    method: str
    xs: tuple[float, ...] = ()
    ys: tuple[float, ...] = ()
    slope: float = 1.0
    shift: float = 0.0
    n: int = 0

    def __call__(self, confidence: float) -> float:
        """The probability that an answer of this confidence is right."""
        if self.method == "platt":
            return _logistic(self.slope * _logit(confidence) + self.shift)
        place = bisect_right(self.xs, confidence)
        if place in (0, len(self.xs)):
            return self.ys[0 if place == 0 else -1]
        (x0, x1), (y0, y1) = self.xs[place - 1 : place + 1], self.ys[place - 1 : place + 1]
        return y0 + (y1 - y0) * (confidence - x0) / (x1 - x0)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "xs": list(self.xs), "ys": list(self.ys)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Calibration":
        """What `to_dict` described."""
        return cls(**{**state, "xs": tuple(state["xs"]), "ys": tuple(state["ys"])})


def fit_isotonic(confidences: Sequence[float], right: Sequence[bool]) -> Calibration:
    """The best non-falling map (pool adjacent violators); for some hundred answers or more.

    Zadrozny and Elkan 2002. Each pool counts one right and one wrong answer more than it has, so
    that nothing becomes certain for having been right a few times.
    """
    check(confidences, right)
    pairs = sorted(zip(confidences, right, strict=True), key=lambda pair: pair[0])
    pools: list[list[float]] = []  # sum of confidences, right ones, count
    for sure, group in groupby(pairs, key=lambda pair: pair[0]):
        goods = [good for _, good in group]
        pools.append([sure * len(goods), float(sum(goods)), float(len(goods))])
        while len(pools) > 1 and pools[-2][1] * pools[-1][2] >= pools[-1][1] * pools[-2][2]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    ys = [(good + 1) / (count + 2) for _, good, count in pools]
    rising = [max(ys[: place + 1]) for place in range(len(ys))]
    xs = tuple(total / count for total, _, count in pools)
    return Calibration("isotonic", xs, tuple(rising), n=len(pairs))


def fit_platt(confidences: Sequence[float], right: Sequence[bool], steps: int = 50) -> Calibration:
    """A logistic map of the logit, by Newton steps; for few answers.

    Platt 1999, with his smoothed targets, after which a separable sample has a finite fit.
    """
    check(confidences, right)
    positives = sum(right)
    high = (positives + 1) / (positives + 2)
    low = 1 / (len(right) - positives + 2)
    points = [
        (_logit(c), high if good else low) for c, good in zip(confidences, right, strict=True)
    ]
    slope, shift = 1.0, 0.0
    for _ in range(steps):
        step = _newton(points, slope, shift)
        slope, shift = slope + step[0], shift + step[1]
        if max(map(abs, step)) < 1e-9:
            break
    return Calibration("platt", slope=max(0.0, slope), shift=shift, n=len(points))


FITS = {"isotonic": fit_isotonic, "platt": fit_platt}


def fit(confidences: Sequence[float], right: Sequence[bool], method: str) -> Calibration:
    """A fit by the name of its method."""
    if method not in FITS:
        raise InputError(f"method={method!r}; expected one of {', '.join(FITS)}")
    return FITS[method](confidences, right)


def _newton(
    points: Sequence[tuple[float, float]], slope: float, shift: float
) -> tuple[float, float]:
    """One step towards the likeliest slope and shift, no longer than one."""
    g0 = g1 = h00 = h01 = h11 = 0.0
    for x, target in points:
        p = _logistic(slope * x + shift)
        weight, gap = max(p * (1 - p), 1e-9), target - p
        g0, g1 = g0 + gap * x, g1 + gap
        h00, h01, h11 = h00 + weight * x * x, h01 + weight * x, h11 + weight
    h00, h11 = h00 + 1e-6, h11 + 1e-6
    determinant = h00 * h11 - h01 * h01
    step = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
    scale = min(1.0, 1 / max(map(abs, step))) if any(step) else 1.0
    return step[0] * scale, step[1] * scale


def _logit(confidence: float) -> float:
    inside = min(max(confidence, EDGE), 1 - EDGE)
    return math.log(inside / (1 - inside))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -500.0), 500.0)))
