"""Sorting by windows of many passages that slide, or meet a pivot."""

import logging
from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from ..options import at_least
from ..types import Plan
from . import plans
from ._kinds import GROUPING
from .base import Reranker
from .plans import Shape

logger = logging.getLogger(__name__)


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


class TDPart(Reranker):
    """Partitions around a pivot: about ``2 + (n - w) / (w - 1)`` calls, mostly in 3 rounds.

    A window is ranked, its ``top_k``-th meets all others in windows, and who is better joins the
    candidates. A perfect judge gets the whole ``top_k`` right. Parry et al. 2024,
    arXiv:2405.14589.

    Args:
        judge: Listwise; setwise judges name one above the pivot only.
        window: Passages in a question, at least 2.
        options: See :class:`Reranker`.
    """

    KINDS = GROUPING

    def __init__(self, judge: Any, *, window: int = 20, **options: Any):
        at_least("window", window, 2)
        super().__init__(judge)
        self._configure({"window": window}, **options)

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        return plans.td_part(n, top_k, window=self.settings["window"])

    def _shape(self, n: int, top_k: int) -> Shape:
        return plans.td_part_shape(n, top_k, window=self.settings["window"])
