"""Several rankings of one reranker made into one."""

import random
from collections.abc import Sequence
from typing import Any

import dspy

from ..aggregate import rrf
from ..errors import InputError
from ..options import MOST, at_least
from ..types import Plan
from . import plans
from ._kinds import COMPARING
from .base import Reranker
from .plans import Shape


class Consensus(Reranker):
    """Runs a reranker on several shuffled incoming orders side by side and fuses the results.

    ``passes`` times the calls at the same depth. The first pass keeps the incoming order; orders
    are fused by reciprocal rank. Permutation self-consistency, Tang et al. 2023,
    arXiv:2310.07712.

    Args:
        reranker: Any sorting module.
        passes: How many, 1 to 1,000.
        options: See :class:`Reranker`; those of the inner reranker are not used.
    """

    KINDS = ("pointwise", *COMPARING)
    SCORED = True

    def __init__(self, reranker: Reranker, *, passes: int = 3, **options: Any):
        at_least("passes", passes, 1, MOST)
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
