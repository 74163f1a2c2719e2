"""All calls to language models while compiling: paid, answered by DSPy's cache, and their price."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import dspy
import pytest
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

import dspy_rerank as dr
from dspy_rerank.models import set_price
from dspy_rerank.optimizers import JudgeCompiler, RerankerSearch, WeightCompiler, write_report
from dspy_rerank.optimizers.counting import SpentError, counting
from dspy_rerank.optimizers.plain import compile_plain
from dspy_rerank.optimizers.shares import left, summed
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, skilled

SHOTS = {"max_bootstrapped_demos": 2, "max_labeled_demos": 0, "num_candidate_programs": 2}
READ, WRITTEN = 1e-6, 2e-6


@pytest.fixture
def lm():
    """A model with a price, whose answers DSPy's cache keeps, in memory only for this test."""
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    found = scripted_lm(skilled, cache=True)
    set_price(found, input_cost_per_token=READ, output_cost_per_token=WRITTEN)
    yield found
    dspy.cache = before


def student():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


COMPILERS = {
    "judge": lambda lm: JudgeCompiler(
        BootstrapFewShotWithRandomSearch, SHOTS, lm=lm, per_query=4
    ),
    "search": lambda lm: RerankerSearch(trials=4, demos=(2,), instructions=[MAGIC], lm=lm),
    "weights": lambda lm: WeightCompiler(lm=lm),
}  # fmt: skip


def compiled(lm, kind="judge"):
    compiler = COMPILERS[kind](lm)
    return compiler.compile(student(), trainset=labelled(8), valset=labelled(8, 1))


@pytest.mark.parametrize("kind", COMPILERS)
def test_answers_of_dspys_cache_are_no_new_calls(kind, lm):
    first = compiled(lm, kind).card["spent"]
    asked = len(lm.engine.prompts)
    again = compiled(lm, kind).card["spent"]
    assert (first["calls"], first["cached_calls"]) == (asked, 0)
    assert len(lm.engine.prompts) == asked
    assert (again["calls"], again["cached_calls"]) == (0, asked)
    assert again["questions"] == first["questions"] >= asked
    assert (again["prompt_tokens"], again["cost"]) == (0, 0.0)


@pytest.mark.parametrize("kind", COMPILERS)
def test_the_card_has_dollars_where_the_price_is_known(kind, lm):
    bill = compiled(lm, kind).card["spent"]
    tokens = bill["prompt_tokens"] * READ + bill["completion_tokens"] * WRITTEN
    assert bill["cost"] == pytest.approx(tokens) != 0
    assert bill["prompt_tokens"] == sum(len(prompt.split()) for prompt in lm.engine.prompts)
    assert bill["cost_reason"] == ""


def test_the_card_says_why_dollars_are_not_known():
    bill = compiled(scripted_lm(skilled)).card["spent"]
    assert bill["cost"] is None
    assert bill["cost_reason"] == "no price is known for scripted/model"


def test_plain_dspy_is_counted_in_the_same_way(lm):
    def once():
        return compile_plain(
            student(), trainset=labelled(4), valset=labelled(4, 1), max_calls=200, lm=lm
        )

    first, asked = once(), len(lm.engine.prompts)
    again = once()
    assert first.calls == again.calls == again.usage.cached_calls
    assert first.calls - first.usage.cached_calls == asked == len(lm.engine.prompts)
    assert again.usage.cost == 0.0


def test_a_limit_holds_for_calls_that_a_cache_answers_too(lm):
    lm("Query: x worth 1")
    with counting(2) as counter:
        for _ in range(2):
            lm("Query: x worth 1")
        with pytest.raises(SpentError):
            lm("Query: x worth 1")
    assert (counter.calls, counter.cached, counter.spent) == (2, 2, True)


def test_what_a_recipes_step_leaves_counts_cached_calls_too():
    bill = {"calls": 10, "cached_calls": 5, "cost": 0.5, "seconds": 1.0}
    assert left({"max_calls": 20, "max_cost": 2.0}, bill) == {"max_calls": 5, "max_cost": 1.5}


def test_bills_are_summed_with_what_is_not_known():
    known = {
        "calls": 1, "cached_calls": 2, "failed_calls": 1, "questions": 3, "prompt_tokens": 4,
        "completion_tokens": 5, "cost": 0.5, "cost_reason": "", "seconds": 6.0,
    }  # fmt: skip
    both = summed(known, {**known, "cost": None, "cost_reason": "no price"})
    assert (both["calls"], both["cached_calls"], both["seconds"]) == (2, 4, 12.0)
    assert (both["cost"], both["cost_reason"]) == (None, "no price")


@pytest.mark.parametrize("history", [True, False])
def test_calls_of_threads_are_told_apart(lm, history):
    """Half of the answers are known; nobody takes another's answer for his own."""
    told = [f"Query: {n} worth {n}" for n in range(40)]
    for question in told[::2]:
        lm(question)
    asked = len(lm.engine.prompts)
    with dspy.context(disable_history=not history), counting() as counter:
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(copy_context().run, lm, question) for question in told]
            assert all(call.result() for call in calls)
    assert (counter.calls, counter.cached) == (40, 20)
    new = lm.engine.prompts[asked:]
    assert counter.usage.prompt_tokens == sum(len(prompt.split()) for prompt in new)
    assert counter.usage.cost == pytest.approx(
        counter.usage.prompt_tokens * READ + counter.usage.completion_tokens * WRITTEN
    )


def test_calls_of_dspys_own_threads_are_counted(lm):
    predict = dspy.Predict("question -> answer")
    lm.engine.script = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"
    pairs = [(predict, dspy.Example(question=f"{n}").with_inputs("question")) for n in range(12)]
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()), counting() as counter:
        dspy.Parallel(num_threads=4, disable_progress_bar=True)([*pairs, *pairs])
    asked = len(lm.engine.prompts)
    assert (counter.calls, counter.calls - counter.cached) == (24, asked)


def test_tasks_of_one_thread_are_told_apart(lm):
    async def ask(questions):
        await asyncio.gather(*(lm.acall(question) for question in questions))

    told = [f"Query: {n} worth {n}" for n in range(20)]
    asyncio.run(ask(told[::2]))
    with counting() as counter:
        asyncio.run(ask(told))
    assert (counter.calls, counter.cached) == (20, 10)


def test_whoever_tracks_usage_around_is_told_as_before(lm):
    with dspy.track_usage() as tracker, counting() as counter:
        lm("Query: tracked worth 1")
    (total,) = tracker.get_total_tokens().values()
    assert total["prompt_tokens"] == counter.usage.prompt_tokens > 0


YES = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"


def used(prediction):
    return [usage["prompt_tokens"] for usage in prediction.get_lm_usage().values()]


def test_a_prediction_knows_its_usage_while_calls_are_counted():
    lm = scripted_lm(YES)
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(), track_usage=True):
        with counting() as outer, counting() as counter:
            told = [used(dspy.Predict("question -> answer")(question=q)) for q in ("a", "b c d")]
    sizes = [len(prompt.split()) for prompt in lm.engine.prompts]
    assert told == [[size] for size in sizes]
    assert sizes[0] < sizes[1]
    assert counter.usage.prompt_tokens == outer.usage.prompt_tokens == sum(sizes)


def test_a_ranking_knows_its_usage_while_calls_are_counted():
    lm = scripted_lm("2")
    with dspy.context(lm=lm, track_usage=True), dspy.track_usage() as around, counting():
        first, second = (student()("q", ["a", "b"]) for _ in range(2))
    sizes = [len(prompt.split()) for prompt in lm.engine.prompts]
    assert len(sizes) == 4
    assert used(first) == used(second) == [sum(sizes) / 2]
    (total,) = around.get_total_tokens().values()
    assert total["prompt_tokens"] == sum(sizes)


def test_tasks_know_their_own_usage_while_calls_are_counted():
    async def ask():
        predict = dspy.Predict("question -> answer")
        return await asyncio.gather(*(predict.acall(question="a " * n) for n in (1, 9)))

    with dspy.context(lm=scripted_lm(YES), adapter=dspy.ChatAdapter(), track_usage=True):
        with counting():
            one, nine = asyncio.run(ask())
    assert used(nine)[0] - used(one)[0] == 8


def test_a_module_that_fails_leaves_no_usage_to_the_next():
    lm = scripted_lm(["no field", "no field", YES])
    predict = dspy.Predict("question -> answer")
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(), track_usage=True), counting() as counter:
        with pytest.raises(dspy.utils.exceptions.AdapterParseError):
            predict(question="?")
        assert len(used(predict(question="?"))) == 1
        assert used(predict(question="?")) == [len(lm.engine.prompts[-1].split())]
    assert counter.calls == len(lm.engine.prompts)


def test_a_call_that_fails_is_counted_and_costs_nothing():
    lm = scripted_lm([dspy.lm15.InvalidRequestError("no")], num_retries=0)
    with counting() as counter, pytest.raises(dspy.LMError):
        lm("?")
    assert (counter.calls, counter.failed, counter.usage.calls) == (1, 1, 0)


def test_a_refused_call_is_not_counted_by_a_counter_around():
    lm = scripted_lm("1")
    with counting() as outer, counting(1):
        lm("a")
        with pytest.raises(SpentError):
            lm("b")
    assert outer.calls == 1 == len(lm.engine.prompts)


def reported(lm, folder):
    made = compiled(lm, "search")
    test = labelled(4, 2)
    for _ in range(2):
        found = dr.evaluate({"uncompiled": student(), "compiled": made}, test, lm=lm)
    page = write_report(folder, student(), made, found, test, lm=lm).read_text()
    return json.loads((folder / "report.json").read_text()), page


def test_money_of_known_answers_is_estimated_from_the_same_tokens(lm, tmp_path):
    content, page = reported(lm, tmp_path)
    for row in content["serving"]:
        assert row["estimated"]
        money = row["prompt_tokens"] * READ + row["completion_tokens"] * WRITTEN
        assert row["cost"] == pytest.approx(money, rel=1e-4) != 0
    assert "1,000 queries, uncompiled, estimated: at most" in page


def test_money_is_not_estimated_without_a_price(tmp_path):
    lm = scripted_lm(skilled, cache=True)
    content, page = reported(lm, tmp_path)
    assert [row["cost"] for row in content["serving"]] == [None, None]
    assert "Dollars unknown: no price is known for scripted/model." in page


def test_the_pages_figures_are_those_that_count(lm, tmp_path):
    content, page = reported(lm, tmp_path)
    settings = page[page.index("settings</summary>") :]
    first = re.findall(r"<td>([^<]*)</td>", settings)[:7]
    trial = content["card"]["trials"][0]
    assert first[2:4] == ["6", "1"]
    assert first[4] == f"{trial['tokens_per_query']:,.0f}"
    assert float(first[5]) == pytest.approx(trial["money_per_query"], rel=0.06) != 0
    assert "<i>own</i> has the instructions that the program had before" in page


def test_a_search_whose_answers_were_known_estimates_its_money(lm):
    compiled(lm, "search")
    trials = compiled(lm, "search").card["trials"]
    assert [trial["calls"] for trial in trials] == [0] * len(trials)
    assert all(trial["money_per_query"] > 0 for trial in trials)
