"""Runs over files: resumed, retried alone, stopped by money, given up."""

import gc
import tracemalloc

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, ModelError
from dspy_rerank.streaming import Item, Summary, identity_of, stream
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Usage
from tests.streaming.builders import by_length, items, priced_lm, results


def graded():
    return dr.ScoreSort(dr.PointwiseJudge())


def test_a_run_writes_each_query_once(tmp_path):
    summary, rows = results(tmp_path / "o.jsonl", items(10), by_length())
    assert (summary.ranked, summary.skipped, summary.whole) == (10, 0, True)
    assert sorted(int(row["id"]) for row in rows) == list(range(10))
    assert all("text" not in item for row in rows for item in row["ranking"])


def test_a_second_run_asks_nothing(tmp_path):
    lm = scripted_lm("2")
    results(tmp_path / "o.jsonl", items(4), graded(), lm)
    summary, rows = results(tmp_path / "o.jsonl", items(6), graded(), lm)
    assert (summary.ranked, summary.skipped) == (2, 4)
    assert len(rows) == 6
    assert len(lm.engine.prompts) == 6 * 3


def test_a_query_whose_content_has_changed_is_ranked_again(tmp_path):
    results(tmp_path / "o.jsonl", items(3), by_length())
    changed = [Item("0", "another query", ["a", "bb"]), *list(items(3))[1:]]
    summary, rows = results(tmp_path / "o.jsonl", changed, by_length())
    assert (summary.ranked, summary.skipped) == (1, 2)
    assert {row["id"]: row["query"] for row in rows}["0"] == "another query"


def test_one_id_for_two_queries_is_refused_and_the_same_twice_is_not(tmp_path):
    same = list(items(2))
    summary, rows = results(tmp_path / "o.jsonl", [*same, *same], by_length())
    assert (summary.ranked, len(rows)) == (2, 2)
    two = [Item("0", "a", ["x"]), Item("0", "b", ["x"])]
    with pytest.raises(InputError, match="two queries"):
        results(tmp_path / "p.jsonl", two, by_length())


def test_failed_rows_have_their_reason_and_are_retried_alone(tmp_path):
    queries = [*items(2), Item("bad", "q", [3]), Item("blank", " ", ["a"])]
    summary, rows = results(tmp_path / "o.jsonl", queries, by_length())
    failed = {row["id"]: row["error"]["type"] for row in rows if row["status"] == "failed"}
    assert failed == {"bad": "DocumentTypeError", "blank": "InputError"}
    summary, _ = results(tmp_path / "o.jsonl", queries, by_length())
    assert (summary.failed, summary.bad_before, summary.whole) == (0, 2, False)
    more = [*queries, Item("new", "q", ["a"])]
    summary, rows = results(tmp_path / "o.jsonl", more, by_length(), retry_failed=True)
    assert (summary.ranked, summary.failed, summary.skipped) == (0, 2, 2)
    assert "new" not in {row["id"] for row in rows}


def test_a_model_that_failed_is_asked_again_for_those_queries_only(tmp_path):
    failing = scripted_lm([dspy.lm15.InvalidRequestError("too long")])
    working = scripted_lm("2")
    summary, rows = results(tmp_path / "o.jsonl", items(2), graded(), failing)
    assert summary.degraded == 2
    assert {row["status"] for row in rows} == {"degraded"}
    assert rows[0]["ranking"][0]["index"] == 0
    summary, rows = results(tmp_path / "o.jsonl", items(2), graded(), working, retry_failed=True)
    assert (summary.ranked, summary.whole) == (2, True)
    assert {row["status"] for row in rows} == {"ranked"}


def test_a_run_gives_up_when_nothing_works_any_more(tmp_path):
    lm = scripted_lm([dspy.lm15.InvalidRequestError("down")])
    with pytest.raises(ModelError, match=r"4 queries in a row.*down"):
        results(tmp_path / "o.jsonl", items(100), graded(), lm, give_up=4, queries_at_once=1)
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 4


def test_a_wrong_key_ends_the_run_and_writes_nothing(tmp_path):
    lm = scripted_lm([dspy.lm15.AuthError("bad key")])
    with pytest.raises(dspy.LMError, match="bad key"):
        results(tmp_path / "o.jsonl", items(3), graded(), lm)
    assert (tmp_path / "o.jsonl").read_text() == ""


def test_max_cost_is_kept_and_the_run_goes_on_with_more(tmp_path):
    lm, path = priced_lm(), tmp_path / "o.jsonl"
    cost = results(tmp_path / "one.jsonl", items(1), graded(), priced_lm())[0].spent
    limit = 4.5 * cost
    judge = dr.ScoreSort(dr.PointwiseJudge(max_tokens=4))
    summary, rows = results(path, items(20), judge, lm, max_cost=limit, queries_at_once=2)
    done = summary.ranked
    assert 0 < done < 5
    assert "max_cost" in summary.stopped
    assert summary.spent <= limit
    summary, rows = results(path, items(20), judge, lm, max_cost=limit, queries_at_once=2)
    assert summary.spent <= limit
    summary, rows = results(path, items(20), judge, lm, max_cost=100 * cost)
    assert summary.whole
    assert {row["status"] for row in rows} == {"ranked"}
    assert len(rows) == 20


def test_a_ranking_that_the_limit_cut_off_is_counted_and_ranked_again(tmp_path):
    lm, path = priced_lm(), tmp_path / "o.jsonl"
    judge = dr.ScoreSort(dr.PointwiseJudge(max_tokens=4), concurrency=1)
    one = results(tmp_path / "one.jsonl", items(1, 40), judge, priced_lm())[0].spent
    summary, rows = results(path, items(3, 40), judge, lm, max_cost=0.5 * one, queries_at_once=1)
    assert [row["status"] for row in rows] == ["stopped"]
    assert 0 < summary.spent <= 0.5 * one
    assert summary.spent == rows[0]["usage"]["cost"]
    summary, rows = results(path, items(3, 40), judge, lm, max_cost=10 * one)
    assert {row["status"] for row in rows} == {"ranked"}


def test_max_cost_without_a_price_is_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="price"):
        results(tmp_path / "o.jsonl", items(2), graded(), scripted_lm("2"), max_cost=1.0)
    assert (tmp_path / "o.jsonl").read_text() == ""


def test_in_order_keeps_the_order_of_the_input(tmp_path):
    _, rows = results(tmp_path / "o.jsonl", items(30), by_length(), in_order=True)
    assert [row["id"] for row in rows] == [str(number) for number in range(30)]


def test_the_identity_changes_with_program_model_and_top_k():
    lm, other = scripted_lm("2"), scripted_lm("2", model="scripted/other")
    found = [
        identity_of(graded(), lm), identity_of(graded(), other), identity_of(graded(), lm, 3),
        identity_of(dr.ScoreSort(dr.PointwiseJudge(instructions="Else.")), lm),
        identity_of(dr.ScoreSort(dr.PointwiseJudge(), prior=0.5), lm),
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert identity_of(graded(), lm) == found[0]


def test_the_identity_goes_by_the_model_that_a_program_has_of_its_own():
    lm, other = scripted_lm("2"), scripted_lm("2", model="scripted/other")
    bound = graded()
    bound.set_lm(other)
    assert identity_of(bound, lm) == identity_of(graded(), other)


def test_the_identity_does_not_change_with_the_key():
    one, other = (dspy.LM("openai/gpt-4o-mini", api_key=key) for key in ("a", "b"))
    assert identity_of(graded(), one) == identity_of(graded(), other)


class Live:
    """The most memory in use while a run goes on; garbage that awaits its collection is none."""

    def __init__(self):
        self.most = self._done = 0

    def __call__(self, _=None):
        self._done += 1
        if self._done % 50 == 0:
            gc.collect()
            self.most = max(self.most, tracemalloc.get_traced_memory()[0])


def most_memory(work):
    live = Live()
    tracemalloc.start()
    try:
        work(live)
    finally:
        tracemalloc.stop()
    return live.most


def test_memory_does_not_grow_with_the_number_of_queries(tmp_path):
    def work(count):
        path = tmp_path / f"{count}.jsonl"
        return lambda live: results(path, items(count, 2), by_length(), report=live)

    most_memory(work(50))
    few, many = most_memory(work(200)), most_memory(work(2000))
    assert 0 < many < 2 * few + 150_000  # a kept query would add megabytes


def test_memory_does_not_grow_with_a_language_model_either():
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)

    def work(count):
        def ranked(live):
            texts = ((f"q{i}", [f"{i} " + "word " * 2000, "b"]) for i in range(count))
            lm = scripted_lm("2")
            for _ in stream(graded(), texts, lm=lm, queries_at_once=4):  # 16 wait to be taken
                lm.engine.prompts.clear()
                live()

        return ranked

    with dspy.context(disable_history=True):  # which keeps the last 1,000 calls
        most_memory(work(50))
        few, many = most_memory(work(100)), most_memory(work(400))
    assert 0 < many < few + 1_000_000  # those that wait are 0.3 MB at most, kept ones 3 MB


def test_rankings_without_one_readable_judgment_are_counted_and_ranked(tmp_path):
    summary, rows = results(tmp_path / "o.jsonl", items(3), graded(), scripted_lm("no idea"))
    assert (summary.ranked, summary.degraded, summary.unread) == (3, 0, 3)
    assert summary.unknowns == sum(row["unknowns"] for row in rows) == 9
    assert summary.whole
    assert "9 unknown" in str(summary)
    assert "3 of 3 rankings" in summary.warning()
    assert summary.to_dict()["unread"] == 3


def test_a_ranking_with_one_readable_judgment_is_not_unread(tmp_path):
    lm = scripted_lm(lambda prompt: "2" if "passage 0" in prompt else "no idea")
    summary, _ = results(tmp_path / "o.jsonl", items(2), graded(), lm)
    assert (summary.unknowns, summary.unread, summary.warning()) == (4, 0, "")


def test_queries_that_a_run_cannot_carry_fail_before_they_are_asked(tmp_path):
    twice = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}]
    spaced = [{"id": "a b", "text": "one"}, {"id": "c", "text": "two"}]
    queries = [Item("twice", "q", twice), Item("spaced", "q", spaced), *items(1)]
    lm = scripted_lm("2")
    summary, rows = results(tmp_path / "o.jsonl", queries, graded(), lm, trec=True, in_order=True)
    assert (summary.ranked, summary.failed) == (1, 2)
    assert [row["error"]["type"] for row in rows[:2]] == ["InputError", "DataError"]
    assert "query 'twice': documents 0 and 1" in rows[0]["error"]["message"]
    assert len(lm.engine.prompts) == 3
    again, _ = results(tmp_path / "o.jsonl", queries, graded(), lm, trec=True)
    assert (again.skipped, again.bad_before) == (3, 2)


def test_a_cost_that_is_not_known_has_its_reason():
    unknown = Usage(calls=1, cost=None, cost_reason="no price is known for x")
    assert "1 call (0 cached), 0 tokens, cost unknown (no price is known for x)" in str(
        Summary(ranked=1, usage=unknown)
    )
    assert "$0.000032" in str(Summary(usage=Usage(calls=2, cost=3.2e-5)))
