"""Sorting by small comparisons: pairs, or a few passages of which the best is named."""

from collections.abc import Sequence
from typing import Any

from ..options import at_least
from ..types import Plan
from . import plans
from ._kinds import COMPARING
from .base import Reranker
from .plans import Shape


class AllPairs(Reranker):
    """Compares every pair: ``n (n - 1) / 2`` questions in one round (PRP-allpair).

    The most robust against errors and the most expensive. The score is the share of comparisons
    won, a tie counting half. Qin et al. 2023, arXiv:2306.17563.
    """

    KINDS = COMPARING
    SCORED = True

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.all_pairs(n)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.all_pairs_shape(n)


class MergeSort(Reranker):
    """Merge sort by comparisons: about ``n log2 n - n`` questions.

    Merges of one level advance together, so the depth is that of the longest merge of each level.
    Ties and unknowns keep the incoming order.
    """

    KINDS = COMPARING

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.merge_sort(n, top_k)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.merge_shape(n, top_k)


class HeapSort(Reranker):
    """Selects the top ``k`` with a heap: about ``n / c + k log_c n`` questions.

    Zhuang et al. 2023, arXiv:2310.09497.

    Args:
        judge: Pairwise, or setwise or listwise for groups of a parent and its children.
        children: Children of a node; ``None`` is 1 for pairwise judges (a binary heap in pairs)
            and 9 for others, whose questions then hold 10 passages.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING

    def __init__(self, judge: Any, *, children: int | None = None, **options: Any):
        if children is not None:
            at_least("children", children, 1)
        super().__init__(judge)
        self._configure({"children": children}, **options)
        if self._children > 1:
            self._in_pairs_only("children", "1")

    @property
    def _children(self) -> int:
        return self.settings["children"] or (1 if self.judge.kind == "pairwise" else 9)

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.heap_sort(n, top_k, children=self._children)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.heap_shape(n, top_k, children=self._children)


class PRPSliding(Reranker):
    """Bubble sort on pairs (PRP-Sliding-K): up to ``K (n - 1)`` questions, ``n + K - 2`` rounds.

    Passes follow one another at a distance of two places, at the same time, which leaves the
    result as it is and makes the depth that of one pass. Qin et al. 2023, arXiv:2306.17563.

    Args:
        judge: Pairwise, setwise or listwise; questions hold two passages.
        passes: K, which brings that many documents to the top; ``None`` is ``top_k``.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING

    def __init__(self, judge: Any, *, passes: int | None = None, **options: Any):
        if passes is not None:
            at_least("passes", passes, 1)
        super().__init__(judge)
        self._configure({"passes": passes}, **options)

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.prp_sliding(n, top_k, passes=self.settings["passes"])

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.prp_sliding_shape(n, top_k, passes=self.settings["passes"])


class Survivor(Reranker):
    """The best so far meets new candidates, from worst to best: ``ceil((n - 1) / w)`` calls a pass.

    One pass for each place of ``top_k``, without repeating a question; every question can be
    answered with one token.

    Args:
        judge: Setwise, or listwise; pairwise with ``window=1``.
        window: New candidates in a question, beside the survivor.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING

    def __init__(self, judge: Any, *, window: int = 8, **options: Any):
        at_least("window", window, 1)
        super().__init__(judge)
        self._configure({"window": window}, **options)
        if window > 1:
            self._in_pairs_only("window", "1")

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.survivor(n, top_k, window=self.settings["window"])

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.survivor_shape(n, top_k, window=self.settings["window"])
