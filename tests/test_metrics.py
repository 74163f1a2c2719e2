"""Metrics agree with trec_eval, in the order given, whatever the ids."""

import logging
import math
from types import SimpleNamespace

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_rerank import metrics
from dspy_rerank.errors import InputError
from dspy_rerank.metrics import RankingMetric, ndcg_at, score_order

NAMES = ("nDCG", "nDCG@3", "RR", "RR@2", "R@3", "AP", "P@2", "Success@1")


@st.composite
def rankings(draw):
    """Grades (some unjudged or negative), an order of some candidates, and grades beyond."""
    grades = draw(st.lists(st.sampled_from((None, -1, 0, 1, 2, 3)), min_size=1, max_size=12))
    order = draw(st.permutations(range(len(grades))))
    length = draw(st.integers(0, len(grades)))
    return grades, order[:length], draw(st.lists(st.integers(0, 3), max_size=4))


def trec_eval(grades, order, ideal, measure):
    """The reference; grades below 0 count 0, and as they are can make it hang."""
    qrels = {f"d{i}": max(0, grade) for i, grade in enumerate(grades) if grade is not None}
    qrels |= {f"x{i}": grade for i, grade in enumerate(ideal)}
    run = {f"d{p}": float(-rank) for rank, p in enumerate(order)}
    values = pytrec_eval.RelevanceEvaluator({"q": qrels}, {measure}).evaluate({"q": run})
    return next(iter(values.get("q", {"none": 0.0}).values()))


@settings(max_examples=300, deadline=None)
@given(rankings(), st.sampled_from((1, 3, 10)))
def test_ndcg_is_trec_evals(case, k):
    grades, order, ideal = case
    expected = trec_eval(grades, order, ideal, f"ndcg_cut.{k}")
    assert ndcg_at(grades, order, k, ideal) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(rankings())
def test_ndcg_without_cutoff_is_trec_evals(case):
    assert ndcg_at(case[0], case[1], None, case[2]) == pytest.approx(trec_eval(*case, "ndcg"))


@settings(max_examples=100, deadline=None)
@given(rankings(), st.sampled_from(NAMES))
def test_positions_score_as_document_ids_do(case, name):
    grades, order, ideal = case
    by_id, ranking = metrics.by_position(grades, order, ideal)
    scores = metrics.evaluate_run({"q": by_id}, {"q": ranking}, [name])
    assert score_order(name, grades, order, ideal) == pytest.approx(scores[name]["q"])


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("ndcg@10", "nDCG@10"),
        (" NDCG ", "nDCG"),
        ("mrr", "RR"),
        ("MRR@10", "RR@10"),
        ("Recall@5", "R@5"),
        ("map", "AP"),
        ("precision(rel=2)@5", "P(rel=2)@5"),
        ("success@1", "Success@1"),
    ],
)
def test_metric_names_in_any_case(name, read):
    parsed = metrics.parse_metric(name)
    assert str(parsed) == read
    assert str(ir_measures.parse_measure(read)) == read


@pytest.mark.parametrize("name", ["bleu", "nDCG@", "nDCG@0", "P", "r", "nDCG(rel=2)@5", "", "@5"])
def test_a_bad_name_is_told_what_is_right(name):
    with pytest.raises(InputError, match=r"nDCG|@10|at least 1"):
        metrics.parse_metric(name)


def test_the_given_order_counts_and_not_the_scores():
    qrels = {"q": {"a": 1}}
    tied = {"q": [("a", 0.5), ("b", 0.5)]}
    contradicting = {"q": [("a", 0.1), ("b", 0.9)]}
    for run in (tied, contradicting, {"q": ["a", "b"]}):
        assert metrics.evaluate_run(qrels, run, ["RR"])["RR"] == {"q": 1.0}


def test_a_repeated_document_keeps_its_rank_and_earns_once():
    qrels = {"q": {"a": 1, "b": 1}}
    scores = metrics.evaluate_run(qrels, {"q": ["a", "a", "b"]}, ["P@2", "P@3", "nDCG"])
    assert scores["P@2"]["q"] == pytest.approx(1 / 2)
    assert scores["P@3"]["q"] == pytest.approx(2 / 3)
    assert scores["nDCG"]["q"] < 1


def test_a_query_missing_from_the_run_counts_zero_and_is_reported(caplog):
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    with caplog.at_level(logging.WARNING):
        scores = metrics.evaluate_run(qrels, {"q1": ["a"], "q9": ["a"]}, ["ndcg@10", "MRR@10"])
    assert scores == {"ndcg@10": {"q1": 1.0, "q2": 0.0}, "MRR@10": {"q1": 1.0, "q2": 0.0}}
    assert metrics.averages(scores) == {"ndcg@10": 0.5, "MRR@10": 0.5}
    assert metrics.missing_queries(qrels, {"q1": []}) == ("q2",)
    assert "q2" in caplog.text


def test_grades_below_zero_count_zero():
    qrels = {"q": {"a": -2, "b": 2, "c": -1}}
    scores = metrics.evaluate_run(qrels, {"q": ["a", "b"]}, ["nDCG", "P@1"])
    assert scores["nDCG"]["q"] == pytest.approx(1 / math.log2(3))
    assert scores["P@1"]["q"] == 0.0


def test_no_queries_have_no_average():
    assert metrics.evaluate_run({}, {}, ["AP"]) == {"AP": {}}
    assert math.isnan(metrics.averages({"AP": {}})["AP"])


@pytest.mark.parametrize("relevance", [[], [0, 0], [None], [-1]])
def test_ndcg_is_zero_where_nothing_is_relevant(relevance):
    assert ndcg_at(relevance, range(len(relevance)), 10) == 0.0


def test_ideal_grades_are_part_of_the_best_ranking():
    assert ndcg_at([1], [0], 10) == 1.0
    assert ndcg_at([1], [0], 10, ideal=[1]) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_fractions_of_a_grade_count_in_ndcg():
    assert ndcg_at([0.5, 1.5], [0, 1]) == pytest.approx(
        (0.5 + 1.5 / math.log2(3)) / (1.5 + 0.5 / math.log2(3))
    )
    assert score_order("P@1", [0.5], [0]) == 0.0


@pytest.mark.parametrize("order", [[0, 0], [2], [-1]])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(InputError, match="distinct positions from 0 to 1"):
        ndcg_at([1, 0], order)


@pytest.mark.parametrize("grade", [math.nan, math.inf])
def test_grades_that_are_not_finite_are_refused(grade):
    with pytest.raises(InputError, match="finite"):
        ndcg_at([grade], [0])


def gold(**fields):
    return SimpleNamespace(**fields)


def pred(*indices):
    return SimpleNamespace(ranking=SimpleNamespace(indices=indices))


def test_ranking_metric_gives_a_number_to_evaluate_and_gepa_and_a_bool_to_bootstrap():
    metric = RankingMetric("RR@10", threshold=0.5)
    assert metric(gold(relevance=[0, 0, 1]), pred(0, 1, 2)) == pytest.approx(1 / 3)
    assert metric(gold(relevance=[0, 0, 1]), pred(0, 1, 2), []) is False
    assert metric(gold(relevance=[0, 1, 0]), pred(0, 1, 2), []) is True
    assert metric(gold(relevance=[0, 1]), pred(0, 1), [], "judge", []) == 0.5


def test_ranking_metric_reads_ideal_grades_and_plain_indices():
    metric = RankingMetric()
    assert metric(gold(relevance=[1], ideal=[1]), pred(0)) < 1
    assert metric(gold(relevance=[1]), SimpleNamespace(indices=[0])) == 1.0


def test_a_ranking_of_documents_that_nobody_has_judged_has_no_value():
    with pytest.raises(InputError, match=r"no document is judged.*leave it out"):
        RankingMetric()(gold(relevance=[None, None]), pred(0, 1))
    assert RankingMetric()(gold(relevance=[None, 0]), pred(0, 1)) == 0.0
    assert RankingMetric()(gold(relevance=[None], judged=True), pred(0)) == 0.0


def test_ranking_metric_is_a_value():
    assert RankingMetric("AP") == RankingMetric("AP")
    assert repr(RankingMetric("AP")) == "RankingMetric(metric='AP', threshold=0.8)"
    with pytest.raises(InputError):
        RankingMetric("accuracy")


def test_a_prediction_without_ranking_is_told_what_is_expected():
    with pytest.raises(InputError, match=r"ranking\.indices"):
        RankingMetric()(gold(relevance=[1]), SimpleNamespace(answer="x"))


def test_a_query_with_nothing_judged_counts_zero():
    """A run over judgments that are all missing is worth nothing, and no error."""
    assert score_order("RR@2", [None], [0]) == 0.0
    assert score_order("nDCG@10", [None], [0]) == 0.0
