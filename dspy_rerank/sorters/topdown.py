"""The default: parallel rounds over a shrinking pool, and one model of all judgments."""

from collections.abc import Sequence
from typing import Any

from ..types import Plan
from . import plans
from ._kinds import COMPARING, at_least
from .base import Reranker
from .plans import Shape


class TopDown(Reranker):
    """Judges in parallel, keeps the strongest, repeats: for 100 documents 8 calls, 3 rounds.

    One strength a document is fitted to all judgments so far (Plackett-Luce with a Gaussian
    prior), and the pool shrinks to the strongest: 100, 40, 20 in windows of 20. The score is that
    strength, on a log-odds scale. See :func:`dspy_rerank.sorters.plans.top_down`.

    With a pairwise judge a window is two passages, so each document meets several others in a
    round: for the first 10 of 100 documents about 470 pairs in 5 rounds. See
    :func:`dspy_rerank.sorters.plans.top_down_pairs`.

    Args:
        judge: Listwise, setwise or pairwise.
        window: Passages in a question, at least 2; pairwise judges take 2 all the same.
        rounds: Steps when the documents exceed a window, at least 2; ``None`` is 3, or 5 for
            pairwise judges.
        finals: How often the last window is judged; each time more is one call and one round.
        meetings: How many others each document meets in a round, at least 2; for pairwise judges.
        prior: Weight of the first stage: the expected strength of a document before it is judged
            is ``2 * prior`` standard deviations for each of its z-score.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING
    SCORED = True
    PRIOR_IS_FREE = False

    def __init__(
        self,
        judge: Any,
        *,
        window: int = 20,
        rounds: int | None = None,
        finals: int = 1,
        meetings: int = 4,
        **options: Any,
    ):
        at_least("window", window, 2)
        at_least("rounds", 3 if rounds is None else rounds, 2)
        at_least("finals", finals, 1)
        at_least("meetings", meetings, 2)
        super().__init__(judge)
        own = {"window": window, "rounds": rounds, "finals": finals, "meetings": meetings}
        self._configure(own, **options)

    @property
    def _in_pairs(self) -> bool:
        return self.judge.kind == "pairwise"

    @property
    def _sizes(self) -> dict[str, int]:
        rounds = self.settings["rounds"]
        if self._in_pairs:
            return {"rounds": rounds or 5, "meetings": self.settings["meetings"]}
        own = self.settings
        return {"rounds": rounds or 3, "window": own["window"], "finals": own["finals"]}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        weight = self.settings["prior"]
        prior = [2 * weight * value for value in evidence] if weight else None
        plan = plans.top_down_pairs if self._in_pairs else plans.top_down
        return plan(n, top_k, prior=prior, **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        shape = plans.top_down_pairs_shape if self._in_pairs else plans.top_down_shape
        return shape(n, top_k, **self._sizes)
