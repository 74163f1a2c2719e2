"""Every sorter with every kind of judge that it is offered for, under judges that misbehave.

It ends within its estimate, returns a permutation, and says how much it knew. What a sorter costs
in time is measured by ``benchmarks/sorting.py --cpu``.
"""

import random

import pytest

import dspy_rerank as dr
from dspy_rerank.judges.protocol import Answer
from dspy_rerank.sorters import SORTERS
from dspy_rerank.sorters.candidates import CANDIDATES
from dspy_rerank.sorters.plans import drive
from dspy_rerank.types import Judgment, Span, Usage

CASES = {f"{c.name}-{kind}": (c.build, kind) for c in CANDIDATES for kind in c.kinds}


def answer(kind, group, order):
    """A judgment of a kind that prefers what comes first in an order."""
    if kind == "pointwise":
        return Judgment(kind, group, "ok", score=float(order[0]))
    if kind == "listwise":
        return Judgment(kind, group, "ok", order=tuple(order))
    return Judgment(kind, group, "ok", best=order[0])


def at_random(kind):
    rng = random.Random(7)
    return lambda group: answer(kind, group, rng.sample(group, len(group)))


def cyclic(kind):
    """Rock, paper, scissors: every candidate beats the next one of the group's residues."""
    return lambda group: answer(kind, group, sorted(group, key=lambda p: -((p - min(group)) % 3)))


def always_first(kind):
    return lambda group: answer(kind, group, group)


def contradicting(kind):
    """Says the opposite each time."""
    turns = iter(range(10**9))
    return lambda group: answer(kind, group, sorted(group, reverse=next(turns) % 2 == 1))


def tied(kind):
    if kind == "pointwise":
        return lambda group: Judgment(kind, group, "ok", score=1.0)
    if kind == "pairwise":
        return lambda group: Judgment(kind, group, "ok", tie=True)
    return lambda group: Judgment(kind, group, "none")


def unknown(kind):
    return lambda group: Judgment(kind, group, "unknown", reason="no answer")


JUDGES = [at_random, cyclic, always_first, contradicting, tied, unknown]


def stub(kind):
    return dr.FunctionJudge(lambda query, passages: None, kind)


def test_every_sorter_is_here():
    assert {type(build(stub(kind))) for build, kind in CASES.values()} == set(SORTERS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.__name__)
@pytest.mark.parametrize(("n", "top_k"), [(0, 0), (1, 1), (2, 1), (37, 37), (300, 10)])
def test_it_ends_with_a_permutation_within_its_estimate(case, judge, n, top_k):
    build, kind = CASES[case]
    reranker = build(stub(kind))
    run = drive(reranker._plan(n, top_k, [0.0] * n), judge(kind))
    assert sorted(run.outcome.order) == list(range(n))
    for counted, foretold in zip(run.shape, reranker._shape(n, top_k), strict=True):
        # A consensus asks a question once that several of its plans put: fewer, never more.
        most = foretold.hi if isinstance(foretold, Span) else foretold
        assert counted <= most
    if judge in (tied, unknown):
        assert run.outcome.order == tuple(range(n)) or "Consensus" in case


class Silent(dr.FunctionJudge):
    """Gives no answer that can be read."""

    async def ask(self, question):
        places = tuple(range(len(question.passages)))
        judgment = Judgment(self.kind, places, "unknown", reason="no answer")
        return Answer(judgment, Usage(calls=1, passages_read=len(places)))


@pytest.mark.parametrize("case", CASES)
def test_a_ranking_says_how_little_it_knew(case):
    build, kind = CASES[case]
    reranker = build(Silent(lambda query, passages: None, kind))
    ranking = reranker("q", [f"document {i}" for i in range(12)], retries=0).ranking
    assert ranking.indices == list(range(12))
    assert ranking.unknowns == len(ranking.judgments) > 0
    assert len(set(ranking.scores)) == 1
