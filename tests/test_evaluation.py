"""Measuring beside the incoming order."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DataError, InputError
from dspy_rerank.testing import oracle_judge, scripted_lm

EXAMPLES = [
    dspy.Example(query=f"q{i}", documents=["a", "b", "c"], relevance=[0, i % 2, 3])
    for i in range(8)
]
GRADES = {"a": 0.0, "b": 1.0, "c": 3.0}


def test_the_baseline_row_is_always_there():
    found = dr.evaluate(
        dr.MergeSort(oracle_judge(GRADES, "pairwise")), EXAMPLES, ["nDCG@10", "MRR"]
    )
    assert [row.name for row in found.rows] == ["incoming order", "reranker"]
    assert found["reranker"].mean("nDCG@10").mean == 1.0
    assert found.gain("nDCG@10", "reranker").significant
    assert found["reranker"].usage.calls > 0
    assert "incoming order" in str(found)
    assert found.to_dict()["rows"][1]["gain"]["MRR"]["mean"] > 0


def test_no_difference_is_not_significant():
    first = dr.FunctionJudge(lambda query, passages: 0, "pairwise")
    found = dr.evaluate(dr.MergeSort(first), EXAMPLES)
    assert not found.gain("nDCG@10", "reranker").significant


def test_queries_share_one_limit_on_questions():
    import asyncio

    running, most = 0, 0

    async def fn(query, passages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return 1.0

    sorter = dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), concurrency=4)
    dr.evaluate(sorter, EXAMPLES)
    assert most == 4


def test_labels_never_reach_the_model():
    examples = [
        dspy.Example(**e, answer="SECRET").with_inputs("query", "documents") for e in EXAMPLES
    ]
    lm = scripted_lm("2")
    dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), examples, lm=lm)
    assert not any("SECRET" in prompt for prompt in lm.engine.prompts)


@pytest.mark.parametrize(
    ("data", "metrics", "says"),
    [([], ["nDCG@10"], "no queries"), (EXAMPLES, ["nDCF@10"], "nDCF")],
)
def test_unusable_arguments_say_what_was_expected(data, metrics, says):
    with pytest.raises(InputError, match=says):
        dr.evaluate(dr.MergeSort(oracle_judge(GRADES, "pairwise")), data, metrics)


def shown(lm):
    """The table's columns and rows by name, and what stands below it."""
    lines = str(dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), EXAMPLES, lm=lm)).splitlines()
    header, row = (lines[i].split() for i in (1, 3))
    return dict(zip(reversed(header), reversed(row), strict=False)), lines[4:]


def test_the_table_has_calls_tokens_and_dollars_a_query():
    lm = scripted_lm("2")
    dr.models.set_price(lm, input_cost_per_token=0.5, output_cost_per_token=1.0)
    used = dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), EXAMPLES, lm=lm)["reranker"].usage
    cells, below = shown(lm)
    assert float(cells["calls/query"]) == used.calls / 8 == 3
    tokens = used.prompt_tokens + used.completion_tokens
    assert float(cells["tokens/query"]) == pytest.approx(tokens / 8, abs=0.5)
    assert float(cells["$/query"]) == pytest.approx(used.cost / 8, abs=1e-4)
    assert below == []


def test_small_sums_keep_two_figures():
    lm = scripted_lm("2")
    dr.models.set_price(lm, input_cost_per_token=1e-9, output_cost_per_token=1e-9)
    cells, _ = shown(lm)
    assert 0 < float(cells["$/query"]) < 1e-5


def test_dollars_that_nobody_knows_are_a_question_mark_with_the_reason():
    cells, below = shown(scripted_lm("2"))
    assert cells["$/query"] == "?"
    assert below == ["? = dollars unknown: no price is known for scripted/model"]


def test_functions_cost_nothing():
    found = dr.evaluate(dr.MergeSort(oracle_judge(GRADES, "pairwise")), EXAMPLES)
    header, _, row = found.cells()
    assert row[header.index("$/query")] == "0"


HALF = [
    *EXAMPLES[:4],
    *({"query": f"p{i}", "documents": ["a", "b"], "relevance": [None, None]} for i in range(4)),
]


def test_unlabelled_queries_are_not_asked_and_are_in_no_mean():
    lm = scripted_lm("2")
    with pytest.warns(UserWarning, match=r"4 of 8 queries without labels are left out.*\(5, 6"):
        found = dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), HALF, lm=lm)
    assert (found.queries, found.unlabelled) == (4, ("5", "6", "7", "8"))
    assert found["reranker"].mean("nDCG@10").n == 4
    assert len(lm.engine.prompts) == 4 * 3
    assert found.to_dict()["unlabelled"] == ["5", "6", "7", "8"]
    assert "4 queries (4 without labels left out)" in str(found)


def test_a_query_whose_labels_are_all_0_counts_as_0():
    zero = {"query": "z", "documents": ["a", "b", "c"], "relevance": [0, 0, None]}
    found = dr.evaluate(dr.MergeSort(oracle_judge(GRADES, "pairwise")), [EXAMPLES[1], zero])
    assert found["reranker"].values["nDCG@10"] == (1.0, 0.0)
    assert found.unlabelled == ()


def test_nothing_labelled_is_an_error_before_any_call():
    lm = scripted_lm("2")
    with pytest.raises(DataError, match="none of 4 queries has a label"):
        dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), HALF[4:], lm=lm)
    assert lm.engine.prompts == []


def test_one_metric_may_be_a_plain_text():
    found = dr.evaluate(dr.MergeSort(oracle_judge(GRADES, "pairwise")), EXAMPLES, "MRR")
    assert found.metrics == ("MRR",)
    assert found["reranker"].mean("MRR").mean == 1.0


def test_answers_that_cannot_be_read_are_said_below_the_table():
    found = dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), EXAMPLES, lm=scripted_lm("no idea"))
    assert "reranker: all 24 judgments are unknown (" in str(found)
    found = dr.evaluate(dr.ScoreSort(dr.PointwiseJudge()), EXAMPLES, lm=scripted_lm("2"))
    assert "judgments are unknown" not in str(found)
