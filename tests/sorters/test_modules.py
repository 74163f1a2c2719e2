"""Every sorting module against a perfect judge, for all sizes."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.sorters import SORTERS
from dspy_rerank.sorters.plans import promised, top_down_promise
from dspy_rerank.testing import check_estimate, check_reranker, oracle_judge

TEXTS = [f"document {i}" for i in range(60)]


def shuffled(n, seed=0):
    """Documents and their grades, in a fixed but arbitrary order."""
    import random

    grades = list(range(n))
    random.Random(seed).shuffle(grades)
    return TEXTS[:n], dict(zip(TEXTS, grades, strict=False))


def best(grades, documents):
    return sorted(range(len(documents)), key=lambda i: -grades[documents[i]])


BUILD = {
    "ScoreSort": lambda oracle: dr.ScoreSort(oracle("pointwise")),
    "AllPairs": lambda oracle: dr.AllPairs(oracle("pairwise")),
    "MergeSort": lambda oracle: dr.MergeSort(oracle("pairwise")),
    "HeapSort": lambda oracle: dr.HeapSort(oracle("pairwise")),
    "HeapSort-setwise": lambda oracle: dr.HeapSort(oracle("setwise"), children=3),
    "SlidingWindow": lambda oracle: dr.SlidingWindow(oracle("listwise"), window=8, step=4),
    "TopDown": lambda oracle: dr.TopDown(oracle("listwise"), window=8),
    "TopDown-setwise": lambda oracle: dr.TopDown(oracle("setwise")),
    "TopDown-pairwise": lambda oracle: dr.TopDown(oracle("pairwise")),
    "PRPSliding": lambda oracle: dr.PRPSliding(oracle("pairwise")),
    "TDPart": lambda oracle: dr.TDPart(oracle("listwise"), window=8),
    "TourRank": lambda oracle: dr.TourRank(oracle("listwise"), rounds=2, window=8),
    "Tournament": lambda oracle: dr.Tournament(oracle("listwise"), window=8),
    "Tournament-pairwise": lambda oracle: dr.Tournament(oracle("pairwise")),
    "Tournament-setwise": lambda oracle: dr.Tournament(oracle("setwise"), window=5),
    "Survivor": lambda oracle: dr.Survivor(oracle("setwise"), window=4),
    "Consensus": lambda oracle: dr.Consensus(dr.MergeSort(oracle("pairwise")), passes=2),
}


def test_every_module_is_built_here():
    names = {build(lambda kind: oracle_judge({}, kind)).__class__ for build in BUILD.values()}
    assert names == set(SORTERS)


def right_ranks(name, n, k):
    """How many of the first ranks a perfect judge guarantees."""
    if name == "SlidingWindow":
        return k if n <= 8 else min(k, promised(8, 4, n))
    if name == "TopDown":
        return min(k, top_down_promise(n, k, window=8))
    if name == "TopDown-pairwise":
        return k if n <= 5 else 0
    if name == "TopDown-setwise":
        return min(1, k)
    if name == "TourRank":  # points alone: the last stage tells who the best two are, not which
        return 0
    return k


@pytest.mark.parametrize("name", BUILD)
@pytest.mark.parametrize("n", [*range(0, 14), 20, 33, 47, 60])
def test_a_perfect_judge_gives_the_right_top(name, n):
    documents, grades = shuffled(n)
    sorter = BUILD[name](lambda kind: oracle_judge(grades, kind))
    for top_k in {0, 1, 3, 10, n, None} if n < 20 else {1, 10}:
        ranking = sorter("q", documents, top_k=top_k).ranking
        k = n if top_k is None else min(top_k, n)
        sure = right_ranks(name, n, k)
        assert len(set(ranking.indices)) == len(ranking) == k
        assert ranking.indices[:sure] == best(grades, documents)[:sure]
        check_estimate(sorter, n, top_k, ranking.usage)


@pytest.mark.parametrize("name", BUILD)
def test_conformance(name):
    documents, grades = shuffled(11, seed=3)
    check_reranker(BUILD[name](lambda kind: oracle_judge(grades, kind)), documents)


@pytest.mark.parametrize("name", BUILD)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_judge_loses_nothing(name, data):
    """Arbitrary, contradicting answers: a permutation comes out all the same."""
    n = data.draw(st.integers(0, 24))
    seed = data.draw(st.integers(0, 10**6))

    def oracle(kind):
        def fn(query, passages):
            value = hash((seed, kind, *passages))
            answers = {
                "pointwise": float(value % 4),
                "pairwise": value % 3 - 1,
                "setwise": value % (len(passages) + 1),
                "listwise": sorted(range(len(passages)), key=lambda i: hash((value, i))),
            }
            answer = answers[kind]
            return None if kind == "setwise" and answer == len(passages) else answer

        return dr.FunctionJudge(fn, kind)

    sorter = BUILD[name](oracle)
    documents = TEXTS[:n]
    ranking = sorter("q", documents).ranking
    assert sorted(ranking.indices) == list(range(n))
    assert asyncio.run(sorter.acall("q", documents)).ranking.indices == ranking.indices


@pytest.mark.parametrize("name", BUILD)
def test_a_judge_that_knows_nothing_keeps_the_incoming_order(name):
    def oracle(kind):
        import dspy_rerank.judges.function as function

        judge = dr.FunctionJudge(lambda query, passages: None, kind)
        if kind in ("pointwise", "pairwise"):
            return judge
        if kind == "listwise":
            return dr.FunctionJudge(lambda query, passages: [], kind)
        assert function
        return judge

    ranking = BUILD[name](oracle)("q", TEXTS[:20]).ranking
    assert ranking.indices == list(range(20))


def test_equal_texts_stay_different_documents():
    ranking = dr.MergeSort(oracle_judge({"same": 1, "other": 0}, "pairwise"))(
        "q", ["same", "other", "same"]
    ).ranking
    assert ranking.indices == [0, 2, 1]


def test_unknown_grades_keep_their_slots():
    grades = {"a": 1.0, "b": None, "c": 3.0, "d": 2.0}
    judge = dr.FunctionJudge(lambda query, passages: grades[passages[0]], "pointwise")
    ranking = dr.ScoreSort(judge)("q", list(grades)).ranking
    assert ranking.indices == [2, 1, 3, 0]
    assert ranking[1].score is None
    assert ranking.unknowns == 1


def test_a_prior_blends_the_first_stage_in():
    documents = [{"text": text, "score": score} for text, score in (("a", 9.0), ("b", 1.0))]
    judge = dr.FunctionJudge(lambda query, passages: {"a": 1.0, "b": 2.0}[passages[0]], "pointwise")
    assert dr.ScoreSort(judge)("q", documents).ranking.indices == [1, 0]
    assert dr.ScoreSort(judge, prior=0.7)("q", documents).ranking.indices == [0, 1]


def test_a_prior_goes_by_rank_unless_it_is_told_to_go_by_score():
    documents = [{"text": text, "score": score} for text, score in (("a", 1.0), ("b", 9.0))]
    judge = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")
    assert dr.ScoreSort(judge, prior=0.5)("q", documents).ranking.indices == [0, 1]
    by_score = dr.ScoreSort(judge, prior=0.5, prior_from="score")
    assert by_score("q", documents).ranking.indices == [1, 0]
    with pytest.raises(InputError, match="rank or score"):
        dr.ScoreSort(judge, prior_from="bm25")


@pytest.mark.parametrize("prior", [0.0, 0.4])
def test_top_down_takes_a_prior(prior):
    documents, grades = shuffled(50)
    sorter = dr.TopDown(oracle_judge(grades, "listwise"), window=10, prior=prior)
    assert sorted(sorter("q", documents).ranking.indices) == list(range(50))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: dr.ScoreSort(oracle_judge({}, "pairwise")), "pairwise.*pointwise"),
        (lambda: dr.MergeSort("judge"), "expected a judge"),
        (lambda: dr.MergeSort(oracle_judge({}, "pairwise"), prior=0.5), "no scores"),
        (lambda: dr.ScoreSort(oracle_judge({}, "pointwise"), prior=2), "from 0 to 1"),
        (lambda: dr.SlidingWindow(oracle_judge({}, "listwise"), window=4, step=8), "leaves out"),
        (lambda: dr.Survivor(oracle_judge({}, "pairwise")), "pairwise"),
        (lambda: dr.ScoreSort(oracle_judge({}, "pointwise"), concurency=3), "concurency"),
        (lambda: dr.ScoreSort(oracle_judge({}, "pointwise"), concurrency=0), "concurrency"),
        (lambda: dr.ScoreSort(oracle_judge({}, "pointwise"), on_error="ignore"), "original"),
        (lambda: dr.Consensus(oracle_judge({}, "pairwise")), "sorting module"),
    ],
)
def test_an_unusable_setting_says_what_was_expected(build, says):
    with pytest.raises(InputError, match=says):
        build()


def test_a_small_overlap_is_warned_about(caplog):
    documents, grades = shuffled(30)
    dr.SlidingWindow(oracle_judge(grades, "listwise"), window=10, step=5)("q", documents, top_k=10)
    assert "at most 5" in caplog.text


def test_a_swapped_pair_is_two_calls_in_the_estimate():
    assert dr.AllPairs(dr.PairwiseJudge()).estimate(5).calls == 20
    assert dr.AllPairs(dr.PairwiseJudge(swap=False)).estimate(5).calls == 10


def test_an_estimate_with_documents_counts_tokens():
    estimate = dr.ScoreSort(dr.PointwiseJudge()).estimate(
        3, documents=["word " * 50] * 3, query="q"
    )
    assert 150 < estimate.prompt_tokens < 800


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: dr.ScoreSort(kind),
        lambda kind: dr.Panel([kind]),
        lambda kind: dr.choose_sorter(10, judge=kind),
    ],
)
def test_a_class_in_place_of_a_judge_is_named(use):
    with pytest.raises(InputError, match=r"got the class PointwiseJudge; did you mean Pointwise"):
        use(dr.PointwiseJudge)


def test_an_estimate_counts_the_documents_that_it_is_given():
    sorter = dr.ScoreSort(dr.PointwiseJudge())
    documents = ["one", "two", "three"]
    by_number = sorter.estimate(3, query="q", documents=documents)
    assert sorter.estimate(query="q", documents=iter(documents)) == by_number
    with pytest.raises(InputError, match=r"n=None; expected the number of documents.*documents="):
        sorter.estimate(query="q")
