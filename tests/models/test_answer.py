"""Chat completions as DSPy reads them: quickly, and the same as by DSPy's own reader."""

import math

import pytest
from dspy import lm15

from dspy_rerank.models._answer import read_answer

TOP = [{"token": "A", "logprob": -0.1, "bytes": [65]}, {"token": "B", "logprob": -2.4}]


def body(content="A", finish="stop", logprobs=None, **message):
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    if logprobs is not None:
        choice["logprobs"] = logprobs
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
             "prompt_tokens_details": {"cached_tokens": 3}}  # fmt: skip
    return {"id": "x", "model": "m", "choices": [choice], "usage": usage}


CASES = {
    "text": body(),
    "cut off": body(finish="length"),
    "logprobs": body(logprobs={"content": [{**TOP[0], "top_logprobs": TOP}]}),
    "reasoning": body(reasoning_content="hm"),
    "empty": body(content=""),
    "no content": body(content=None),
    "refusal": body(content=None, refusal="no"),
    "filtered": body(finish="content_filter"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_reads_what_dspys_own_reader_reads(name):
    ours, theirs = read_answer(CASES[name], "m"), lm15.response_from_openai_chat(CASES[name])
    for field in ("id", "model", "message", "finish_reason"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert ours.usage.input_tokens == theirs.usage.input_tokens == 7
    assert ours.usage.cache_read_tokens == theirs.usage.cache_read_tokens == 3
    mine, others = ours.logprobs or (), theirs.logprobs or ()
    assert [(t.token, t.logprob, [(a.token, a.logprob) for a in t.top]) for t in mine] == [
        (t.token, t.logprob, [(a.token, a.logprob) for a in t.top]) for t in others
    ]


@pytest.mark.parametrize(
    "logprobs",
    [{"content": []}, {"content": None}, {}, {"content": [{"token": "A"}]}, {"content": "A"},
     {"content": [{"token": "A", "logprob": "x"}]}, {"content": [None]}, [1], "none",
     {"tokens": ["A"], "token_logprobs": [-0.1]}],
)  # fmt: skip
def test_broken_logprobs_are_none_and_the_text_stays(logprobs):
    answer = read_answer(body(logprobs=logprobs), "m")
    assert answer.message.text == "A"
    assert answer.logprobs is None


def test_the_server_may_leave_out_model_and_usage():
    answer = read_answer({"choices": body()["choices"]}, "asked")
    assert answer.model == "asked"
    assert answer.usage.input_tokens is None


def test_a_probability_of_zero_is_kept_out_of_no_answer():
    entry = {"token": "A", "logprob": -9999.0, "top_logprobs": TOP}
    (token,) = read_answer(body(logprobs={"content": [entry]}), "m").logprobs or ()
    assert math.exp(token.logprob) == 0.0


@pytest.mark.parametrize("broken", [{"choices": [{"message": "A"}]}, {"choices": [{}]}])
def test_what_is_no_completion_is_a_servers_error(broken):
    with pytest.raises(lm15.LM15Error):
        read_answer(broken, "m")
