"""Our scores as the number in [0, 1] that clients of Cohere and Jina must be given.

A reranker's own score is a grade, a log-likelihood, a share of wins, a fitted strength, or does
not exist. Each is put on [0, 1] by a fixed rule that keeps the order and does not depend on
``top_n``, and the answer says which rule it was. None of them is a probability or a confidence.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ..ranking import Ranking
from ..sorters import AllPairs, Reranker, ScoreSort

Rule = Literal["grade", "likelihood", "wins", "logistic", "rank"]

MEANING: dict[Rule, str] = {
    "grade": "the judge's grade as a share of its scale; comparable between requests",
    "likelihood": "geometric mean probability of the query's tokens given the document; "
    "comparable between documents of one query",
    "wins": "share of comparisons won against the other documents of this request",
    "logistic": "1/(1+exp(-score)) of a score that is relative to this request's documents",
    "rank": "the place only, (n - rank + 1) / n: this ranking has no scores",
}


class Relevance(NamedTuple):
    """One number in [0, 1] a result, best first, and what they mean."""

    values: tuple[float, ...]
    rule: Rule


def relevance(ranking: Ranking, reranker: Reranker) -> Relevance:
    """What is said of each result's relevance.

    Where any score is unknown, or scores do not fall with the rank, only the rank is said.
    """
    known = [score for score in ranking.scores if score is not None and math.isfinite(score)]
    if len(known) == len(ranking):
        rule = _rule(ranking, reranker)
        values = tuple(_share(score, rule, reranker.judge) for score in known)
        if all(a >= b for a, b in pairwise(values)):
            return Relevance(values, rule)
    return Relevance(tuple((ranking.n - item.rank + 1) / ranking.n for item in ranking), "rank")


def _rule(ranking: Ranking, reranker: Reranker) -> Rule:
    blended = bool(reranker.settings["prior"])
    if isinstance(reranker, ScoreSort) and not blended:
        if ranking.evidence == "likelihood":
            return "likelihood"
        return "logistic" if _scale(reranker.judge) is None else "grade"
    return "wins" if isinstance(reranker, AllPairs) and not blended else "logistic"


def _share(score: float, rule: Rule, judge: Any) -> float:
    if rule == "grade":
        low, high = _scale(judge) or (0.0, 1.0)
        return _within((score - low) / (high - low))
    if rule == "wins":
        return _within(score)
    if rule == "likelihood":
        return _within(math.exp(min(score, 0.0)))
    return 1 / (1 + math.exp(-score)) if score > -700 else 0.0


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))


def _scale(judge: Any) -> Sequence[float] | None:
    """Lowest and highest grade of a judge that has a scale."""
    signature = getattr(judge, "signature", None)
    if signature is None:
        return None
    if signature.output_fields[judge.roles.answer].annotation is bool:
        return (0.0, 1.0)
    return judge.settings.values.get("scale")
