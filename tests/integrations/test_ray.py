"""Workers of Ray Data without a cluster: what they rank, skip, keep and lease."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import orjson
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DataError, InputError, ModelError, ProgramError
from dspy_rerank.limits import Limit, limit_of, set_limit
from dspy_rerank.program import to_dict
from dspy_rerank.streaming import Summary
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Usage
from tests.integrations.builders import BEST, CORPUS, QUERY, failing, grade_of

pytest.importorskip("ray", reason="Ray is not installed: pip install 'dspy-rerank[ray]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from dspy_rerank.integrations.ray import Parts, read_failed, read_ranked
from dspy_rerank.integrations.ray.job import Job
from dspy_rerank.integrations.ray.parts import BAD, GOOD, has
from dspy_rerank.integrations.ray.ranker import RECEIPT, Ranker, of_receipt
from dspy_rerank.integrations.ray.rates import LOOK, Lease, Rates, share
from dspy_rerank.integrations.ray.reading import LINE, dataset_of, read_groups, read_span
from dspy_rerank.integrations.ray.running import followed, rerank


class Remote:
    """An actor's method, called in this process."""

    def __init__(self, method):
        self.method = method

    def remote(self, *args):
        async def called():
            return self.method(*args)

        return asyncio.ensure_future(called())


class Near:
    """The actor of the rates, in this process; counts its messages."""

    def __init__(self):
        self.rates, self.leases, self.refusals = Rates(), 0, 0

    @property
    def lease(self):
        self.leases += 1
        return Remote(self.rates.lease)

    @property
    def refused(self):
        self.refusals += 1
        return Remote(self.rates.refused)


@pytest.fixture
def out(tmp_path):
    parts = Parts(str(tmp_path / "out"))
    parts.make()
    return parts


def worker(reranker, lm, out, run="000001", **job):
    """A worker as a run would start it over what the folder holds by then."""
    told = {"top_k": None, "queries_at_once": None, "inputs": (), "workers": 1, "models": None,
            "only_failed": False, **job}  # fmt: skip
    given = Job(program=to_dict(reranker), lm=lambda: lm, out=out.place, run=run, **told)
    return Ranker(given, Near(), out.keys(GOOD), out.keys(BAD))


def table(*queries):
    return pa.Table.from_pylist([{"query": query, "documents": CORPUS} for query in queries])


def out_path(out):
    return Path(out.place)


def ranked(at, batch):
    return of_receipt(at(batch)[RECEIPT][0].as_py())


def test_a_batch_becomes_one_part_with_rankings(reranker, judge_lm, out):
    summary = ranked(worker(reranker, judge_lm, out), table(QUERY, "another query"))
    assert (summary.ranked, summary.usage.calls) == (2, 2 * len(CORPUS))
    first, second = read_ranked(out.place)
    assert [first["query"], second["query"]] == [QUERY, "another query"]
    assert CORPUS[first["ranking"][0]["index"]] == BEST
    assert sorted(place["index"] for place in first["ranking"]) == list(range(len(CORPUS)))
    assert [path.name[:7] for path in (out_path(out) / "ranked").iterdir()] == ["000001-"]


def test_a_batch_that_is_done_again_asks_nothing_and_says_the_same(reranker, judge_lm, out):
    """As when a worker dies after its results were safe and before it could say so."""
    at = worker(reranker, judge_lm, out)
    first = ranked(at, table(QUERY))
    asked = len(judge_lm.engine.prompts)
    again = ranked(at, table(QUERY))
    assert len(judge_lm.engine.prompts) == asked
    assert (again.ranked, again.usage) == (first.ranked, first.usage)
    assert len(list(read_ranked(out.place))) == 1


def test_a_later_run_skips_what_is_done_whatever_batch_it_is_in(reranker, judge_lm, out):
    ranked(worker(reranker, judge_lm, out), table(QUERY, "another query"))
    judge_lm.engine.prompts.clear()
    summary = ranked(worker(reranker, judge_lm, out, "000002"), table("a third", QUERY))
    assert (summary.ranked, summary.skipped) == (1, 1)
    assert all("a third" in prompt for prompt in judge_lm.engine.prompts)


def test_other_candidates_make_another_query(reranker, judge_lm, out):
    ranked(worker(reranker, judge_lm, out), table(QUERY))
    fewer = pa.Table.from_pylist([{"query": QUERY, "documents": CORPUS[:3]}])
    assert ranked(worker(reranker, judge_lm, out, "000002"), fewer).ranked == 1


def test_equal_queries_of_a_batch_are_ranked_once(reranker, judge_lm, out):
    assert ranked(worker(reranker, judge_lm, out), table(QUERY, QUERY)).ranked == 1


def test_failures_are_kept_with_the_reason_and_apart(reranker, broken_lm, out):
    lines = pa.table({LINE: ["{not json", json.dumps({"query": QUERY, "documents": CORPUS})]})
    summary = ranked(worker(reranker, broken_lm, out), lines)
    assert (summary.ranked, summary.degraded, summary.failed) == (0, 1, 1)
    unread, unanswered = read_failed(out.place)
    assert "expected a JSON object" in unread["reasons"][0]
    assert "the model does not answer" in unanswered["reasons"][0]
    assert list(read_ranked(out.place)) == []


def test_failures_alone_can_be_ranked_again(reranker, broken_lm, judge_lm, out):
    ranked(worker(reranker, judge_lm, out), table("fine"))
    ranked(worker(reranker, broken_lm, out), table(QUERY))
    judge_lm.engine.prompts.clear()
    at = worker(reranker, judge_lm, out, "000002", only_failed=True)
    summary = ranked(at, table("fine", QUERY, "never ranked"))
    assert (summary.ranked, summary.skipped) == (1, 1)
    assert all(QUERY in prompt for prompt in judge_lm.engine.prompts)
    assert list(read_failed(out.place)) == []
    assert {row["query"] for row in read_ranked(out.place)} == {"fine", QUERY}


def test_a_plain_rerun_leaves_failures_be(reranker, broken_lm, judge_lm, out):
    ranked(worker(reranker, broken_lm, out), table(QUERY))
    summary = ranked(worker(reranker, judge_lm, out, "000002"), table(QUERY))
    assert (summary.ranked, summary.skipped, summary.bad_before) == (0, 1, 1)


def test_failures_that_were_settled_are_forgotten(reranker, broken_lm, judge_lm, out):
    ranked(worker(reranker, broken_lm, out), table(QUERY, "gone from the source"))
    ranked(worker(reranker, judge_lm, out, "000002", only_failed=True), table(QUERY))
    out.settle("000002")
    assert [row["query"] for row in out.rows(BAD)] == ["gone from the source"]


def test_a_part_is_completed_where_only_its_failures_were_written(reranker, broken_lm, out):
    """Failures are written first; a kill may come between the two files of a batch."""
    both = scripted_lm(lambda p: failing(p) if "bad query" in p else grade_of(p), num_retries=0)
    at = worker(reranker, both, out)
    ranked(at, table(QUERY, "bad query"))
    (good,) = (out_path(out) / "ranked").iterdir()
    good.unlink()
    both.engine.prompts.clear()
    summary = ranked(at, table(QUERY, "bad query"))
    assert (summary.ranked, summary.degraded) == (1, 1)
    assert all(QUERY in prompt for prompt in both.engine.prompts)


def test_ids_inputs_and_top_k_of_rows_are_taken(judge_lm, out):
    reranker = dr.ScoreSort(dr.PointwiseJudge("query, criteria, passage -> grade: float",
                                              evidence="generate"))  # fmt: skip
    row = {"id": "q7", "query": QUERY, "criteria": "recent", "documents": CORPUS, "top_k": 2}
    at = worker(reranker, judge_lm, out, inputs=("criteria",))
    ranked(at, pa.Table.from_pylist([row]))
    (found,) = read_ranked(out.place)
    assert (found["id"], len(found["ranking"]), found["n"]) == ("q7", 2, len(CORPUS))
    assert all("recent" in prompt for prompt in judge_lm.engine.prompts)


def test_results_of_another_program_are_not_mixed_in(out):
    out.claim("one")
    out.claim("one")
    with pytest.raises(InputError, match="another program"):
        out.claim("two")


def test_a_relative_folder_is_the_same_for_workers_that_stand_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Parts("ranked").place == str(tmp_path / "ranked")


def test_half_written_parts_are_swept_and_never_read(out):
    torn = out_path(out) / "ranked" / ".77-000001-x.parquet"
    torn.write_bytes(b"PAR1")
    assert list(read_ranked(out.place)) == []
    out.make()
    assert not torn.exists()


def test_a_part_that_is_no_parquet_is_named(out):
    (out_path(out) / "ranked" / "000001-x.parquet").write_text("text")
    with pytest.raises(DataError, match=r"000001-x\.parquet"):
        list(read_ranked(out.place))


def test_plain_readers_of_parquet_see_the_rankings(reranker, judge_lm, out):
    ranked(worker(reranker, judge_lm, out), table(QUERY, "another query"))
    assert pq.read_table(out_path(out) / "ranked").num_rows == 2


def test_keys_are_found_among_sorted_ones():
    keys = np.array(sorted(f"{number:032x}" for number in range(0, 100, 2)), "S32")
    assert has(keys, f"{42:032x}")
    assert not has(keys, f"{43:032x}")
    assert not has(keys, "f" * 32)
    assert not has(np.array([], "S32"), "0" * 32)


@pytest.mark.parametrize("step", [1, 7, 64, 1000])
def test_spans_of_a_file_give_each_line_once(step, tmp_path):
    path = tmp_path / "lines.jsonl"
    lines = ["", "a", "bb" * 20, "ü", "", "last without an end"]
    path.write_text("\n".join(lines), encoding="utf-8")
    size, found = os.path.getsize(path), []
    for begin in range(0, size, step):
        span = {"path": str(path), "begin": begin, "end": min(begin + step, size)}
        found += read_span(pa.Table.from_pylist([span]), str(path))[LINE].to_pylist()
    assert found == [line for line in lines if line]


def test_row_groups_of_parquet_are_read_apart(tmp_path):
    path = tmp_path / "queries.parquet"
    pq.write_table(table("a", "b", "c"), path, row_group_size=2)
    read = [
        [rows["query"].to_pylist() for rows in read_groups(piece, str(path))]
        for piece in (pa.table({"path": [str(path)], "group": [group]}) for group in range(2))
    ]
    assert read == [[["a", "b"]], [["c"]]]


def test_a_table_of_pairs_is_refused(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"query": ["a"], "text": ["b"]}), path)
    with pytest.raises(DataError, match="Group a table of pairs by query first"):
        dataset_of(path)


@pytest.mark.parametrize(("name", "error"), [("none.parquet", DataError), ("text.txt", InputError)])
def test_sources_that_cannot_be_read_are_named(name, error, tmp_path):
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(error, match=name):
        dataset_of(tmp_path / name)


def test_a_model_object_does_not_travel(reranker, judge_lm, tmp_path, monkeypatch):
    monkeypatch.setattr("dspy_rerank.integrations.ray.running._connect", lambda: None)
    with pytest.raises(InputError, match="does not travel"):
        rerank("queries.jsonl", tmp_path / "out", reranker, lm=judge_lm, workers=1)


def test_a_program_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dspy_rerank.integrations.ray.running._connect", lambda: None)
    with pytest.raises(ProgramError, match=r"none\.json: there is no such file"):
        rerank("queries.jsonl", tmp_path / "out", tmp_path / "none.json", lm="m", workers=1)


class Receipts:
    """A data set of receipts, as workers would send them."""

    def __init__(self, *summaries):
        self.given = [{RECEIPT: orjson.dumps(asdict(summary))} for summary in summaries]
        self.taken = 0

    def iter_rows(self):
        for row in self.given:
            self.taken += 1
            yield row


def test_a_run_counts_what_its_workers_have_done():
    used = Usage(calls=2, cost=0.5)
    done = Receipts(Summary(ranked=2, usage=used), Summary(ranked=1, skipped=3, usage=used))
    said = []
    total = followed(done, 20, lambda summary: said.append(summary.done))
    assert (total.ranked, total.skipped, total.usage.calls, total.spent) == (3, 3, 4, 1.0)
    assert said == [2, 6]


def test_rankings_without_one_answer_that_could_be_read_are_counted(reranker, out):
    at = worker(reranker, scripted_lm("I cannot say."), out)
    receipt = at(table(QUERY, "another query"))[RECEIPT][0].as_py()
    total = followed(Receipts(of_receipt(receipt)), 20, None)
    assert (total.ranked, total.unread, total.unknowns) == (2, 2, 2 * len(CORPUS))
    assert total.warning().startswith("in 2 of 2 rankings not one judgment could be read")


def test_a_run_ends_where_nothing_is_ranked_any_more():
    failing = Summary(failed=5, reasons=["gone"])
    receipts = Receipts(failing, Summary(ranked=1, failed=4), failing, failing, failing)
    with pytest.raises(ModelError, match=r"gone.*retry_failed=True"):
        followed(receipts, 10, None)
    assert receipts.taken == 4


class TestRates:
    def test_workers_draw_on_one_bucket(self):
        """Six a minute, so one at once: of three workers' requests each waits for those before."""
        rates, ten = Rates(), (6, None)
        waits = [rates.lease("judge", ten, [0], 0)[0] for _ in range(3)]
        assert [round(wait, -1) for wait in waits] == [0, 10, 20]

    def test_models_have_buckets_of_their_own(self):
        rates = Rates()
        rates.lease("judge", (6, None), [0, 0, 0], 0)
        assert rates.lease("other", (6, None), [0], 0) == [0]

    def test_tokens_beyond_the_estimate_are_booked_with_the_next_lease(self):
        rates = Rates()
        assert rates.lease("judge", (None, 600), [50], 0) == [0]
        (wait,) = rates.lease("judge", (None, 600), [50], 1000)
        assert round(wait, -1) == 100

    def test_a_refusal_holds_back_all_workers(self):
        rates = Rates()
        rates.refused("judge", (None, None), 30.0)
        (wait,) = rates.lease("judge", (None, None), [0], 0)
        assert 25 < wait <= 30

    def test_requests_that_wait_together_are_leased_together(self):
        near = Near()
        lease = Lease(near, "judge", Limit(6))

        async def five():
            return await asyncio.gather(*(lease.take(0) for _ in range(5)))

        waits = asyncio.run(five())
        assert [round(wait, -1) for wait in waits] == [0, 10, 20, 30, 40]
        assert near.leases == 1

    def test_without_a_rate_the_actor_is_asked_now_and_then_and_a_refusal_still_holds(self):
        near, now = Near(), [0.0]
        lease = Lease(near, "judge", Limit(), clock=lambda: now[0])

        async def asked():
            return [await lease.take(0) for _ in range(5)]

        assert asyncio.run(asked()) == [0.0] * 5
        assert near.leases == 1
        near.rates.refused("judge", (None, None), 30.0)
        now[0] = LOOK
        assert all(25 < wait <= 30 for wait in asyncio.run(asked()))

    def test_a_worker_that_was_refused_itself_asks_at_once(self):
        near = Near()
        lease = Lease(near, "judge", Limit(), clock=lambda: 0.0)

        async def asked():
            await lease.take(0)
            lease.refused(30.0)
            await asyncio.sleep(0)
            return await lease.take(0)

        assert 25 < asyncio.run(asked()) <= 30

    def test_a_refusal_is_not_forgotten_for_a_lease_that_was_under_way(self):
        lease = Lease(Near(), "judge", Limit(), clock=lambda: 0.0)

        async def asked():
            before = asyncio.create_task(lease.take(0))
            for _ in range(2):
                await asyncio.sleep(0)
            lease.refused(30.0)
            assert await before == 0.0
            return await lease.take(0)

        assert 25 < asyncio.run(asked()) <= 30

    def test_an_actor_that_is_gone_is_an_error_for_each_who_waits(self):
        class Gone:
            @property
            def lease(self):
                def dies(*_):
                    raise ConnectionError("gone")

                return Remote(dies)

        lease = Lease(Gone(), "judge", Limit(6))

        async def two():
            return await asyncio.gather(lease.take(0), lease.take(0), return_exceptions=True)

        assert [str(error) for error in asyncio.run(two())] == ["gone", "gone"]

    def test_a_model_asks_its_pool_and_reports_answers_and_refusals(self):
        near, lm = Near(), scripted_lm("2")
        set_limit(lm, rpm=600, tpm=60_000)
        share(lm, near, workers=2)
        limit = limit_of(lm)

        async def ask():
            async with limit.turn(10):
                limit.correct(10, 25)
            limit.refused(1.0)
            await asyncio.sleep(0)

        asyncio.run(ask())
        assert (near.leases, near.refusals, limit.pool._owed) == (1, 1, 15)

    def test_places_are_dealt_out(self):
        lm = scripted_lm("2", model="scripted/places")
        set_limit(lm, at_once=7)
        share(lm, Near(), workers=3)
        assert limit_of(lm).at_once == 2

    def test_fewer_places_than_workers_are_refused(self):
        lm = scripted_lm("2", model="scripted/few")
        set_limit(lm, at_once=1)
        with pytest.raises(InputError, match="give workers=1"):
            share(lm, Near(), workers=2)
