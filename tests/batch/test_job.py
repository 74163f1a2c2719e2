"""Jobs against a fake provider over HTTP, through the real LiteLLM."""

import json

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DataError, InputError, ModelError
from dspy_rerank.testing import completion, oracle_answers
from tests.batch.data import KEY, PRICE, lines
from tests.batch.running import as_run, begun, live, run_of, waited
from tests.batch.server import BatchServer, refused


def test_topdown_ranks_all_queries_in_three_batches(tmp_path, queries, config, grades):
    with BatchServer(grades, looks=2) as server:
        path = config(server)
        job = waited(tmp_path, queries, path)
        assert len(server.batches) == 3
        assert server.live == 0
        assert run_of(job, tmp_path) == as_run(live(queries, path))
    assert job.status().rounds == 3


def test_usage_is_that_of_live_calls_at_the_price_for_batches(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        path = config(server, input_cost_per_token=9, output_cost_per_token=9, **PRICE)
        job = waited(tmp_path, queries, path)
        expected = live(queries, path)
    for result in job.results():
        used, there = result["usage"], expected[result["id"]].usage
        for name in ("calls", "rounds", "passages_read", "prompt_tokens", "completion_tokens"):
            assert used[name] == getattr(there, name), name
        cost = used["prompt_tokens"] * 1e-6 + used["completion_tokens"] * 2e-6
        assert used["cost"] == pytest.approx(cost)
        assert used["failed_calls"] == used["cached_calls"] == 0
    total = sum(result["usage"]["cost"] for result in job.results())
    assert job.status().cost == pytest.approx(total)


def test_log_probabilities_count_as_in_live_calls(tmp_path, few, config, grades):
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="logprobs"))
    whole = {passage: round(grade) for passage, grade in grades.items()}
    with BatchServer(whole) as server:
        path = config(server)
        job = waited(tmp_path, few, path, sorter)
        assert all(body["logprobs"] and body["top_logprobs"] for body in server.requests)
        expected = live(few, path, sorter)
    for result in job.results():
        there = expected[result["id"]]
        assert [row["score"] for row in result["ranking"]] == there.scores
        assert [row["confidence"] for row in result["ranking"]] == [r.confidence for r in there]
        assert None not in [row["confidence"] for row in result["ranking"]]


def test_refused_log_probabilities_are_left_out_in_a_later_round(tmp_path, few, config, grades):
    def line(body, before):
        return refused(400, "logprobs is not supported") if body.get("logprobs") else None

    sorter = dr.ScoreSort(dr.PointwiseJudge())
    with BatchServer(grades, line=line) as server:
        path = config(server)
        job = waited(tmp_path, few, path, sorter)
        assert run_of(job, tmp_path) == as_run(live(few, path, sorter))
    assert job.status().rounds == 3  # with 20 alternatives a token, with 5, without
    assert job.status().degraded == 0


def test_an_unreadable_answer_is_asked_again_in_the_next_batch(tmp_path, few, config, grades):
    right = oracle_answers(grades)

    def say(asked):
        return right(asked) if "could not be read" in asked.prompt else completion("no idea")

    with BatchServer(grades, say=say) as server:
        path = config(server)
        job = waited(tmp_path, few, path)
        assert run_of(job, tmp_path) == as_run(live(few, path))
        assert len(server.batches) == 2
    assert [result["unknowns"] for result in job.results()] == [0, 0]


def test_votes_are_requests_of_their_own(tmp_path, few, config, grades):
    sorter = dr.ScoreSort(dr.PointwiseJudge(votes=3))
    with BatchServer(grades) as server:
        path = config(server)
        job = waited(tmp_path, few, path, sorter)
        assert len(server.requests) == 2 * 6 * 3
        assert run_of(job, tmp_path) == as_run(live(few, path, sorter))
    assert [result["usage"]["cached_calls"] for result in job.results()] == [0, 0]


LOST = {
    "failing": refused(500, "overloaded"),
    "busy": refused(429, "slow down"),
    "missing": "missing",
    "nothing": {"response": {"status_code": 200, "body": {}}, "error": None},
}


@pytest.mark.parametrize("how", LOST)
def test_lost_lines_are_sent_again(tmp_path, queries, config, grades, how):
    def line(body, before):
        unlucky = sum(map(ord, body["messages"][-1]["content"])) % 3 == 0
        return LOST[how] if unlucky and not before else None

    with BatchServer(grades, line=line) as server:
        path = config(server)
        job = waited(tmp_path, queries, path)
        assert run_of(job, tmp_path) == as_run(live(queries, path))
        lost = len(server.requests) - job.status().requests
    assert lost > 0
    assert sum(result["usage"]["failed_calls"] for result in job.results()) == lost
    assert job.status().degraded == 0


def test_what_an_expired_batch_has_not_done_is_sent_again(tmp_path, queries, config, grades):
    with BatchServer(grades, ends=lambda n: "completed" if n else "expired") as server:
        path = config(server)
        job = waited(tmp_path, queries, path)
        assert run_of(job, tmp_path) == as_run(live(queries, path))
        assert len(server.requests) == job.status().requests + len(server.batches[0].lines) // 2


def test_a_line_that_fails_to_the_end_degrades_its_query_only(tmp_path, queries, config, grades):
    def line(body, before):
        return refused(500, "overloaded") if "what is 3" in str(body["messages"]) else None

    with BatchServer(grades, line=line) as server:
        path = config(server)
        job = waited(tmp_path, queries, path, attempts=2)
        expected = live(queries, path)
    results = {result["id"]: result for result in job.results()}
    assert [name for name, result in results.items() if result["degraded"]] == ["q3"]
    assert [row["index"] for row in results["q3"]["ranking"]] == list(range(50))
    assert "overloaded" in results["q3"]["reasons"][0]
    for name in set(results) - {"q3"}:
        assert [row["index"] for row in results[name]["ranking"]] == expected[name].indices
    assert job.status().degraded == 1
    assert "overloaded" in job.reasons()[0]


def test_a_refused_request_is_not_sent_again(tmp_path, few, config, grades):
    def line(body, before):
        return refused(400, "maximum context length is 10") if "what is 1" in str(body) else None

    with BatchServer(grades, line=line) as server:
        job = waited(tmp_path, few, config(server))
        assert len(server.batches) == 1
    assert [result["degraded"] for result in job.results()] == [False, True]


def test_a_batch_that_is_refused_as_a_whole_is_for_a_person_to_see(tmp_path, few, config, grades):
    with BatchServer(grades, ends=lambda n: "completed" if n > 1 else "failed") as server:
        path = config(server)
        job = begun(tmp_path, few, path, attempts=1)
        for _ in range(2):
            with pytest.raises(ModelError, match="Enqueued token limit"):
                job.wait(every=0)
        job.wait(every=0)
        assert run_of(job, tmp_path) == as_run(live(few, path))
    assert sum(result["usage"]["failed_calls"] for result in job.results()) == 0


def test_files_stay_within_the_limits(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        path = config(server)
        job = waited(tmp_path, queries, path, requests=10, size=20_000)
        rounds, sizes = job.status().rounds, [len(server.files[b.file]) for b in server.batches]
        assert max(len(batch.lines) for batch in server.batches) <= 10
        assert max(sizes) <= 20_000
        assert run_of(job, tmp_path) == as_run(live(queries, path))
    assert rounds == 3
    assert len(server.batches) > 3


def test_equal_queries_are_asked_once(tmp_path, config, grades):
    record = json.loads(lines(1, documents=6))
    with BatchServer(grades) as server:
        job = waited(tmp_path, [record, {**record, "id": "again"}], config(server, **PRICE))
        asked = len(server.requests)
    first, second = job.results()
    assert asked == first["usage"]["calls"] == second["usage"]["cached_calls"]
    assert second["usage"]["prompt_tokens"] == second["usage"]["cost"] == 0
    assert [r["index"] for r in first["ranking"]] == [r["index"] for r in second["ranking"]]


def test_money_is_not_spent_beyond_the_limit(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        path = config(server, **PRICE)
        job = begun(tmp_path, queries, path, max_cost=0.01)
        with pytest.raises(InputError, match=r"may cost \$0\.\d+.*Nothing was sent"):
            job.advance()
        assert server.log == []
        job.wait(every=0, max_cost=5)
        assert run_of(job, tmp_path) == as_run(live(queries, path))
        assert all(body["max_tokens"] == 2048 for body in server.requests)
    assert 0 < job.status().cost < 5


def test_the_limit_holds_for_later_rounds(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        path = config(server, **PRICE)
        job = begun(tmp_path, queries, path, max_cost=0)
        with pytest.raises(InputError, match="are spent"):
            job.advance()
        limit = 1.01 * job.status().worst
        with pytest.raises(InputError, match="are spent"):
            job.wait(every=0, max_cost=limit)
        assert len(server.batches) == 1
    assert job.status().cost + job.status().worst > limit > job.status().cost > 0


def test_a_limit_needs_a_price(tmp_path, few, config, grades):
    with BatchServer(grades) as server:
        job = begun(tmp_path, few, config(server), max_cost=1)
        with pytest.raises(InputError, match="input_cost_per_token_batches"):
            job.advance()
        assert server.log == []


def test_no_key_is_in_the_folder_and_the_provider_gets_it(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        job = begun(tmp_path, queries, config(server))
        job.advance()
        assert {h["authorization"] for h in server.headers} == {f"Bearer {KEY}"}
        kept = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
        assert len(kept) > 10_000
        assert KEY.encode() not in kept
        job.wait(every=0)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert KEY.encode() not in kept


def test_an_error_shows_no_key(tmp_path, few, config, grades):
    said = (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with BatchServer(grades, reply=lambda n, what: said) as server:
        job = begun(tmp_path, few, config(server))
        with pytest.raises(ModelError, match="the upload failed") as caught:
            job.advance()
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.__cause__)


@pytest.mark.parametrize("what", ["POST /files", "POST /batches", "GET /batches/", "GET /files/"])
def test_a_provider_that_fails_for_a_while_is_waited_for(tmp_path, few, config, grades, what):
    failed = []

    def reply(number, asked):
        if asked.startswith(what) and len(failed) < 2:
            failed.append(asked)
            return 400 if what == "POST /files" else 503, {"error": {"message": "down"}}
        return None

    with BatchServer(grades, reply=reply) as server:
        path = config(server)
        job = begun(tmp_path, few, path)
        while not job.status().finished:
            try:
                job.wait(every=0)
            except ModelError:
                assert what == "POST /files"  # a refusal is not waited out
        assert run_of(job, tmp_path) == as_run(live(few, path))
        assert len(server.batches) == 1
    assert len(failed) == 2


def test_a_batch_whose_creation_got_no_answer_is_not_bought_twice(tmp_path, few, config, grades):
    lost = []

    def after(number, asked):
        if asked == "POST /batches" and not lost:
            lost.append(asked)
            for _ in range(5):  # others of the same account
                server._created({"endpoint": "/v1/chat/completions", "input_file_id": "file-0"})
            raise ConnectionError

    with BatchServer(grades, after=after, page=2) as server:
        path = config(server)
        job = begun(tmp_path, few, path)
        job.wait(every=0)
        assert run_of(job, tmp_path) == as_run(live(few, path))
        assert server.count("POST /batches") == 1
        assert server.count("GET /batches") > 3


def test_a_second_process_is_told_to_wait(tmp_path, few, config, grades):
    from dspy_rerank.batch.lock import locked

    with BatchServer(grades) as server:
        job = begun(tmp_path, few, config(server))
        with locked(tmp_path / "state"), pytest.raises(InputError, match="another process"):
            job.advance()
        assert server.log == []


def test_a_folder_has_one_job(tmp_path, few, queries, config, grades):
    with BatchServer(grades) as server:
        path = config(server)
        begun(tmp_path, few, path).close()
        begun(tmp_path, few, path).close()
        with pytest.raises(InputError, match="other queries"):
            begun(tmp_path, queries, path)
        with pytest.raises(InputError, match="another program"):
            begun(tmp_path, few, path, dr.ScoreSort(dr.PointwiseJudge()))
        with pytest.raises(InputError, match="another top_k"):
            begun(tmp_path, few, path, top_k=3)
    with BatchServer(grades) as other, pytest.raises(InputError, match="another api_base"):
        dr.batch.resume(tmp_path / "state", config=config(other))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"query": "a"}', "line 2: documents are NoneType"),
        ('{"query": " ", "documents": []}', "line 2: query is blank"),
        ('{"query": "a", "documents": [1]}', r"line 2: documents\[0\] is int"),
        ('{"query": "a", "documents": ["b"], "top_k": -1}', "line 2: top_k is -1"),
        ('{"query": "a", "documents": ["b"], "id": "q0"}', "line 2: the id 'q0' was there"),
        ('{"query": "a", "documents": ["b"], "id": "a b"}', "line 2: the id 'a b' holds"),
        ("[]", "line 2: expected a JSON object"),
    ],
)
def test_a_query_that_cannot_be_used_is_named(tmp_path, config, grades, line, why):
    path = tmp_path / "queries.jsonl"
    path.write_text(lines(1) + line + "\n")
    with BatchServer(grades) as server:
        with pytest.raises(DataError, match=why):
            begun(tmp_path, path, config(server))
        path.write_text(lines(1))
        assert begun(tmp_path, path, config(server)).status().queries == 1


def test_an_input_that_a_query_lacks_is_named_before_anything_is_sent(
    tmp_path, few, config, grades
):
    sorter = dr.ScoreSort(dr.PointwiseJudge("query, passage, criteria -> grade: float"))
    with BatchServer(grades) as server:
        job = begun(tmp_path, few, config(server), sorter)
        with pytest.raises(InputError, match="criteria"):
            job.advance()
        assert server.log == []


def test_a_job_of_an_lm_object_needs_it_again(tmp_path, few, grades):
    with BatchServer(grades) as server:
        lm = dr.models.direct(server.base_url, model="m", api_key=KEY)
        dr.batch.begin(tmp_path / "state", few, lm=lm).close()
        with pytest.raises(InputError, match="pass it again"):
            dr.batch.resume(tmp_path / "state")
        job = dr.batch.resume(tmp_path / "state", lm=lm)
        assert job.wait(every=0).finished
        assert {h["authorization"] for h in server.headers} == {f"Bearer {KEY}"}


def test_results_are_written_whole_and_in_order(tmp_path, queries, config, grades):
    with BatchServer(grades) as server:
        job = waited(tmp_path, queries, config(server), top_k=3)
    assert job.write(tmp_path / "results.jsonl") == 6
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [result["id"] for result in found] == [f"q{n}" for n in range(6)]
    assert {len(result["ranking"]) for result in found} == {3}
    assert "text" not in found[0]["ranking"][0]
    assert job.status().to_dict()["finished"]


def test_documents_with_one_id_are_ranked_and_no_run_can_carry_them(tmp_path, config, grades):
    path = tmp_path / "queries.jsonl"
    documents = [{"id": "same", "text": text} for text in ("worth 1", "worth 3", "worth 2")]
    path.write_text(json.dumps({"id": "q0", "query": "a", "documents": documents}) + "\n")
    with BatchServer(grades) as server:
        job = waited(tmp_path, path, config(server))
    assert job.write(tmp_path / "results.jsonl") == 1
    found = json.loads((tmp_path / "results.jsonl").read_text())
    assert sorted(row["index"] for row in found["ranking"]) == [0, 1, 2]
    with pytest.raises(DataError, match=r"query q0: .*another's, too.*ends in \.jsonl"):
        job.write(tmp_path / "x.run")
    assert not (tmp_path / "x.run").exists()
