"""How far confidences are from how often answers are right, and the diagram that shows it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from ..errors import InputError
from ._diagram import diagram

By = Literal["width", "mass"]
"""Bars of equal width over [0, 1], or of about equally many answers."""

BARS = 10

Answer = tuple[float, bool]


class Bin(NamedTuple):
    """One bar of a reliability diagram.

    Attributes:
        low: Lowest confidence in the bar.
        high: Highest; the last bar of equal width includes it.
        answers: How many answers fell into it.
        confidence: Their mean confidence.
        accuracy: The share of them that was right.
    """

    low: float
    high: float
    answers: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """Confidences against the truth.

    Attributes:
        answers: How many were measured.
        confidence: Their mean confidence.
        accuracy: The share that was right.
        ece: Expected calibration error over bars of equal width; 0 is perfect.
        ece_mass: The same over bars of about equally many answers, which few bars rule less.
        brier: Mean squared distance of the confidence from 1 where right and 0 where wrong; unlike
            the errors above it also falls when confidences tell right from wrong.
        bins: The bars of equal width that hold any answers.
    """

    answers: int
    confidence: float
    accuracy: float
    ece: float
    ece_mass: float
    brier: float
    bins: tuple[Bin, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON values."""
        return {**asdict(self), "bins": [each._asdict() for each in self.bins]}

    def summary(self) -> str:
        """One line."""
        return (
            f"{self.answers} answers, {self.accuracy:.0%} right, mean confidence "
            f"{self.confidence:.2f}; ECE {self.ece:.3f} (equal mass {self.ece_mass:.3f}), "
            f"Brier {self.brier:.3f}"
        )

    def __str__(self) -> str:
        head = f"{'confidence':<12} {'answers':>7} {'mean':>6} {'right':>6}"
        rows = [
            f"{each.low:.2f}-{each.high:.2f}    {each.answers:>7} {each.confidence:>6.2f} "
            f"{each.accuracy:>6.2f}"
            for each in self.bins
        ]
        return "\n".join([head, *rows, self.summary()])

    def to_svg(self) -> str:
        """The reliability diagram: on the diagonal, claims and truth agree."""
        return diagram(self.bins, self.summary())

    def _repr_html_(self) -> str:
        return self.to_svg()


def reliability(
    confidences: Sequence[float], right: Sequence[bool], bins: int = BARS
) -> Reliability:
    """How far confidences are from how often their answers are right.

    Args:
        confidences: In [0, 1].
        right: Whether each answer was right.
        bins: How many bars.

    Raises:
        InputError: There are no answers, not as many labels, or a confidence outside of [0, 1].
    """
    check(confidences, right)
    return Reliability(
        answers=len(confidences),
        confidence=math.fsum(confidences) / len(confidences),
        accuracy=sum(map(bool, right)) / len(right),
        ece=expected_calibration_error(confidences, right, bins),
        ece_mass=expected_calibration_error(confidences, right, bins, by="mass"),
        brier=brier_score(confidences, right),
        bins=tuple(_by_width(confidences, right, bins)),
    )


def expected_calibration_error(
    confidences: Sequence[float], right: Sequence[bool], bins: int = BARS, *, by: By = "width"
) -> float:
    """Mean gap between confidence and accuracy over the bars, weighted by their counts.

    Naeini, Cooper and Hauskrecht 2015; with bars of equal mass, Nguyen and O'Connor 2015. Zero
    is perfect. It says nothing of how well confidences tell right from wrong, and small samples
    make it too large: 200 answers of a perfect model show about 0.05 in ten bars.
    """
    check(confidences, right)
    cut = _by_mass if by == "mass" else _by_width
    gaps = (
        bar.answers * abs(bar.confidence - bar.accuracy) for bar in cut(confidences, right, bins)
    )
    return math.fsum(gaps) / len(confidences)


def brier_score(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Mean squared distance of confidences from the truth (Brier 1950); 0 is perfect."""
    check(confidences, right)
    pairs = zip(confidences, right, strict=True)
    return math.fsum((sure - bool(good)) ** 2 for sure, good in pairs) / len(right)


def _by_width(confidences: Sequence[float], right: Sequence[bool], bins: int) -> Iterator[Bin]:
    groups: dict[int, list[Answer]] = {}
    for sure, good in zip(confidences, right, strict=True):
        groups.setdefault(min(int(sure * bins), bins - 1), []).append((sure, good))
    for place, group in sorted(groups.items()):
        yield _bar(group, place / bins, (place + 1) / bins)


def _by_mass(confidences: Sequence[float], right: Sequence[bool], bins: int) -> Iterator[Bin]:
    """Equal confidences stay together, so that bars do not depend on the order of answers."""
    pairs = sorted(zip(confidences, right, strict=True), key=lambda pair: pair[0])
    bar: list[Answer] = []
    done, full = 0, 1
    for _, group in groupby(pairs, key=lambda pair: pair[0]):
        bar += group
        if done + len(bar) >= full * len(pairs) / bins:
            yield _bar(bar, bar[0][0], bar[-1][0])
            done += len(bar)
            full = int(done * bins / len(pairs)) + 1
            bar = []


def _bar(group: Sequence[Answer], low: float, high: float) -> Bin:
    mean = math.fsum(sure for sure, _ in group) / len(group)
    return Bin(low, high, len(group), mean, sum(bool(good) for _, good in group) / len(group))


def check(confidences: Sequence[float], right: Sequence[bool]) -> None:
    """Complain about samples from which nothing can be told."""
    if not len(confidences) or len(confidences) != len(right):
        raise InputError(
            f"{len(confidences)} confidences and {len(right)} labels; expected as many, at least 1"
        )
    bad = next((sure for sure in confidences if not 0 <= sure <= 1), None)
    if bad is not None:
        raise InputError(f"confidence {bad!r} is not between 0 and 1")
