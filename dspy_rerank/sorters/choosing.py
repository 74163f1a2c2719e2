"""Which sorting module is the best within a budget, by measurement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..documents import check_top_k
from ..errors import InputError
from ..judges.protocol import checked_judge
from ..options import at_least
from ..types import Estimate, Kind
from .base import Reranker
from .candidates import CANDIDATES, Candidate
from .estimates import bounds
from .measured import NDCG

ENOUGH = 0.5
"""Points of nDCG@10 that are not worth paying for: what equal sorts differ by from run to run."""


@dataclass(frozen=True)
class Choice:
    """The sorting module chosen, and why.

    Attributes:
        reranker: Ready to use.
        name: How it is written, without the judge.
        reason: In one sentence.
        expected: What a ranking costs at most; a range where it depends on the answers.
        ndcg: nDCG@10 in points under judges with noise 0, 0.5 and 1.0 in the simulation.
        measured_on: Candidates in that simulation.
    """

    reranker: Reranker
    name: str
    reason: str
    expected: Estimate
    ndcg: tuple[float, float, float]
    measured_on: int

    @property
    def quality(self) -> float:
        """Mean of ``ndcg``: over judges that are right, fair and poor."""
        return sum(self.ndcg) / len(self.ndcg)


def choose_sorter(
    n: int,
    top_k: int | None = None,
    *,
    judge: Any,
    max_calls: int | None = None,
    max_rounds: int | None = None,
    max_reads: int | None = None,
) -> Choice:
    """The best sorting module for a judge that surely stays within a budget.

    Quality was measured once, by ``benchmarks/sorting.py``, for the first ten of 20, 50 and 100
    candidates under judges that err at random; the nearest of these numbers speaks for ``n``. Of
    all that come within half a point of the best, the cheapest in passages read is chosen. Cost is
    the sorter's own estimate for ``n`` and ``top_k`` with this judge, at its upper bound.

    Args:
        n: Number of candidates, at least 0.
        top_k: How many are wanted; ``None`` is all.
        judge: Any judge; its kind decides what comes into question, and a pair that is asked in
            both orders costs two calls.
        max_calls: Most calls of the judge.
        max_rounds: Most calls that follow one another; latency is about this many calls.
        max_reads: Most passages read in all calls.

    Raises:
        InputError: Nothing fits; the message names the cheapest and its cost.
    """
    checked_judge(judge)
    at_least("n", n, 0)
    k = check_top_k(top_k, n)
    limits = {"calls": max_calls, "rounds": max_rounds, "passages_read": max_reads}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    choices = [_choice(candidate, n, k, judge) for candidate in _suitable(judge.kind)]
    fitting = [choice for choice in choices if _fits(choice.expected, given)]
    if not fitting:
        raise InputError(_nothing(choices, n, k, judge, given))
    best = max(choice.quality for choice in fitting)
    chosen = min((c for c in fitting if c.quality >= best - ENOUGH), key=_cost)
    return _with_reason(chosen, fitting, len(choices), given)


def _suitable(kind: Kind) -> list[Candidate]:
    return [candidate for candidate in CANDIDATES if kind in candidate.kinds]


def _choice(candidate: Candidate, n: int, top_k: int, judge: Any) -> Choice:
    reranker = candidate.build(judge)
    sizes = sorted({size for size, _, _ in NDCG}, key=lambda size: (abs(size - n), size))
    ndcg = NDCG[sizes[0], judge.kind, candidate.name]
    expected = reranker.estimate(n, top_k)
    return Choice(reranker, candidate.name, "", expected, ndcg, sizes[0])


def _most(expected: Estimate, name: str) -> int:
    return bounds(getattr(expected, name))[1]


def _fits(expected: Estimate, given: dict[str, int]) -> bool:
    return all(_most(expected, name) <= limit for name, limit in given.items())


def _cost(choice: Choice) -> tuple[int, ...]:
    return tuple(_most(choice.expected, name) for name in ("passages_read", "rounds", "calls"))


def _with_reason(
    chosen: Choice, fitting: Sequence[Choice], count: int, given: dict[str, int]
) -> Choice:
    cost = _costs(chosen.expected)
    scores = ", ".join(f"{value:.1f}" for value in chosen.ndcg)
    rivals = [choice for choice in fitting if choice is not chosen]
    runner_up = max(rivals, key=lambda choice: choice.quality, default=None)
    beside = "" if runner_up is None else (
        f"; next comes {runner_up.name} with {runner_up.quality:.1f} in the mean "
        f"and {_costs(runner_up.expected)}"
    )  # fmt: skip
    reason = (
        f"{chosen.name} is the cheapest within {ENOUGH} points of the best of {len(fitting)} that "
        f"fit {_budget(given)} ({count} looked at): nDCG@10 {scores} under judges of noise 0, 0.5 "
        f"and 1 on {chosen.measured_on} candidates, {chosen.quality:.1f} in the mean, for {cost}"
        f"{beside}"
    )
    return Choice(**{**vars(chosen), "reason": reason})


def _nothing(
    choices: Sequence[Choice], n: int, top_k: int, judge: Any, given: dict[str, int]
) -> str:
    near = min(choices, key=lambda c: [max(0, _most(c.expected, x) - m) for x, m in given.items()])
    return (
        f"no sorter for a {judge.kind} judge is sure to rank the first {top_k} of {n} within "
        f"{_budget(given)}; the nearest is {near.name} with {_costs(near.expected)}. Allow more, "
        "pass fewer documents, or set max_calls on the reranker to stop at the best so far"
    )


def _costs(expected: Estimate) -> str:
    return f"{expected.calls} calls, {expected.rounds} rounds, {expected.passages_read} reads"


def _budget(given: dict[str, int]) -> str:
    limits = [f"{limit} {name.replace('passages_read', 'reads')}" for name, limit in given.items()]
    return ", ".join(limits) or "an open budget"
