"""The best sorter within a budget, and why."""

from pathlib import Path

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.sorters.candidates import CANDIDATES
from dspy_rerank.sorters.choosing import choose_sorter
from dspy_rerank.sorters.measured import NDCG
from dspy_rerank.types import Span


def judge(kind="listwise"):
    """Finds nothing relevant, or does not know."""
    return dr.FunctionJudge(lambda query, passages: [] if kind == "listwise" else None, kind)


def most(count):
    return count.hi if isinstance(count, Span) else count


def test_every_candidate_was_measured():
    wanted = {(n, kind, c.name) for n in (20, 50, 100) for c in CANDIDATES for kind in c.kinds}
    assert set(NDCG) == wanted
    assert all(0 < value < 100 for values in NDCG.values() for value in values)


@pytest.mark.parametrize("kind", ["pointwise", "pairwise", "setwise", "listwise"])
@pytest.mark.parametrize("n", [0, 1, 2, 17, 60, 100, 400])
def test_an_open_budget_always_finds_something(kind, n):
    choice = choose_sorter(n, 10, judge=judge(kind))
    assert choice.reranker.judge.kind == kind
    assert choice.expected == choice.reranker.estimate(n, min(n, 10))
    assert choice.name in choice.reason
    assert sorted(choice.reranker("q", list(map(str, range(n)))[:9]).ranking.indices) == list(
        range(min(n, 9))
    )


@pytest.mark.parametrize(
    "budget",
    [
        {"max_rounds": 3},
        {"max_calls": 6},
        {"max_reads": 185},
        {"max_calls": 9, "max_rounds": 4, "max_reads": 180},
    ],
)
def test_a_choice_stays_within_its_budget(budget):
    names = {"max_calls": "calls", "max_rounds": "rounds", "max_reads": "passages_read"}
    choice = choose_sorter(100, 10, judge=judge(), **budget)
    for name, limit in budget.items():
        assert most(getattr(choice.expected, names[name])) <= limit


def test_a_larger_budget_is_never_worse():
    found = [choose_sorter(100, 10, judge=judge(), max_calls=m).quality for m in (6, 8, 9, 13, 30)]
    assert found == sorted(found)


def test_the_shallow_budget_takes_the_top_down_sort():
    assert choose_sorter(100, 10, judge=judge(), max_rounds=2).name == "TopDown(rounds=2)"
    assert choose_sorter(100, 10, judge=judge(), max_calls=8).name == "TopDown()"


def test_both_orders_of_a_pair_count():
    once = choose_sorter(30, 10, judge=dr.PairwiseJudge(swap=False), max_rounds=5)
    twice = choose_sorter(30, 10, judge=dr.PairwiseJudge(), max_rounds=5)
    assert most(twice.expected.calls) >= most(once.expected.calls)


def test_nothing_fits_says_what_would():
    with pytest.raises(InputError, match=r"within 3 calls; the nearest is TopDown\(rounds=2\).*6"):
        choose_sorter(100, 10, judge=judge(), max_calls=3)
    with pytest.raises(InputError, match="expected a judge"):
        choose_sorter(10, judge="gpt")
    with pytest.raises(InputError, match="n="):
        choose_sorter(-1, judge=judge())


@pytest.mark.bench_data
@pytest.mark.parametrize("name", ["ScoreSort(), pointwise", "TopDown(rounds=2), listwise"])
def test_the_shipped_table_is_what_the_benchmark_prints(name, monkeypatch):
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(benchmarks)
    sorting = pytest.importorskip("sorting")
    if not (sorting.DATA / "dl19").exists():
        pytest.skip("no labelled data at hand")
    code, kind = name.rsplit(", ", 1)
    setups = [sorting.Setup("fresh", noise) for noise in (0.0, 0.5, 1.0)]
    jobs = [sorting.Job(name, setup, sorting.CONSTANT_SEEDS, 20) for setup in setups]
    found = map(sorting.measure, jobs)
    assert [float(f"{cell.ndcg:.1f}") for cell in found] == list(NDCG[20, kind, code])
