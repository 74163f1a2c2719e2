"""Sorting by tournaments: points for those who get on, or a graph of who is better."""

from collections.abc import Sequence
from typing import Any

from ..options import MOST, at_least
from ..types import Plan
from . import plans
from ._kinds import COMPARING, GROUPING
from .base import Reranker
from .plans import Shape


class TourRank(Reranker):
    """Tournaments in stages, side by side: for 100 documents ``13 rounds`` calls, always 5 deep.

    The score is the number of stages survived in all tournaments, which needs several of them to
    tell neighbours apart. Chen et al. 2024, arXiv:2406.11678.

    Args:
        judge: Listwise; setwise judges leave all but the best of a group in incoming order.
        rounds: Tournaments, 1 to 1,000.
        window: Passages in a question, at least 2.
        options: See :class:`Reranker`; ``seed`` draws the order in which groups are shown.
    """

    KINDS = GROUPING
    SCORED = True

    def __init__(self, judge: Any, *, rounds: int = 1, window: int = 20, **options: Any):
        at_least("rounds", rounds, 1, MOST)
        at_least("window", window, 2)
        super().__init__(judge)
        self._configure({"rounds": rounds, "window": window}, **options)

    @property
    def _sizes(self) -> dict[str, int]:
        return {"rounds": self.settings["rounds"], "window": self.settings["window"]}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.tour_rank(n, seed=self.settings["seed"], **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.tour_rank_shape(n, **self._sizes)


class Tournament(Reranker):
    """Keeps every relation of every answer and stops when the top is certain: the fewest calls.

    For the first 10 of 100 documents about 7 calls of 20 in 3 rounds. A perfect judge gets the
    whole ``top_k`` right; a noisy one is asked too little to be corrected (see
    ``benchmarks/sorting.py``). Contradictions become ties, which the strengths of all answers
    order. After BlitzRank; see :func:`dspy_rerank.sorters.plans.tournament`.

    Args:
        judge: Listwise, setwise, or pairwise, for which questions hold two passages.
        window: Passages in a question, at least 2.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING

    def __init__(self, judge: Any, *, window: int = 20, **options: Any):
        at_least("window", window, 2)
        super().__init__(judge)
        self._configure({"window": window}, **options)

    @property
    def _sizes(self) -> dict[str, Any]:
        pairs, whole = self.judge.kind == "pairwise", self.judge.kind != "setwise"
        return {"window": 2 if pairs else self.settings["window"], "whole": whole}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.tournament(n, top_k, **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.tournament_shape(n, top_k, **self._sizes)
