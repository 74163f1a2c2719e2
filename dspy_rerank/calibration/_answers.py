"""Judgments against labels: which of them were right."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..types import Judgment

Grades = Sequence[float | None]
"""Relevance by position; ``None`` where nobody has judged."""


class Answers(NamedTuple):
    """Confidences, and whether their answers were right, in the order in which they were given."""

    confidences: tuple[float, ...]
    right: tuple[bool, ...]


def answers(
    judged: Iterable[tuple[Sequence[Judgment], Grades]],
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    top: float | None = None,
) -> Answers:
    """The judgments that have a confidence and labels to compare them with.

    Args:
        judged: For each query its judgments and the relevance of its candidates by position.
        scale: Lowest and highest grade of a pointwise judge; 0 and 1 of one that says yes or no.
        top: The relevance that the highest grade stands for; ``None`` is the highest there is.
    """
    queries = [(judgments, list(grades)) for judgments, grades in judged]
    given = [grade for _, grades in queries for grade in grades if grade is not None]
    best = top if top is not None else max(given, default=0.0)
    found = [
        (judgment.confidence, right)
        for judgments, grades in queries
        for judgment in judgments
        if judgment.confidence is not None
        and (right := is_right(judgment, grades, scale=scale, top=best)) is not None
    ]
    return Answers(tuple(sure for sure, _ in found), tuple(right for _, right in found))


def is_right(
    judgment: Judgment, grades: Grades, *, scale: tuple[float, float] = (0.0, 1.0), top: float = 1.0
) -> bool | None:
    """Whether a judgment agrees with the labels; ``None`` where these do not tell.

    A grade is right within half a step of the label, which is put on the judge's scale in
    proportion; a likelihood, when it says relevant (its probability is at least one half) of what
    is. A preference is right for the higher label; labels that are equal tell nothing. A choice
    or the first of an order is right when no label in the group is higher, and "none" when none
    is above zero; passages without a label count zero, but for the one that was chosen.

    Args:
        judgment: Over positions in the incoming list.
        grades: Relevance by position.
        scale: As in :func:`answers`.
        top: As in :func:`answers`.
    """
    if not judgment.known:
        return None
    if judgment.kind == "pointwise":
        return _grade_is_right(judgment, grades[judgment.group[0]], scale, top)
    best = judgment.order[0] if judgment.order else judgment.best
    values = {place: grades[place] for place in judgment.group}
    if judgment.kind == "pairwise":
        return _preference_is_right(best, values)
    return _choice_is_right(best, values)


def _grade_is_right(
    judgment: Judgment, grade: float | None, scale: tuple[float, float], top: float
) -> bool | None:
    if grade is None or judgment.score is None:
        return None
    if judgment.evidence == "likelihood":
        chance = judgment.probabilities[0] if judgment.probabilities else None
        return None if chance is None else (chance >= 0.5) == (grade > 0)
    low, high = scale
    label = low + (high - low) * max(0.0, grade) / (top or 1.0)
    return abs(judgment.score - label) <= 0.5


def _preference_is_right(best: int | None, values: Mapping[int, float | None]) -> bool | None:
    known = [value for value in values.values() if value is not None]
    if len(known) < len(values) or len(set(known)) < 2:
        return None
    return best is not None and values[best] == max(known)


def _choice_is_right(best: int | None, values: Mapping[int, float | None]) -> bool | None:
    most = max((value or 0.0 for value in values.values()), default=0.0)
    if best is None:
        return most <= 0
    chosen = values[best]
    return None if chosen is None else chosen >= most


def standings(scores: Sequence[float]) -> tuple[float, ...] | None:
    """Each score's place among those of its query, in (0, 1); ``None`` where all are the same.

    The logistic function of the z-score. Likelihoods of different queries cannot be compared:
    a rare word costs every passage alike. Within a query they can.
    """
    if len(scores) < 2:
        return None
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return None
    return tuple(1 / (1 + math.exp((mean - score) / spread)) for score in scores)
