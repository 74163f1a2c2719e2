"""Sorting by grades: every document is judged alone."""

from collections.abc import Sequence

from ..types import Plan
from . import plans
from .base import Reranker
from .plans import Shape


class ScoreSort(Reranker):
    """Sorts by each document's own grade: ``n`` calls in one round.

    Documents whose grade is unknown keep their incoming place. Each document is judged alone, so
    grades have to be comparable, and are easy to cache and to explain.
    """

    KINDS = ("pointwise",)
    SCORED = True

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.score_sort(n)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.score_shape(n)
