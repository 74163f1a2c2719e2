"""Answers and errors on the wire."""

import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

import dspy_rerank as dr
from dspy_rerank.server import Program
from tests.server.harness import DOCUMENTS, scored, serving


def order(response):
    assert response.status_code == 200, response.text
    return [result["index"] for result in response.json()["results"]]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_come_back_best_first(post, path):
    response = post(path, query="q", documents=DOCUMENTS)
    assert order(response) == [1, 2, 0]
    body = response.json()
    assert body["meta"]["api_version"] == {"version": path[2]}
    assert body["id"] == response.headers["x-request-id"]


def test_the_model_names_the_program(post):
    documents = ["a 3", "b 2", "c 1"]
    assert order(post(query="q", documents=documents, model="numbers")) == [0, 1, 2]
    assert order(post(query="q", documents=documents, model="backwards")) == [2, 1, 0]
    assert order(post(query="q", documents=documents)) == [0, 1, 2]


@pytest.mark.parametrize(("top_n", "expected"), [(1, [1]), (2, [1, 2]), (9, [1, 2, 0])])
def test_top_n_cuts_and_never_fails_above_the_number_of_documents(post, top_n, expected):
    assert order(post(query="q", documents=DOCUMENTS, top_n=top_n)) == expected


def test_relevance_does_not_depend_on_top_n(post):
    for model in ("numbers", "backwards"):
        whole = post(query="q", documents=DOCUMENTS, model=model).json()["results"]
        cut = post(query="q", documents=DOCUMENTS, model=model, top_n=2).json()["results"]
        assert cut == whole[:2]


def test_equal_documents_stay_different_documents(post):
    assert order(post(query="q", documents=["a 1", "a 1", "a 1", "b 2"])) == [3, 0, 1, 2]


def test_objects_are_read_by_their_text_and_returned_as_they_came(post):
    documents = [{"text": "x 1", "id": "p", "n": 4}, {"text": "y 2", "id": "p"}, "z 0"]
    response = post(query="q", documents=documents, return_documents=True)
    assert order(response) == [1, 0, 2]
    returned = [result["document"] for result in response.json()["results"]]
    assert returned == [documents[1], documents[0], {"text": "z 0"}]


def test_documents_are_returned_only_where_asked_for(post):
    response = post("/v1/rerank", query="q", documents=DOCUMENTS)
    assert all(set(result) == {"index", "relevance_score"} for result in response.json()["results"])


def test_several_fields_are_read_in_the_order_asked_for(post):
    documents = [{"title": "a", "grade": 1, "left out": 9}, {"title": "b", "grade": 2}]
    response = post(
        query="q", documents=documents, rank_fields=["title", "grade"], return_documents=True
    )
    assert order(response) == [1, 0]
    assert response.json()["results"][0]["document"] == {**documents[1], "text": "title: b\ngrade: 2\n"}  # fmt: skip # noqa: E501


def test_what_only_others_need_is_accepted(post):
    extra = {"max_chunks_per_doc": 10, "max_tokens_per_doc": 4096, "priority": 0, "truncation": 1}
    assert order(post("/v1/rerank", query="q", documents=DOCUMENTS, **extra)) == [1, 2, 0]


def test_the_answer_says_what_its_relevance_means(post):
    squashed = post(query="q", documents=DOCUMENTS).json()
    placed = post(query="q", documents=DOCUMENTS, model="backwards").json()
    assert squashed["meta"]["dspy_rerank"]["relevance_score"] == "logistic"
    assert squashed["meta"]["dspy_rerank"]["scores"] == [3.0, 2.0, 1.0]
    assert "warnings" not in squashed["meta"]
    assert placed["meta"]["dspy_rerank"]["relevance_score"] == "rank"
    assert placed["meta"]["dspy_rerank"]["confidence"] == [None, None, None]
    assert [r["relevance_score"] for r in placed["results"]] == [1.0, 2 / 3, 1 / 3]
    assert "place only" in placed["meta"]["warnings"][0]


def test_the_answer_says_what_it_cost(post):
    body = post(query="q", documents=DOCUMENTS).json()
    assert body["meta"]["dspy_rerank"]["usage"]["calls"] == 3
    assert body["meta"]["billed_units"] == {
        "input_tokens": 0, "output_tokens": 0, "total_tokens": 0,
    }  # fmt: skip


def test_judgments_come_with_explain_only(post):
    silent = post(query="q", documents=DOCUMENTS).json()["meta"]["dspy_rerank"]
    told = post(query="q", documents=DOCUMENTS, explain=True).json()["meta"]["dspy_rerank"]
    assert "judgments" not in silent
    assert [judgment["group"] for judgment in told["judgments"]] == [[0], [1], [2]]


BAD = [
    ({"query": "q"}, "documents: Field required"),
    ({"documents": ["a"]}, "query: Field required"),
    ({"query": "q", "documents": []}, "documents: List should have at least 1 item"),
    ({"query": " ", "documents": ["a"]}, "query must not be empty"),
    ({"query": 5, "documents": ["a"]}, "query: Input should be a valid string"),
    ({"query": "q", "documents": "a"}, "documents: Input should be a valid list"),
    ({"query": "q", "documents": ["a", None]}, "documents[1]: Input should be a valid string"),
    ({"query": "q", "documents": [{"body": "a"}]}, "documents[0] has no field 'text'"),
    ({"query": "q", "documents": [{"text": "a"}], "rank_fields": ["x"]}, "has no field 'x'"),
    ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n: Input should be greater"),
    ({"query": "q", "documents": ["a"], "top_n": True}, "top_n: Input should be a valid integer"),
    ({"query": "q", "documents": ["a"], "top_n": "2"}, "top_n: Input should be a valid integer"),
    ({"query": "q", "documents": ["a"], "inputs": {"x": 1}}, "inputs.x: Input should be a valid"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), BAD)
def test_what_cannot_be_used_is_named_without_quoting_it(post, body, said):
    response = post(**body)
    assert response.status_code == 400
    assert said in response.json()["message"]
    assert response.json()["detail"] == response.json()["message"]


def test_an_unknown_model_is_not_found_and_looked_for_nowhere(post):
    for name in ("nope", "../../etc/passwd", "/etc/passwd", "numbers/../numbers", "", "\x00"):
        response = post(query="q", documents=["a"], model=name)
        assert response.status_code == 404
        assert "numbers, backwards" in response.json()["message"]


def test_further_inputs_reach_the_judge():
    def judge(query, passages, criteria):
        return float(passages[0].split()[-1]) * (-1 if criteria == "worst" else 1)

    with serving(scored(fn=judge)) as url:
        body = {"query": "q", "documents": DOCUMENTS, "inputs": {"criteria": "worst"}}
        assert order(httpx.post(f"{url}/v2/rerank", json=body)) == [0, 2, 1]


def test_a_missing_or_unknown_input_is_the_clients_mistake():
    signature = "query, criteria, passage -> grade: float"
    program = Program("p", dr.ScoreSort(dr.PointwiseJudge(signature, evidence="generate")))
    with serving(program) as url:
        for inputs, said in (
            ({}, "needs criteria"),
            ({"criteria": "c", "x": "y"}, "unknown input"),
        ):
            body = {"query": "q", "documents": ["a"], "inputs": inputs}
            response = httpx.post(f"{url}/v2/rerank", json=body)
            assert response.status_code == 400
            assert said in response.json()["message"]
        assert httpx.get(f"{url}/programs").json()["programs"][0]["inputs"] == ["criteria"]


def test_a_program_without_a_model_cannot_answer():
    program = Program("p", dr.ScoreSort(dr.PointwiseJudge()))
    with serving(program) as url:
        response = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["a"]})
    assert response.status_code == 503
    assert "it has no language model" in response.json()["message"]


def failing(query, passages):
    raise RuntimeError("the key sk-12345 is wrong")


def test_a_failing_judge_gives_the_incoming_order_and_says_so_without_its_words():
    with serving(scored(fn=failing)) as url:
        response = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": DOCUMENTS})
    assert order(response) == [0, 1, 2]
    assert response.json()["meta"]["dspy_rerank"]["degraded"] is True
    assert response.json()["meta"]["warnings"][0] == (
        "degraded: the language model failed (RuntimeError)"
    )
    assert "sk-12345" not in response.text


def test_a_program_that_raises_on_failure_gives_502_without_the_words():
    with serving(scored(fn=failing, on_error="raise")) as url:
        response = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": DOCUMENTS})
    assert response.status_code == 502
    assert "RuntimeError" in response.json()["message"]
    assert "sk-12345" not in response.text


def test_a_mistake_of_the_services_gives_500_in_the_same_form(monkeypatch):
    from dspy_rerank.server import app

    monkeypatch.setattr(app, "texts_of", lambda request: 1 / 0)
    with serving(scored()) as url:
        response = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": DOCUMENTS})
    assert response.status_code == 500
    assert set(response.json()) == {"id", "message", "detail"}


def test_the_watching_routes_answer(url):
    assert httpx.get(f"{url}/health").json() == {"status": "ok"}
    ready = httpx.get(f"{url}/ready").json()
    assert ready == {"status": "ready", "programs": {
        "numbers": {"running": 0, "waiting": 0}, "backwards": {"running": 0, "waiting": 0},
    }}  # fmt: skip
    described = httpx.get(f"{url}/programs").json()["programs"]
    assert described[0] == {
        "name": "numbers", "sorter": "ScoreSort", "judge": "pointwise", "model": None,
        "inputs": [], "compiled": False,
    }  # fmt: skip
    assert httpx.head(f"{url}/health").status_code == 200


def test_the_numbers_add_up():
    with serving(scored()) as url:
        httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": DOCUMENTS})
        httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": []})
        text = httpx.get(f"{url}/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    route = 'route="/v2/rerank"'
    assert lines[f'dspy_rerank_requests_total{{program="numbers",{route},status="200"}}'] == "1.0"
    assert lines[f'dspy_rerank_requests_total{{program="",{route},status="400"}}'] == "1.0"
    calls = 'dspy_rerank_model_calls_total{outcome="paid",program="numbers"}'
    assert lines[calls] == "3.0"
    assert lines['dspy_rerank_documents_sum{program="numbers"}'] == "3.0"


def test_max_tokens_per_doc_cuts_and_says_so():
    seen = []

    def judge(query, passages):
        seen.append(passages[0])
        return 1.0

    long = "word " * 400
    with serving(scored(fn=judge)) as url:
        body = {"query": "q", "documents": [long, "short"], "max_tokens_per_doc": 20}
        answer = httpx.post(f"{url}/v2/rerank", json=body).json()
    assert answer["meta"]["dspy_rerank"]["truncated"] == [0]
    assert max(map(len, seen)) < len(long) / 2


def test_the_log_has_facts_and_no_words(caplog):
    with caplog.at_level("DEBUG", "dspy_rerank.server"), serving(scored()) as url:
        body = {"query": "secret query", "documents": ["secret passage 1"], "model": "secret name"}
        httpx.post(f"{url}/v2/rerank", json=body, headers={"authorization": "Bearer secret"})
        body["model"] = "numbers"
        httpx.post(f"{url}/v2/rerank?secret=1", json=body)
        httpx.get(f"{url}/secret")
    facts = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert "secret" not in json.dumps(facts)
    assert [(fact.get("status"), fact.get("route")) for fact in facts if "status" in fact] == [
        (404, "/v2/rerank"), (200, "/v2/rerank"), (404, "other"),
    ]  # fmt: skip
    assert facts[1]["program"] == "numbers"
    assert facts[1]["calls"] == 1


def test_the_example_of_the_documentation_runs():
    page = Path(__file__).parents[2] / "docs" / "serving.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(compile(block, str(page), "exec"), names)
    client = TestClient(names["app"], headers={"authorization": "Bearer a-key-of-at-least-16-characters"})  # fmt: skip # noqa: E501
    body = {"model": "longest", "query": "q", "documents": ["a", "a longer one"]}
    assert order(client.post("/v2/rerank", json=body)) == [1, 0]
