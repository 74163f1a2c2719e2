"""Weights of several scores, fitted to labels: a linear ranker, shrunk towards the one given.

Pairwise logistic regression (RankNet with a linear scorer, Burges et al. 2005) by Newton's method.
Pure: scores and grades in, weights out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ..metrics import score_order
from ..prior import blend
from ..sorters.plans import order_by_score
from .crossval import best_of, folds, others

Array = NDArray[np.float64]

STEPS = 50
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Scored:
    """What was said about the candidates of one query.

    Attributes:
        scores: One row a candidate, one column a judge; ``nan`` where a judge did not know.
        evidence: Of the first stage, z-scored, by position.
        grades: By position; ``None`` where nobody has judged, which counts as not relevant.
        ideal: Grades above 0 of documents that are not candidates.
    """

    scores: Array
    evidence: tuple[float, ...]
    grades: tuple[float | None, ...]
    ideal: tuple[float, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Differences between candidates of one query, better less worse.

    Attributes:
        gaps: One row a pair, one column a judge, and a last one for the first stage.
        worth: Of each pair: its gap in grades; all pairs of a query sum to 1.
    """

    gaps: Array
    worth: Array


def spread(scores: Sequence[Array]) -> Array:
    """How far each column is apart within a query: the root of the mean variance; 1 for nothing.

    Args:
        scores: Of each query, one row a candidate.
    """
    known = [rows[~np.isnan(rows).any(axis=1)] for rows in scores]
    within = np.mean([rows.var(axis=0) for rows in known if len(rows)], axis=0)
    return np.where(within > 1e-18, np.sqrt(within), 1.0)


def pairs_of(query: Scored, scale: Array) -> Pairs:
    """All pairs of different grades that every judge knows about; without any, no rows."""
    grades = [grade or 0.0 for grade in query.grades]
    rows = np.column_stack([query.scores, query.evidence])
    known = [place for place, row in enumerate(query.scores) if not np.isnan(row).any()]
    found = [(a, b) for a, b in permutations(known, 2) if grades[a] > grades[b]]
    better, worse = [a for a, _ in found], [b for _, b in found]
    worth = np.array([grades[a] - grades[b] for a, b in found], dtype=float)
    gaps = (rows[better] - rows[worse]) / scale
    return Pairs(gaps, worth / worth.sum() if len(worth) else worth)


def fitted(pairs: Sequence[Pairs], start: Array, penalty: float) -> Array:
    """Weights on scaled scores that order the pairs best, near those given.

    The start counts for its direction: how steep it is, is fitted first.

    Args:
        pairs: Of each query; all queries count alike.
        start: Weights to stay near.
        penalty: Of the squared distance from the start, for each query; above 0.
    """
    gaps = np.concatenate([each.gaps for each in pairs])
    worth = np.concatenate([each.worth for each in pairs])
    if not len(gaps) or not np.any(start):
        centre = start
    else:
        steep = _newton(gaps @ start[:, None], worth, np.zeros(1), 1e-3)
        centre = start * max(float(steep[0]), 1e-3)
    if not len(gaps):
        return centre
    return _newton(gaps, worth, centre, penalty * len(pairs))


def _newton(gaps: Array, worth: Array, centre: Array, penalty: float) -> Array:
    """Least ``sum worth log(1 + exp(-gaps w)) + penalty/2 |w - centre|^2``."""
    weights = centre.copy()
    for _ in range(STEPS):
        wrong = 1 / (1 + np.exp(np.clip(gaps @ weights, -500, 500)))
        slope = penalty * (weights - centre) - gaps.T @ (worth * wrong)
        bend = (gaps.T * (worth * wrong * (1 - wrong))) @ gaps + penalty * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights = weights - step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < TOLERANCE:
            break
    return weights


@dataclass(frozen=True)
class Weights:
    """How a linear ranker scores a candidate: judges' scores and first stage, weighed and added.

    Attributes:
        judges: One weight each, on the judge's own scale.
        first: Of the first stage's z-scored evidence; not negative.
        spread: How far the weighed scores are apart within a query on average.
    """

    judges: tuple[float, ...]
    first: float
    spread: float

    @property
    def prior(self) -> float:
        """The weight of the first stage as a share, with scores divided by their spread."""
        return self.first / (self.first + self.spread) if self.first else 0.0


@dataclass(frozen=True)
class Weighing:
    """Weights tried on queries whose scores are known.

    Attributes:
        queries: What the judges said of each.
        given: The student's weights, on the judges' own scales.
        prior: The student's, applied to scores z-scored within each query.
        metric: What counts.
        parts: Of a cross-validation.
        seed: Of its folds.
    """

    queries: tuple[Scored, ...]
    given: tuple[float, ...]
    prior: float
    metric: str
    parts: int
    seed: int

    @cached_property
    def scale(self) -> Array:
        """Of each judge, and of the first stage."""
        return np.append(spread([query.scores for query in self.queries]), 1.0)

    @cached_property
    def start(self) -> Array:
        """The student's weights, and of its prior what that is on average."""
        sums = [(query.scores @ np.array(self.given))[:, None] for query in self.queries]
        share = min(self.prior, 0.95)
        return np.array([*self.given, share / (1 - share) * spread(sums)[0]])

    @cached_property
    def _pairs(self) -> list[Pairs]:
        return [pairs_of(query, self.scale) for query in self.queries]

    def fit(self, penalty: float, places: Sequence[int]) -> Array:
        """Weights on the own scales, from some of the queries; the last is the first stage's."""
        found = fitted([self._pairs[place] for place in places], self.start * self.scale, penalty)
        return np.append(found[:-1], max(0.0, found[-1])) / self.scale

    def weights(self, found: Array) -> Weights:
        """Fitted weights, named."""
        judges = tuple(float(f"{weight:.6g}") for weight in found[:-1])
        sums = [(query.scores @ np.array(judges))[:, None] for query in self.queries]
        apart = float(f"{spread(sums)[0]:.6g}")
        return Weights(judges, float(f"{found[-1]:.6g}"), apart)

    def values(self, found: Array, places: Sequence[int]) -> list[float]:
        """The metric of each of some queries, ranked by fitted weights."""
        return [self._value(place, self._columns(place) @ found) for place in places]

    def before(self, places: Sequence[int]) -> list[float]:
        """The metric of each of some queries, ranked by the student."""
        found = []
        for place in places:
            query = self.queries[place]
            scores = _known(query.scores @ np.array(self.given))
            found.append(self._value(place, blend(scores, query.evidence, self.prior)))
        return found

    def _columns(self, place: int) -> Array:
        query = self.queries[place]
        return np.column_stack([query.scores, query.evidence])

    def _value(self, place: int, scores: Iterable[float | None]) -> float:
        query = self.queries[place]
        return score_order(self.metric, query.grades, order_by_score(_known(scores)), query.ideal)

    def table(self, penalties: Sequence[float], places: Sequence[int]) -> Array:
        """The student in the first row, then a row a penalty; each query out of its own fit."""
        chosen = list(places)
        table = np.empty((1 + len(penalties), len(chosen)))
        table[0] = self.before(chosen)
        for part in folds(len(chosen), self.parts, self.seed):
            rest = [chosen[i] for i in others(part, len(chosen))]
            here = [chosen[i] for i in part]
            for row, penalty in enumerate(penalties, 1):
                table[row, list(part)] = self.values(self.fit(penalty, rest), here)
        return table

    def left_out(self, penalties: Sequence[float], sure: float) -> Array:
        """Every query by weights chosen and fitted without it, or by the student where it won."""
        held = np.empty(len(self.queries))
        for part in folds(len(self.queries), self.parts, self.seed + 1):
            rest = others(part, len(self.queries))
            row = best_of(self.table(penalties, rest), sure)
            fitted_ = self.fit(penalties[row - 1], rest) if row else None
            values = self.before(part) if fitted_ is None else self.values(fitted_, part)
            held[list(part)] = values
        return held


def _known(scores: Iterable[float | None]) -> list[float | None]:
    """Scores, ``None`` where there is none."""
    return [None if s is None or np.isnan(s) else float(s) for s in scores]
