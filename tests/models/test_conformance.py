"""Certainty over every path to a model, by every adapter: right or none, whatever came."""

import json
import math
import re

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.models import aliases

ODDS = {"A": 0.8, "B": 0.2}
WRAPPED = {
    "compact": "A",
    "chat": "[[ ## winner ## ]]\nA\n\n[[ ## completed ## ]]",
    "json": '{"winner": "A"}',
}
ADAPTERS = {"compact": lambda: None, "chat": dspy.ChatAdapter, "json": dspy.JSONAdapter}
OPTIONS = {"cache": False, "temperature": 0.0, "num_retries": 0}


def through(engine):
    return lambda url, folder: dspy.LM(
        "openai/m", engine=engine, api_base=url, api_key="none", **OPTIONS
    )


def grouped(url, folder):
    params = {"model": "openai/m", "api_base": url, "api_key": "none"}
    entries = [{"model_name": "group", "litellm_params": params}] * 2
    path = folder / "group.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    lm = dr.models.load(path)["group"]
    aliases.forget()
    return lm.copy(**OPTIONS)


ENGINES = {
    "direct": lambda url, folder: dr.models.direct(url, model="m", **OPTIONS),
    "native": through("lm15"),
    "litellm": through("litellm"),
    "router": grouped,
}


def tokens(text):
    """Log-probabilities: certain of every token, but of the answer as ``ODDS`` say."""
    words = [match.group() for match in re.finditer(r"\w+|\s+|[^\w\s]", text)]
    last = max(place for place, word in enumerate(words) if word == "A")
    return [
        token(word, ODDS if place == last else {word: 0.999}) for place, word in enumerate(words)
    ]


def token(word, odds):
    top = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in odds.items()]
    return {**next(t for t in top if t["token"] == word), "top_logprobs": top}


def given(text):
    return {"content": tokens(text)}


SHAPES = {
    "right": (given, 0.8),
    "null": (lambda text: None, None),
    "empty": (lambda text: {"content": []}, None),
    "null content": (lambda text: {"content": None}, None),
    "no alternatives": (
        lambda text: {"content": [{**t, "top_logprobs": []} for t in tokens(text)]},
        None,
    ),
    "of another text": (lambda text: {"content": [token("zzz", {"zzz": 0.5, "A": 0.5})]}, None),
}


def body(text, logprobs):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage}  # fmt: skip


def judged(engine, adapter, text, logprobs, serve, folder):
    server = serve(body(text, logprobs))
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs", adapter=ADAPTERS[adapter]())
    with dspy.context(lm=ENGINES[engine](server.url, folder)):
        ranking = dr.MergeSort(judge)("q", ["x", "y"]).ranking
    assert not ranking.degraded, ranking.reasons
    (judgment,) = ranking.judgments
    assert judgment.best == 0, judgment
    return judgment


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_confidence_is_right_or_none(engine, adapter, shape, serve, tmp_path):
    make, sure = SHAPES[shape]
    text = WRAPPED[adapter]
    judgment = judged(engine, adapter, text, make(text), serve, tmp_path)
    if sure is None:
        assert (judgment.confidence, judgment.confidence_source) == (None, "none")
        assert "no confidence: " in judgment.reason
    else:
        assert judgment.confidence == pytest.approx(sure)
        assert judgment.confidence_source == "logprob"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_thinking_before_the_answer(engine, adapter, serve, tmp_path):
    text = f"<think>B is newer, or is A? {json.dumps({'winner': 'B'})}</think>\n{WRAPPED[adapter]}"
    judgment = judged(engine, adapter, text, given(text), serve, tmp_path)
    assert judgment.confidence == pytest.approx(0.8)


@pytest.mark.parametrize("evidence", ["auto", "logprobs"])
def test_a_provider_that_litellm_says_has_no_logprobs_is_asked_without(evidence, serve):
    server = serve(body("A", None))
    lm = dspy.LM("mistral/m", engine="litellm", api_base=server.url, api_key="none", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence=evidence)
    with dspy.context(lm=lm):
        ranking = dr.MergeSort(judge)("q", ["x", "y"]).ranking
    assert not ranking.degraded, ranking.reasons
    assert ranking.judgments[0].confidence is None
    assert len(server.asked) == 1
    assert "logprobs" not in server.asked[0]["body"]
