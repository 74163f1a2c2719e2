"""The engine for OpenAI-compatible servers, against a scripted one on loopback."""

import asyncio
import copy
import json
import pickle

import dspy
import pytest
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMAuthError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
)

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.models.direct import AsyncDirectEngine, DirectEngine

CANARY = "sk-canary-1234567890"


def lm_of(server, **options):
    return dr.models.direct(server.url, model="m", **{"num_retries": 0, "cache": False, **options})


def test_a_call_sends_one_plain_request(serve):
    server = serve()
    assert lm_of(server, api_key=CANARY)("hello", max_tokens=3) == ["A"]
    (asked,) = server.asked
    assert asked["body"] == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 3,
        "temperature": 0.0,
    }
    assert asked["headers"]["Authorization"] == f"Bearer {CANARY}"


def test_asynchronous_calls_say_the_same(serve):
    server = serve()
    assert asyncio.run(lm_of(server).acall("hello")) == ["A"]


def test_several_event_loops_in_turn(serve):
    lm = lm_of(serve())
    for _ in range(3):
        assert asyncio.run(lm.acall("hello")) == ["A"]


def test_logprobs_reach_the_judge(serve, chat):
    server = serve(chat("A", {"A": 0.75, "B": 0.25}))
    with dspy.context(lm=lm_of(server)):
        judge = dr.PairwiseJudge(swap=False)
        judgment = judge(query="q", passages=["x", "y"]).judgment
    assert judgment.confidence == pytest.approx(0.75)
    assert server.asked[0]["body"]["top_logprobs"] == 20


def test_usage_is_counted(serve):
    with dspy.context(lm=lm_of(serve())):
        usage = dr.MergeSort(dr.PairwiseJudge())("q", ["x", "y"]).ranking.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 14, 2)


def test_further_parameters_go_out_as_they_are(serve):
    server = serve()
    more = {"structured_outputs": {"choice": ["A", "B"]}}
    lm_of(server)("hello", metadata={"extra_body": more})
    assert server.asked[0]["body"]["structured_outputs"] == {"choice": ["A", "B"]}
    assert "metadata" not in server.asked[0]["body"]


def error(status, message="oops", **headers):
    return status, headers, {"error": {"message": message}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(400), LMInvalidRequestError),
        (error(400, "maximum context length is 4096"), ContextWindowExceededError),
        (error(401), LMAuthError),
        (error(404), LMInvalidRequestError),
        (error(429), LMRateLimitError),
        (error(500), LMServerError),
        (error(503), LMServerError),
        (error(504), LMTimeoutError),
        ((200, {}, "<html>"), LMServerError),
        ((200, {}, '{"choices": [{"index"'), LMServerError),
        ((200, {}, {"choices": []}), LMServerError),
        ((200, {}, {"choices": [{}]}), LMServerError),
        ((200, {}, {"choices": ["x"]}), LMServerError),
        ((200, {}, {"error": {"message": "loading"}}), LMServerError),
        ((502, {}, "Bad gateway"), LMServerError),
    ],
)
def test_failures_have_the_type_that_dspy_retries_by(serve, answer, expected):
    with pytest.raises(expected):
        lm_of(serve(answer))("hello")


def test_a_rate_limit_says_how_long_to_wait(serve):
    with pytest.raises(LMRateLimitError) as caught:
        lm_of(serve(error(429, **{"Retry-After": "7"})))("hello")
    assert caught.value.retry_after == 7


def test_a_time_limit_holds(serve):
    with pytest.raises(LMTimeoutError, match=r"within 0\.2 s"):
        lm_of(serve(delay=1.0), timeout=0.2)("hello")


def test_nobody_there_is_a_transport_error():
    with pytest.raises(LMTransportError, match="cannot be reached"):
        dr.models.direct("http://127.0.0.1:9/v1", model="m", num_retries=0)("hello")


def test_two_servers_with_one_model_share_no_cached_answer(serve, chat):
    first, second = (lm_of(serve(chat(text)), cache=True) for text in ("one", "two"))
    assert first("hello") == ["one"]
    assert second("hello") == ["two"]
    assert first("hello") == ["one"]


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x/v1", "", "http://me:secret@host/v1"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InputError):
        dr.models.direct(url, model="m")


def test_the_key_is_nowhere_to_be_seen(serve, caplog, tmp_path):
    server = serve(error(401, f"Incorrect API key provided: {CANARY}"))
    lm = lm_of(server, api_key=CANARY)
    program = dspy.Predict("question -> answer")
    program.set_lm(lm)
    program.save(tmp_path / "program.json")
    with caplog.at_level("DEBUG"), pytest.raises(LMAuthError) as caught:
        lm("hello")
    shown = [
        repr(lm.engine), repr(lm), json.dumps(lm.dump_state()), str(caught.value),
        repr(caught.value), caplog.text, str(lm.history), str(pickle.dumps(lm.engine._secret)),
        (tmp_path / "program.json").read_text(),
    ]  # fmt: skip
    assert not [text for text in shown if CANARY in text]


def test_a_key_from_the_environment_survives_saving(monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    engine = DirectEngine("http://127.0.0.1:8000/v1", "m", api_key="os.environ/CANARY_KEY")
    state = engine.dump_state()
    assert CANARY not in json.dumps(state)
    assert DirectEngine.load_state(state)._secret.reveal() == CANARY


def test_engines_are_shared_by_copies():
    engine = AsyncDirectEngine("http://127.0.0.1:8000/v1", "m")
    assert copy.deepcopy(engine) is engine


def test_many_calls_at_once(serve):
    lm = lm_of(serve())

    async def many():
        return await asyncio.gather(*(lm.acall(f"hello {i}") for i in range(40)))

    assert asyncio.run(many()) == [["A"]] * 40
