"""The public edge: documents, queries and top_k of every form."""

import json

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DocumentTypeError
from dspy_rerank.testing import oracle_judge


def first_wins():
    return dr.FunctionJudge(lambda query, passages: 1, "pairwise")


def test_documents_of_every_form_come_back_as_given():
    class Hit:
        body = "from an object"

    given = ["text", {"id": "x", "text": "t", "score": 2.5, "lang": "en"}, dr.Document("d"), Hit()]
    ranking = dr.MergeSort(first_wins())("q", given, text=lambda hit: getattr(hit, "body", "t"))
    assert [d.text for d in ranking.ranking.documents] == ["text", "t", "d", "from an object"]
    assert ranking.ranking[3].document.source is given[3]


def test_a_mapping_keeps_id_score_and_the_rest():
    ranking = dr.MergeSort(first_wins())(
        "q", [{"id": 7, "text": "t", "score": "2.5", "lang": "en"}]
    )
    document = ranking.ranking[0].document
    assert (document.id, document.score, document.metadata) == ("7", 2.5, {"lang": "en"})


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        (["a", 7], r"documents\[1\] is int"),
        (["a", None], r"documents\[1\]"),
        ([{"title": "x"}], r"documents\[0\].*text"),
        ([{"text": 3}], r"documents\[0\] is int"),
        ([{"text": "t", "score": "high"}], r"score of documents\[0\]"),
        ("one string", "list of documents"),
        (5, "list of documents"),
    ],
)
def test_a_document_of_a_wrong_type_says_which_one(documents, says):
    with pytest.raises(DocumentTypeError, match=says):
        dr.MergeSort(first_wins())("q", documents)


@pytest.mark.parametrize("query", ["", "   ", None, 3])
def test_a_blank_query_is_refused(query):
    with pytest.raises(ValueError, match="query"):
        dr.MergeSort(first_wins())(query, ["a", "b"])


@pytest.mark.parametrize("top_k", [-1, 1.5, "3", True])
def test_an_unusable_top_k_is_refused_before_any_call(top_k):
    asked = []
    judge = dr.FunctionJudge(lambda query, passages: asked.append(1) or 1, "pairwise")
    with pytest.raises(ValueError, match="top_k"):
        dr.MergeSort(judge)("q", ["a", "b"], top_k=top_k)
    assert not asked


SORTERS = {
    "pointwise": dr.ScoreSort,
    "pairwise": dr.MergeSort,
    "setwise": dr.Survivor,
    "listwise": dr.TopDown,
}


def test_shared_input_cases(shared_cases):
    for case in json.loads((shared_cases / "inputs.json").read_text()):
        for kind in case.get("kinds", SORTERS):
            run_case(case, kind)


def run_case(case, kind):
    asked = []
    inner = oracle_judge(_Zero(), kind).fn

    def fn(query, passages):
        asked.append(passages)
        return inner(query, passages)

    sorter = SORTERS[kind](dr.FunctionJudge(fn, kind))
    options = {k: case[k] for k in ("top_k", "max_passage_tokens") if k in case}
    expect = case["expect"]
    if "error" in expect:
        errors = {"ValueError": ValueError, "TypeError": TypeError}
        with pytest.raises(errors[expect["error"]], match=expect.get("mentions")):
            sorter(case.get("query", "q"), case["documents"], **options)
        return
    ranking = sorter(case.get("query", "q"), case["documents"], **options).ranking
    if "n" in expect:
        assert len(ranking) == expect["n"], case["desc"]
    if "calls" in expect:
        assert ranking.usage.calls == len(asked) == expect["calls"], case["desc"]
    if "ids" in expect:
        assert [item.id for item in ranking] == expect["ids"], case["desc"]
    if "truncated" in expect:
        assert bool(ranking.truncated) == expect["truncated"], case["desc"]


class _Zero(dict):
    """Every text is worth the same."""

    def __missing__(self, key):
        return 0.0
