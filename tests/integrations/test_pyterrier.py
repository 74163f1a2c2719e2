"""Reranking PyTerrier's result frames."""

import asyncio
import warnings
from itertools import pairwise

import dspy
import pytest
from ir_measures import P, nDCG

import dspy_rerank as dr
from dspy_rerank.errors import ModelError, ProgramError
from dspy_rerank.testing import oracle_judge
from tests.integrations.builders import BEST, BY_GRADE, CORPUS, GRADES, QUERY

pt = pytest.importorskip("pyterrier")
pd = pytest.importorskip("pandas")

from pyterrier import testing  # noqa: E402

from dspy_rerank.integrations.pyterrier import DSPyReranker, falling  # noqa: E402

TOPICS = pd.DataFrame({"qid": ["q2", "q1"], "query": [QUERY, "deleted file trash"]})
QRELS = pd.DataFrame(
    [(q, f"d{i}", grade) for q in ("q1", "q2") for i, grade in enumerate(GRADES.values())],
    columns=["qid", "docno", "label"],
)


class Bm25(pt.Transformer):
    """A first stage over a real index."""

    def __init__(self, search):
        self.search_index = search

    def transform(self, inp):
        pt.validate.query_frame(inp, ["query"])
        rows = [
            {**row, "docno": f"d{i}", "text": CORPUS[i], "score": score, "rank": rank}
            for row in inp.to_dict("records")
            for rank, (i, score) in enumerate(zip(*self.search_index(row["query"]), strict=True))
        ]
        return pd.DataFrame(rows, columns=[*inp.columns, "docno", "text", "score", "rank"])


@pytest.fixture
def first(search):
    return Bm25(search)


@pytest.fixture
def rerank(reranker, judge_lm):
    return DSPyReranker(reranker, lm=judge_lm)


class TestConformance(testing.TransformerTestCase):
    """PyTerrier's own checks of inputs, outputs and the schematic."""

    @staticmethod
    def get_transformer():
        return DSPyReranker(dr.ScoreSort(oracle_judge(GRADES, "pointwise")))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_each_query_is_reranked_and_keeps_its_place(first, rerank):
    out = (first >> rerank)(TOPICS)
    assert list(dict.fromkeys(out["qid"])) == ["q2", "q1"]
    for _, group in out.groupby("qid"):
        assert list(group["text"])[:3] == BY_GRADE
        assert list(group["rank"]) == [0, 1, 2, 3, 4]
        assert group["score"].is_monotonic_decreasing
        assert group["score"].is_unique


def test_inputs_and_outputs_can_be_inspected(rerank):
    assert pt.inspect.transformer_inputs(rerank) == [["qid", "query", "docno", "text"]]
    outputs = pt.inspect.transformer_outputs(rerank, ["qid", "query", "docno", "text", "url"])
    assert outputs == ["qid", "query", "docno", "text", "url", "score", "rank"]
    flagged = DSPyReranker(confidence_threshold=0.5)
    outputs = pt.inspect.transformer_outputs(flagged, ["qid", "query", "docno", "text"])
    assert outputs[-2:] == ["rerank_confidence", "low_confidence"]


def test_columns_are_those_that_inspection_promised(first, rerank):
    given = first(TOPICS)
    assert list(rerank(given).columns) == pt.inspect.transformer_outputs(
        rerank, list(given.columns)
    )


def test_a_missing_column_is_named(rerank):
    with pytest.raises(pt.validate.InputValidationError, match="text"):
        rerank(pd.DataFrame({"qid": ["1"], "query": ["q"], "docno": ["d"]}))


def test_no_rows_give_no_rows(first, rerank):
    out = rerank(first(TOPICS.iloc[:0]))
    assert len(out) == 0
    assert "rank" in out.columns


def test_the_given_frame_is_not_touched(first, rerank):
    given = first(TOPICS)
    before = given.copy()
    rerank(given)
    pd.testing.assert_frame_equal(given, before)


def test_the_incoming_rank_is_the_incoming_order(broken_lm, reranker, first):
    shuffled = first(TOPICS).sample(frac=1, random_state=3)
    out = DSPyReranker(reranker, lm=broken_lm)(shuffled)
    for qid, group in out.groupby("qid"):
        came = shuffled[shuffled["qid"] == qid].sort_values("rank")
        assert list(group["docno"]) == list(came["docno"])


def test_operators_compose(first, rerank):
    cut = (first % 3 >> rerank % 2)(TOPICS)
    assert list(cut.groupby("qid").size()) == [2, 2]
    total = (2 * first + (first >> rerank))(TOPICS)
    assert len(total) == 10
    features = (first >> (pt.Transformer.identity() ** rerank))(TOPICS)
    assert [len(row) for row in features["features"]] == [2] * 10
    both = ((first % 1) | (first >> rerank % 1))(TOPICS)
    assert BEST in set(both["text"])


def test_a_cut_is_compiled_into_the_reranker(rerank, first):
    pipeline = (first >> rerank % 2).compile()
    fused = pipeline[-1]
    assert (type(fused), fused.top_k) == (DSPyReranker, 2)
    assert rerank.fuse_rank_cutoff(2).fuse_rank_cutoff(5).top_k == 2
    assert list(pipeline(TOPICS).groupby("qid").size()) == [2, 2]


def test_search_answers_one_query(first, rerank):
    assert (first >> rerank).search(QUERY).iloc[0]["text"] == BEST


def test_lists_of_rows_work_too(first, rerank):
    rows = (first >> rerank)([{"qid": "1", "query": QUERY}])
    assert rows[0]["text"] == BEST


def test_an_experiment_measures_this_very_ranking(first, rerank):
    found = pt.Experiment(
        [first, first >> rerank], TOPICS, QRELS, [nDCG, P @ 1], names=["bm25", "reranked"]
    )
    assert found.set_index("name").loc["reranked", "nDCG"] == pytest.approx(1.0)
    assert found.set_index("name").loc["reranked", "P@1"] == 1.0


def test_sorters_without_scores_count_down(first):
    out = (first >> DSPyReranker(dr.MergeSort(oracle_judge(GRADES, "pairwise"))))(TOPICS)
    assert list(out["score"]) == [5.0, 4.0, 3.0, 2.0, 1.0] * 2


def test_scores_fall_strictly_and_stay_near_the_judges():
    assert falling([3.0, 1.0], 2) == [3.0, 1.0]
    tied = falling([3.0, 3.0, 3.0, -7.5, None], 5)
    assert tied == pytest.approx([3.0, 3.0, 3.0, -7.5, -7.5], abs=1e-4)
    assert all(a > b for a, b in pairwise(tied))
    assert falling([None, None], 5) == [5.0, 4.0]
    assert falling([], 0) == []


def test_documents_without_text_come_last(first, rerank, judge_lm):
    given = first(TOPICS.iloc[:1])
    given.loc[0, "text"] = None
    out = rerank(given)
    assert out.iloc[-1]["docno"] == given.iloc[0]["docno"]
    assert len(judge_lm.engine.prompts) == 4


def test_a_failing_model_keeps_order_and_scores_or_raises(first, reranker, broken_lm):
    given = first(TOPICS)
    out = DSPyReranker(reranker, lm=broken_lm)(given)
    assert list(out["docno"]) == list(given["docno"])
    assert list(out["score"]) == pytest.approx(list(given["score"]), abs=1e-4)
    with pytest.raises(ModelError):
        DSPyReranker(reranker, lm=broken_lm, raise_on_error=True)(given)


def test_low_confidence_is_a_column(first, doubtful):
    out = DSPyReranker(doubtful, confidence_threshold=0.5)(first(TOPICS))
    assert list(out["low_confidence"]) == [False, True, True, True, True] * 2


def test_a_saved_program_and_the_configured_model(first, program, judge_lm):
    with dspy.context(lm=judge_lm):
        assert (first >> DSPyReranker(program)).search(QUERY).iloc[0]["text"] == BEST
    with pytest.raises(ProgramError):
        DSPyReranker("missing.json")


def test_queries_share_the_limit_on_questions(first):
    running = most = 0

    async def grade(query, passages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return GRADES[passages[0]]

    judge = dr.FunctionJudge(grade, "pointwise")
    DSPyReranker(dr.ScoreSort(judge, concurrency=3))(first(TOPICS))
    assert most == 3
    most = 0
    DSPyReranker(dr.ScoreSort(judge), inputs={"concurrency": 1})(first(TOPICS))
    assert most == 1


def test_another_text_column(first, reranker, judge_lm):
    given = first(TOPICS).rename(columns={"text": "body"})
    out = DSPyReranker(reranker, lm=judge_lm, text_field="body")(given)
    assert out.iloc[0]["body"] == BEST
