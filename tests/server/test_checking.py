"""``/ready?ask=1``: whether models answer, asked seldom and never twice at once."""

import asyncio

import httpx
import pytest

import dspy_rerank as dr
from dspy_rerank.server import Program, checking
from dspy_rerank.testing import FaultServer, faults, scripted_lm
from tests.server.harness import scored, serving

KEY = "a-key-of-enough-characters"
SECRET = "sk-canary-1234567890"


def program(lm, name="p", judge=None):
    asked = judge or dr.PointwiseJudge(evidence="generate")
    return Program(name, dr.ScoreSort(asked), lm)


def checked(url, **more):
    return httpx.get(f"{url}/ready?ask=1", timeout=30, **more)


def test_nothing_is_asked_by_default():
    lm = scripted_lm("2")
    with serving(program(lm)) as url:
        assert httpx.get(f"{url}/ready").status_code == 200
        assert httpx.get(f"{url}/ready?ask=0").status_code == 200
    assert lm.engine.prompts == []


def test_one_question_is_asked_and_its_outcome_holds_for_a_while():
    lm = scripted_lm("2")
    with serving(program(lm)) as url:
        said = [checked(url).json() for _ in range(3)]
    assert said == [{"status": "ready", "programs": {"p": {"running": 0, "waiting": 0}}}] * 3
    assert len(lm.engine.prompts) == 1


def test_it_is_asked_again_when_the_outcome_is_old_and_no_cache_answers(monkeypatch):
    monkeypatch.setattr(checking, "FRESH", 0.0)
    lm = scripted_lm("2", cache=True)
    with serving(program(lm)) as url:
        assert [checked(url).status_code for _ in range(3)] == [200] * 3
    assert len(lm.engine.prompts) == 3


def test_never_two_at_a_time(monkeypatch):
    monkeypatch.setattr(checking, "FRESH", 5.0)
    lm = scripted_lm("2", latency=0.2)

    async def many(url):
        async with httpx.AsyncClient(timeout=30) as client:
            return await asyncio.gather(*(client.get(f"{url}/ready?ask=1") for _ in range(20)))

    with serving(program(lm)) as url:
        answers = asyncio.run(many(url))
    assert {answer.status_code for answer in answers} == {200}
    assert len(lm.engine.prompts) == 1


def test_programs_of_one_model_share_a_question_and_others_have_their_own():
    lm, other = scripted_lm("2"), scripted_lm("A")
    programs = [program(lm), program(lm, "same"), program(other, "pairs")]
    programs[2] = Program("pairs", dr.AllPairs(dr.PairwiseJudge(evidence="generate")), other)
    with serving(*programs, scored()) as url:
        assert checked(url).status_code == 200
    assert (len(lm.engine.prompts), len(other.engine.prompts)) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(faults.unauthorized(), "LMAuthError"), (faults.status(500), "LMServerError")],
)
def test_a_model_that_fails_is_not_ready_and_its_words_are_not_told(fault, kind):
    with FaultServer("2", faults=fault) as server:
        lm = dr.models.direct(server.base_url, model="m", api_key=SECRET, num_retries=0)
        with serving(program(lm)) as url:
            plain, answer = httpx.get(f"{url}/ready"), checked(url)
    assert plain.status_code == 200
    assert answer.status_code == 503
    said = f"not ready: program 'p': its language model failed ({kind})"
    assert answer.json()["message"] == said
    assert SECRET not in answer.text


def test_a_model_that_is_not_there_is_not_ready():
    lm = dr.models.direct("http://127.0.0.1:9/v1", model="m", num_retries=0)
    with serving(program(lm)) as url:
        answer = checked(url)
    assert (answer.status_code, "(LMTransportError)" in answer.text) == (503, True)


def test_a_model_that_hangs_is_given_up_and_comes_back(monkeypatch):
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    monkeypatch.setattr(checking, "FRESH", 0.0)
    lm = scripted_lm("2", latency=60)
    with serving(program(lm)) as url:
        late = checked(url)
        lm.engine.latency = 0.0
        assert checked(url).status_code == 200
    assert late.status_code == 503
    assert "has not answered within 0.2 s" in late.json()["message"]


def test_models_are_asked_at_the_same_time():
    with FaultServer("2", latency=0.5) as server:
        lms = {name: dr.models.direct(server.base_url, model=name) for name in "abcd"}
        with serving(*(program(lm, name) for name, lm in lms.items())) as url:
            assert checked(url).status_code == 200
    assert (server.requests, server.most_in_flight) == (4, 4)


def test_every_program_whose_model_fails_is_named(monkeypatch):
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    hanging = [program(scripted_lm("2", latency=60), name) for name in "ab"]
    with serving(*hanging, program(scripted_lm("2"), "c")) as url:
        message = checked(url).json()["message"]
    late = "its language model has not answered within 0.2 s"
    assert message == f"not ready: program 'a': {late}; program 'b': {late}"


def test_an_answer_that_cannot_be_read_is_an_answer():
    with serving(program(scripted_lm("I would rather not."))) as url:
        assert checked(url).status_code == 200


def test_further_inputs_of_a_signature_are_filled_in():
    judge = dr.PointwiseJudge("query, criteria, passage -> grade: float", evidence="generate")
    lm = scripted_lm("2")
    with serving(program(lm, judge=judge)) as url:
        assert checked(url).status_code == 200
    assert len(lm.engine.prompts) == 1


def test_each_judge_of_a_panel_asks_its_model():
    lm = scripted_lm("2")
    first, second = dr.PointwiseJudge(evidence="generate"), dr.PointwiseJudge(evidence="generate")
    second.set_lm(other := scripted_lm("1"))
    with serving(program(lm, judge=dr.Panel([first, second]))) as url:
        assert checked(url).status_code == 200
    assert (len(lm.engine.prompts), len(other.engine.prompts)) == (1, 1)


def test_asking_needs_the_key_where_there_is_one():
    lm = scripted_lm("2")
    with serving(program(lm), keys=[KEY]) as url:
        assert httpx.get(f"{url}/ready").status_code == 200
        assert httpx.get(f"{url}/ready?ask=0").status_code == 200
        assert httpx.get(f"{url}/ready?probe=lb").status_code == 200
        assert checked(url).status_code == 401
        assert httpx.get(f"{url}/ready?ask=0&%61sk=1").status_code == 401
        assert lm.engine.prompts == []
        assert checked(url, headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_its_calls_are_counted():
    with serving(program(scripted_lm("2"))) as url:
        checked(url)
        text = httpx.get(f"{url}/metrics").text
    assert 'dspy_rerank_model_calls_total{outcome="paid",program="p"} 1.0' in text


def test_its_failures_are_counted(monkeypatch):
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    refused = dr.models.direct("http://127.0.0.1:9/v1", model="m", num_retries=0)
    late = scripted_lm("2", latency=60)
    with serving(program(refused, "refused"), program(late, "late")) as url:
        checked(url)
        text = httpx.get(f"{url}/metrics").text
    for name in ("refused", "late"):
        assert f'dspy_rerank_model_calls_total{{outcome="failed",program="{name}"}} 1.0' in text


def test_where_there_is_no_model_nothing_is_counted():
    with serving(program(None)) as url:
        answer = checked(url)
        text = httpx.get(f"{url}/metrics").text
    assert (answer.status_code, "(NoModelError)" in answer.text) == (503, True)
    assert 'dspy_rerank_model_calls_total{outcome="failed"' not in text


def test_what_is_no_choice_is_the_clients_mistake():
    with serving(scored()) as url:
        answer = httpx.get(f"{url}/ready?ask=yes")
    assert answer.status_code == 400
    assert answer.json()["message"] == "invalid request: ask is neither 0 nor 1"


def test_a_service_that_ends_asks_nobody():
    from fastapi.testclient import TestClient

    from dspy_rerank.server import create_app

    lm = scripted_lm("2")
    app = create_app([program(lm)])
    app.state.service.draining = True
    client = TestClient(app, base_url="http://localhost")
    assert client.get("/ready?ask=1").status_code == 503
    assert lm.engine.prompts == []
