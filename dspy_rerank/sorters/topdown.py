"""The default: parallel rounds over a shrinking pool, and one model of all judgments."""

from collections.abc import Callable, Sequence
from typing import Any

from ..options import MOST, at_least, check_share
from ..types import Kind, Plan
from . import plans
from ._kinds import COMPARING
from .base import Reranker
from .plans import Shape


class TopDown(Reranker):
    """Judges in parallel, keeps the strongest, repeats: for 100 documents 8 calls, 3 rounds.

    One strength a document is fitted to all judgments so far (Plackett-Luce with a Gaussian
    prior), and the pool shrinks to the strongest: 100, 40, 20 in windows of 20. The score is that
    strength, on a log-odds scale. See :func:`dspy_rerank.sorters.plans.top_down`.

    Pairwise and setwise judges tell less in an answer, so questions are small, and each document
    is in several of them a round: for the first 10 of 100 documents about 470 pairs in 5 rounds,
    or 120 groups of 5 in 6 rounds. See :func:`dspy_rerank.sorters.plans.top_down_pairs` and
    :func:`dspy_rerank.sorters.plans.top_down_sets`.

    Args:
        judge: Listwise, setwise or pairwise.
        window: Passages in a question, at least 2; ``None`` is 20 for listwise judges and 5 for
            setwise ones. Pairwise judges take 2 all the same.
        rounds: Steps when the documents exceed a window, at least 2; ``None`` is 3 for listwise
            judges, 5 for pairwise and 6 for setwise ones.
        finals: For listwise judges: how often the last window is judged, one call and one round
            each time.
        enough: For listwise judges: expected share of the first ``top_k`` that belongs there, in
            [0, 1], at which asking stops before all ``finals`` are used up; ``None`` never stops.
            With ``finals=6, enough=0.8`` a judge is asked again only as far as it contradicts
            itself, and a perfect one is not.
        meetings: For pairwise and setwise judges: how many others a document meets in a round, or
            in how many groups it is; ``None`` is 4 or 2.
        prior: Weight of the first stage: the expected strength of a document before it is judged
            is ``2 * prior`` standard deviations for each of its z-score. With a listwise judge 0
            still leans on it a little (a tenth of a standard deviation), which decides between
            documents that the judgments barely tell apart, and never against a judge that does
            not contradict itself.
        options: See :class:`Reranker`.
    """

    KINDS = COMPARING
    SCORED = True
    PRIOR_IS_FREE = False

    def __init__(
        self,
        judge: Any,
        *,
        window: int | None = None,
        rounds: int | None = None,
        finals: int = 1,
        enough: float | None = None,
        meetings: int | None = None,
        **options: Any,
    ):
        own = {"window": window, "rounds": rounds, "finals": finals, "meetings": meetings}
        check_share("enough", enough)
        for name, least in {"window": 2, "rounds": 2, "finals": 1, "meetings": 2}.items():
            if own[name] is not None:
                at_least(name, own[name], least, None if name == "window" else MOST)
        super().__init__(judge)
        self._configure({**own, "enough": enough}, **options)

    @property
    def _sizes(self) -> dict[str, Any]:
        """What was set, among the settings that this kind of judge knows."""
        names = {"pairwise": ("rounds", "meetings"), "setwise": ("window", "rounds", "meetings")}
        known = names.get(self.judge.kind, ("window", "rounds", "finals", "enough"))
        return {name: self.settings[name] for name in known if self.settings[name] is not None}

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        weight, (plan, _) = self.settings["prior"], PLANS[self.judge.kind]
        if weight == 0 and self.judge.kind != "listwise":
            return plan(n, top_k, **self._sizes)
        prior = [(2 * weight or LEANING) * value for value in evidence]
        trust = {"trusting": weight == 0} if self.judge.kind == "listwise" else {}
        return plan(n, top_k, prior=prior, **trust, **self._sizes)

    def _shape(self, n: int, top_k: int) -> Shape:
        _, shape = PLANS[self.judge.kind]
        return shape(n, top_k, **self._sizes)


LEANING = 0.1
"""Standard deviations of strength for each z-score of the incoming rank, where no prior is set.

On 43 DL19 queries it is worth 0.5 points of nDCG@10 in two rounds at noise 1.0 and up to 0.8 under
position bias; where the incoming order is random it costs 0.3 at most, within the standard errors
(``benchmarks/sorting.py --shuffled``)."""

PLANS: dict[Kind, tuple[Callable[..., Plan], Callable[..., Shape]]] = {
    "listwise": (plans.top_down, plans.top_down_shape),
    "setwise": (plans.top_down_sets, plans.top_down_sets_shape),
    "pairwise": (plans.top_down_pairs, plans.top_down_pairs_shape),
}
