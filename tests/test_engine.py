"""What lies between a plan and a judge."""

import asyncio
from collections import Counter

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DataError, InputError, ModelError, NoModelError
from dspy_rerank.options import Options
from dspy_rerank.testing import oracle_judge, scripted_lm

DOCUMENTS = [f"document {i}" for i in range(12)]
GRADES = {text: i for i, text in enumerate(DOCUMENTS)}


def counting(kind="pairwise", log=None):
    """An oracle that writes down every group it was asked."""
    judge = oracle_judge(GRADES, kind)
    inner = judge.fn

    def fn(query, passages):
        if log is not None:
            log.append(tuple(passages))
        return inner(query, passages)

    return dr.FunctionJudge(fn, kind)


def test_no_pair_is_asked_twice():
    log = []
    dr.MergeSort(counting(log=log))("q", DOCUMENTS)
    assert max(Counter(log).values()) == 1


def test_calls_counted_are_calls_made():
    log = []
    ranking = dr.MergeSort(counting(log=log))("q", DOCUMENTS).ranking
    assert ranking.usage.calls == len(log)
    assert ranking.usage.passages_read == 2 * len(log)
    assert ranking.usage.cost == 0.0


def test_concurrency_is_a_limit():
    running, most = 0, 0

    async def fn(query, passages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return 1.0

    dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), concurrency=3)("q", DOCUMENTS)
    assert most == 3


def test_works_inside_a_running_loop():
    async def app():
        return dr.MergeSort(counting())("q", DOCUMENTS).ranking.indices

    assert asyncio.run(app()) == list(range(11, -1, -1))


def test_a_sync_call_from_an_async_judge_is_an_error_not_a_deadlock():
    async def fn(query, passages):
        dr.MergeSort(counting())("q", DOCUMENTS)
        return 1

    ranking = dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"))("q", ["a"]).ranking
    assert "acall" in ranking.reasons[0]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_max_calls_is_never_exceeded_and_nothing_is_lost(limit):
    log = []
    ranking = dr.MergeSort(counting(log=log), max_calls=limit)("q", DOCUMENTS).ranking
    assert len(log) == limit
    assert sorted(ranking.indices) == list(range(12))
    assert ranking.degraded
    assert "max_calls" in ranking.reasons[0]
    assert ranking.unknowns == ranking.unasked > 0
    assert f"{ranking.unknowns} unknown ({ranking.unasked} not asked)" in ranking.summary()


def test_deadline_stops_waiting_for_a_slow_judge():
    async def fn(query, passages):
        await asyncio.sleep(60)

    ranking = dr.ScoreSort(dr.FunctionJudge(fn, "pointwise"), deadline=0.05)("q", DOCUMENTS).ranking
    assert ranking.indices == list(range(12))
    assert ranking.reasons == ("deadline=0.05s was reached",)
    assert ranking.usage.seconds < 30
    assert (ranking.unknowns, ranking.unasked, ranking.cut_short) == (12, 4, 8)
    assert "12 unknown (4 not asked, 8 cut short)" in ranking.summary()


def test_an_answer_that_cannot_be_read_stays_so_where_a_limit_forbids_another():
    with dspy.context(lm=scripted_lm("hm")):
        ranking = dr.ScoreSort(dr.PointwiseJudge(), max_calls=1)("q", ["a"]).ranking
    assert (ranking.unknowns, ranking.unasked, ranking.cut_short) == (1, 0, 0)
    assert ranking.judgments[0].raw == "hm"
    assert "1 unknown;" in ranking.summary()


def test_a_pair_of_which_one_order_was_asked_is_cut_short():
    with dspy.context(lm=scripted_lm("A")):
        sorter = dr.AllPairs(dr.PairwiseJudge(), max_calls=1)
        ranking = sorter("q", ["a", "b", "c"]).ranking
    assert (ranking.unknowns, ranking.unasked, ranking.cut_short) == (3, 2, 1)


def test_a_limit_that_no_first_call_fits_into_leaves_everything_unasked():
    with dspy.context(lm=scripted_lm("2")):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), max_tokens=1)
        ranking = sorter("q", ["a", "b"]).ranking
    assert (ranking.usage.calls, ranking.unknowns, ranking.unasked) == (0, 2, 2)


@pytest.mark.parametrize(
    ("deadline", "said"), [(2.9999812320020283, "3s"), (0.25, "0.25s"), (60.0, "60s")]
)
def test_a_deadline_is_said_with_the_figures_that_count(deadline, said):
    assert Options(deadline=deadline).late == f"deadline={said} was reached"


def test_an_option_may_be_given_with_one_call():
    sorter = dr.MergeSort(counting())
    assert sorter("q", DOCUMENTS, max_calls=2).ranking.usage.calls == 2
    assert not sorter("q", DOCUMENTS).ranking.degraded


def test_passing_failures_are_tried_again():
    said = iter([dspy.lm15.RateLimitError("slow down"), dspy.lm15.ServerError("oops"), "2"])
    lm = scripted_lm(lambda prompt: next(said))
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge())("q", ["a"]).ranking
    assert not ranking.degraded
    assert ranking.usage.failed_calls == 2
    assert ranking.usage.calls == 1
    assert len(lm.engine.prompts) == 3


def always(error):
    def say(prompt):
        return error

    return say


def test_lasting_failure_gives_the_incoming_order_marked():
    lm = scripted_lm(always(dspy.lm15.InvalidRequestError("no")))
    with dspy.context(lm=lm):
        ranking = dr.TopDown(dr.ListwiseJudge())("q", DOCUMENTS, top_k=4).ranking
    assert ranking.indices == [0, 1, 2, 3]
    assert ranking.degraded
    assert ranking.usage.failed_calls == 1
    assert all(item.score is None for item in ranking)


def test_one_failure_among_many_discards_all_scores():
    lm = scripted_lm(
        lambda prompt: dspy.lm15.InvalidRequestError("no") if "document 5" in prompt else "3"
    )
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge())("q", DOCUMENTS).ranking
    assert ranking.degraded
    assert ranking.indices == list(range(12))
    assert all(item.score is None for item in ranking)


def test_on_error_raise():
    lm = scripted_lm(always(dspy.lm15.InvalidRequestError("no")))
    with dspy.context(lm=lm), pytest.raises(ModelError, match="no"):
        dr.ScoreSort(dr.PointwiseJudge(), on_error="raise")("q", ["a"])


def test_authentication_always_raises():
    lm = scripted_lm(always(dspy.lm15.AuthError("bad key")))
    with dspy.context(lm=lm), pytest.raises(dspy.LMAuthError):
        dr.ScoreSort(dr.PointwiseJudge())("q", ["a", "b"])


def test_no_model_is_one_clear_error():
    with pytest.raises(NoModelError, match="embedded"):
        dr.ScoreSort(dr.PointwiseJudge())("q", ["a", "b"])


def test_nothing_to_ask_needs_no_model():
    sorter = dr.TopDown(dr.ListwiseJudge())
    assert len(sorter("q", []).ranking) == 0
    assert len(sorter("q", ["a", "b"], top_k=0).ranking) == 0
    assert sorter("q", ["only one"]).ranking.usage.calls == 0


def test_an_unreadable_answer_is_asked_again_visibly():
    lm = scripted_lm(["I like them all", "[2] > [1]"])
    with dspy.context(lm=lm):
        ranking = dr.SlidingWindow(dr.ListwiseJudge())("q", ["a", "b"]).ranking
    first, second = lm.engine.prompts
    assert ranking.indices == [1, 0]
    assert ranking.unknowns == 0
    assert ranking.usage.calls == 2
    assert second.startswith(first)
    assert "could not be read" in second


def test_an_answer_that_stays_unreadable_keeps_the_order_and_is_counted():
    lm = scripted_lm("I cannot decide.")
    with dspy.context(lm=lm):
        ranking = dr.SlidingWindow(dr.ListwiseJudge(), retries=2)("q", ["a", "b", "c"]).ranking
    assert ranking.indices == [0, 1, 2]
    assert ranking.unknowns == 1
    assert len(lm.engine.prompts) == 3
    assert not ranking.degraded


def test_cache_hits_are_counted_and_free():
    lm = scripted_lm("2", cache=True)
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge())
        first = sorter("q", ["a", "b"]).ranking.usage
        second = sorter("q", ["a", "b"]).ranking.usage
    assert (first.cached_calls, second.cached_calls) == (0, 2)
    assert first.prompt_tokens > 0
    assert second.prompt_tokens == 0
    assert second.cost == 0.0


def test_dspy_sees_every_call():
    lm = scripted_lm("A")
    with dspy.context(lm=lm, trace=[]):
        ranking = dr.AllPairs(dr.PairwiseJudge())("q", ["a", "b", "c"]).ranking
        assert len(dspy.settings.trace) == ranking.usage.calls == 6
    assert len(lm.history) == 6


def test_usage_is_tracked_for_the_caller_too():
    with dspy.context(lm=scripted_lm("A")), dspy.track_usage() as tracker:
        ranking = dr.AllPairs(dr.PairwiseJudge())("q", ["a", "b"]).ranking
    (total,) = tracker.get_total_tokens().values()
    assert total["prompt_tokens"] == ranking.usage.prompt_tokens


def test_dspy_evaluate_with_threads():
    from dspy_rerank.metrics import RankingMetric

    examples = [
        dspy.Example(query=f"q{i}", documents=DOCUMENTS, relevance=list(range(12))).with_inputs(
            "query", "documents"
        )
        for i in range(6)
    ]
    result = dspy.Evaluate(devset=examples, metric=RankingMetric(), num_threads=3)(
        dr.MergeSort(counting())
    )
    assert result.score == 100.0


def test_functions_that_rank_in_turn_do_not_wait_for_each_other():
    inner = dr.ScoreSort(dr.FunctionJudge(lambda query, passages: 1.0, "pointwise"))

    def outer(query, passages):
        return inner(query, passages).ranking[0].score

    ranking = dr.ScoreSort(dr.FunctionJudge(outer, "pointwise"), concurrency=64)("q", DOCUMENTS * 4)
    assert not ranking.ranking.degraded


def test_a_function_that_hangs_takes_nothing_from_others():
    import time

    slow = dr.FunctionJudge(lambda query, passages: time.sleep(30), "pointwise")
    for _ in range(3):
        assert dr.ScoreSort(slow, deadline=0.05)("q", DOCUMENTS).ranking.degraded
    assert not dr.MergeSort(counting())("q", DOCUMENTS).ranking.degraded


def test_stop_iteration_in_a_function_is_a_failure_not_a_hang():
    judge = dr.FunctionJudge(lambda query, passages: next(iter([])), "pointwise")
    ranking = dr.ScoreSort(judge)("q", ["a"]).ranking
    assert ranking.degraded
    assert "StopIteration" in ranking.reasons[0]


def test_a_failed_try_costs_nothing_and_the_price_stays_known():
    said = iter([ConnectionError("gone"), 1.0])

    class Flaky(dr.FunctionJudge):
        def failure(self, error):
            return "transient"

    def fn(query, passages):
        value = next(said)
        if isinstance(value, Exception):
            raise value
        return value

    usage = dr.ScoreSort(Flaky(fn, "pointwise"))("q", ["a"]).ranking.usage
    assert (usage.failed_calls, usage.cost) == (1, 0.0)


def test_a_model_with_a_synchronous_forward_only_can_judge():
    class Old(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **kwargs):
            message = {"role": "assistant", "content": "2"}
            return dspy.clients.call_result.attributes(
                {"model": "old", "choices": [{"message": message}], "usage": {"total_tokens": 1}}
            )

    with dspy.context(lm=Old("old/model")):
        ranking = dr.ScoreSort(dr.PointwiseJudge())("q", ["a", "b"]).ranking
    assert [item.score for item in ranking] == [2.0, 2.0]


@pytest.mark.parametrize("options", [{"retries": 1.5}, {"seed": "x"}, {"concurrency": 2.5}])
def test_options_of_a_wrong_type_are_refused_at_once(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        dr.MergeSort(counting(), **options)


def test_a_broken_connection_of_a_models_own_class_is_tried_again():
    said = iter([ConnectionError("gone"), "2"])

    class Own(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **kwargs):
            value = next(said)
            if isinstance(value, Exception):
                raise value
            message = {"role": "assistant", "content": value}
            return dspy.clients.call_result.attributes(
                {"model": "own", "choices": [{"message": message}], "usage": {}}
            )

    with dspy.context(lm=Own("own/model")):
        ranking = dr.ScoreSort(dr.PointwiseJudge())("q", ["a"]).ranking
    assert (ranking[0].score, ranking.usage.failed_calls) == (2.0, 1)


@pytest.mark.parametrize("name", ["a b", "a\nq Q0 forged 1 9 t", ""])
def test_an_id_that_would_forge_a_trec_line_is_refused(name):
    ranking = dr.MergeSort(counting())("q", [dr.Document(DOCUMENTS[0], id=name)]).ranking
    with pytest.raises(DataError):
        ranking.to_trec("1")


@pytest.mark.parametrize("ids", [("x", "x"), (None, "0")], ids=["one id twice", "id and position"])
def test_documents_that_a_trec_run_cannot_tell_apart_are_refused(ids):
    documents = [dr.Document(text, id=name) for text, name in zip(DOCUMENTS, ids, strict=False)]
    ranking = dr.MergeSort(counting())("q", documents).ranking
    with pytest.raises(InputError, match=r"documents 0 and 1 .* both go by the id"):
        ranking.to_trec("1")
    assert len(ranking.to_dict()["ranking"]) == 2
