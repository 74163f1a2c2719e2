"""The sorting modules: each ties a plan to a judge and stores its settings."""

import logging
import random
from collections.abc import Sequence
from typing import Any

import dspy

from ..aggregate import rrf
from ..errors import InputError
from ..types import Plan
from . import plans
from .base import Reranker
from .plans import Shape

logger = logging.getLogger(__name__)

COMPARING = ("pairwise", "setwise", "listwise")
GROUPING = ("listwise", "setwise")


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


class SlidingWindow(Reranker):
    """Slides a window from the end to the front: ``ceil((n - w) / s) + 1`` calls, one a round.

    Each window passes its best ``window - step`` on, so no more than that many can reach the top:
    a perfect judge loses 7.5 points of nDCG@10 with 10/5. Sun et al. 2023, arXiv:2304.09542.

    Args:
        judge: Listwise, or setwise.
        window: Passages in a question, at least 2.
        step: How far the window moves, from 1 to ``window``.
        options: See :class:`Reranker`.
    """

    KINDS = GROUPING

    def __init__(self, judge: Any, *, window: int = 20, step: int = 10, **options: Any):
        at_least("window", window, 2)
        at_least("step", step, 1)
        if step > window:
            raise InputError(f"step={step} leaves out documents; expected at most window={window}")
        super().__init__(judge)
        self._configure({"window": window, "step": step}, **options)

    @property
    def _sizes(self) -> dict[str, int]:
        return {"window": self.settings["window"], "step": self.settings["step"]}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        reach = plans.promised(self._sizes["window"], self._sizes["step"], n)
        if 0 < reach < top_k < n:
            logger.warning(
                "window %d with step %d brings at most %d documents to the top, and %d are wanted; "
                "use a smaller step or a larger window",
                *self._sizes.values(),
                reach,
                top_k,
            )
        return plans.sliding_window(n, **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.window_shape(n, **self._sizes)


class TopDown(Reranker):
    """Judges parallel windows, keeps the strongest, repeats: for 100 documents 8 calls, 3 rounds.

    One strength a document is fitted to all judgments so far (Plackett-Luce with a Gaussian
    prior), and the pool shrinks to the strongest: 100, 40, 20 in windows of 20. The score is that
    strength, on a log-odds scale. See :func:`dspy_rerank.sorters.plans.top_down`.

    Args:
        judge: Listwise, or setwise.
        window: Passages in a question, at least 2.
        rounds: Steps when the documents exceed a window, at least 2.
        prior: Weight of the first stage: the expected strength of a document before it is judged
            is ``2 * prior`` standard deviations for each of its z-score.
        options: See :class:`Reranker`.
    """

    KINDS = GROUPING
    SCORED = True
    PRIOR_IS_FREE = False

    def __init__(self, judge: Any, *, window: int = 20, rounds: int = 3, **options: Any):
        at_least("window", window, 2)
        at_least("rounds", rounds, 2)
        super().__init__(judge)
        self._configure({"window": window, "rounds": rounds}, **options)

    @property
    def _sizes(self) -> dict[str, int]:
        return {"window": self.settings["window"], "rounds": self.settings["rounds"]}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        weight = self.settings["prior"]
        prior = [2 * weight * value for value in evidence] if weight else None
        return plans.top_down(n, top_k, prior=prior, **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.top_down_shape(n, top_k, **self._sizes)


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


class Consensus(Reranker):
    """Runs a reranker on several shuffled incoming orders side by side and fuses the results.

    ``passes`` times the calls at the same depth. The first pass keeps the incoming order; orders
    are fused by reciprocal rank. Permutation self-consistency, Tang et al. 2023,
    arXiv:2310.07712.

    Args:
        reranker: Any sorting module.
        passes: How many.
        options: See :class:`Reranker`; those of the inner reranker are not used.
    """

    KINDS = ("pointwise", *COMPARING)
    SCORED = True

    def __init__(self, reranker: Reranker, *, passes: int = 3, **options: Any):
        at_least("passes", passes, 1)
        if not isinstance(reranker, Reranker):
            raise InputError(f"reranker is {type(reranker).__name__}; expected a sorting module")
        dspy.Module.__init__(self)
        self.reranker = reranker
        self._configure({"passes": passes}, **options)

    @property
    def judge(self) -> Any:
        """The inner reranker's judge; stored there only, so that DSPy finds it once."""
        return self.reranker.judge

    @judge.setter
    def judge(self, judge: Any) -> None:
        self.reranker.judge = judge

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        orders = self._orders(n)
        inner = self.reranker
        runs = [
            plans.relabelled(inner._plan(n, top_k, [evidence[p] for p in order]), order)
            for order in orders
        ]
        return plans.consensus(runs, n, fuse=rrf)

    def _orders(self, n: int) -> list[list[int]]:
        rng = random.Random(self.settings["seed"])
        first = list(range(n))
        return [first, *(rng.sample(first, n) for _ in range(self.settings["passes"] - 1))]

    def _shape(self, n: int, top_k: int) -> Shape:
        shape = self.reranker._shape(n, top_k)
        return plans.consensus_shape([shape] * self.settings["passes"])

    def __repr__(self) -> str:
        return f"Consensus({self.reranker!r}, passes={self.settings['passes']})"


def at_least(name: str, value: Any, least: int) -> None:
    """Complain unless a setting is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")
