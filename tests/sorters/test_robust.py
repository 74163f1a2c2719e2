"""Every sorter with every kind of judge that it is offered for, under judges that misbehave.

It ends within its estimate, returns a permutation, and says how much it knew. What a sorter costs
in time is measured by ``benchmarks/sorter_cpu.py``.
"""

import random
import threading
from dataclasses import replace

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
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
    return lambda group: Judgment(kind, group, "ok", tie=True)


def nothing_relevant(kind):
    return lambda group: Judgment(kind, group, "none")


def unknown(kind):
    return lambda group: Judgment(kind, group, "unknown", reason="no answer")


def now_and_then(kind):
    """Unknown, none, unsure, tied or any order."""
    rng = random.Random(11)

    def judge(group):
        found = answer(kind, group, rng.sample(group, len(group)))
        status = rng.choice(("ok", "ok", "repaired", "none", "unknown"))
        if status in ("none", "unknown"):
            return Judgment(kind, group, status)
        return replace(found, status=status, confidence=rng.choice((None, 0.0, 0.3, 1.0)))

    return judge


SILENT = [tied, nothing_relevant, unknown]
JUDGES = [at_random, cyclic, always_first, contradicting, now_and_then, *SILENT]


def stub(kind):
    return dr.FunctionJudge(lambda query, passages: None, kind)


def test_every_sorter_is_here():
    assert {type(build(stub(kind))) for build, kind in CASES.values()} == set(SORTERS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.__name__)
@pytest.mark.parametrize(
    ("n", "top_k"), [(0, 0), (1, 1), (2, 1), (3, 2), (7, 7), (25, 3), (25, 25), (100, 10)]
)
def test_it_ends_with_a_permutation_within_its_estimate(case, judge, n, top_k):
    ends(case, judge, n, top_k)


@pytest.mark.parametrize("case", CASES)
def test_so_it_does_for_three_hundred(case):
    ends(case, at_random, 300, 10)


def ends(case, judge, n, top_k):
    """Run a sorter without a model and check what must be true of any run."""
    build, kind = CASES[case]
    reranker = build(stub(kind))
    run = drive(reranker._plan(n, top_k, [0.0] * n), judge(kind))
    assert sorted(run.outcome.order) == list(range(n))
    for counted, foretold in zip(run.shape, reranker._shape(n, top_k), strict=True):
        # A consensus asks a question once that several of its plans put: fewer, never more.
        most = foretold.hi if isinstance(foretold, Span) else foretold
        assert counted <= most
    if judge in SILENT:
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


class Wavering(dr.FunctionJudge):
    """Cannot be read for groups that hold an odd number of third documents."""

    async def ask(self, question):
        places = tuple(range(len(question.passages)))
        used = Usage(calls=1, passages_read=len(places))
        if sum(int(text.split()[1]) % 3 == 0 for text in question.passages) % 2:
            return Answer(Judgment(self.kind, places, "unknown", reason="no answer"), used)
        return Answer(answer(self.kind, places, places[::-1]), used)


@pytest.mark.parametrize("case", CASES)
def test_a_ranking_says_what_it_knew_and_what_not(case):
    build, kind = CASES[case]
    reranker = build(Wavering(lambda query, passages: None, kind))
    ranking = reranker("q", [f"document {i}" for i in range(25)], retries=0).ranking
    assert sorted(ranking.indices) == list(range(25))
    assert ranking.unknowns == sum(j.status == "unknown" for j in ranking.judgments) > 0
    assert ranking.unknowns < len(ranking.judgments) or kind == "listwise"


@pytest.mark.parametrize("case", CASES)
def test_one_sorter_serves_many_threads(case):
    build, kind = CASES[case]
    judge = dr.FunctionJudge(by_length(kind), kind)
    reranker, documents = build(judge), ["x" * (i * 7 % 13) for i in range(13)]
    found, expected = [], reranker("q", documents, top_k=5).ranking.indices
    work = lambda: found.append(reranker("q", documents, top_k=5).ranking.indices)  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


def by_length(kind):
    """Prefers long passages; asynchronous."""

    async def fn(query, passages):
        order = sorted(range(len(passages)), key=lambda place: -len(passages[place]))
        if kind == "pointwise":
            return len(passages[0])
        return order if kind == "listwise" else order[0] if kind == "setwise" else "AB"[order[0]]

    return fn


@pytest.mark.parametrize("make", [
    lambda most: dr.Consensus(dr.TopDown(dr.ListwiseJudge()), passes=most),
    lambda most: dr.TourRank(dr.ListwiseJudge(), rounds=most),
    lambda most: dr.TopDown(dr.ListwiseJudge(), finals=most),
    lambda most: dr.TopDown(dr.PairwiseJudge(), meetings=most),
])  # fmt: skip
def test_numbers_that_would_be_planned_for_ever_are_refused(make):
    make(1000)
    with pytest.raises(InputError, match="at most 1000"):
        make(10**9)
