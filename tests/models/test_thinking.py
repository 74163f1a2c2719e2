"""Models that think: kept from it where their tokens are scored, and never scored unawares."""

import itertools
import math

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank import capability
from dspy_rerank.models import aliases

OPTIONS = {"cache": False, "temperature": 0.0, "num_retries": 0}


def entry(text, odds):
    top = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in odds.items()]
    return {**next(t for t in top if t["token"] == text), "top_logprobs": top}


def reply(message, entries):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message},
              "logprobs": {"content": entries}}  # fmt: skip
    usage = {"prompt_tokens": 7, "completion_tokens": len(entries), "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage}  # fmt: skip


SURE = entry("A", {"A": 0.999, "B": 0.001})
BARE = reply({"content": "A"}, [entry("A", {"A": 0.8, "B": 0.2})])
MUSED = [entry(word, {word: 0.9, "x": 0.1}) for word in ("B", " or", " A", "?")]
TAGS = [entry(tag, {tag: 0.99, "x": 0.01}) for tag in ("<think>", "</think>")]
THINKING = {
    "in the text": reply({"content": "<think>B or A?</think>A"}, [TAGS[0], *MUSED, TAGS[1], SURE]),
    "beside it": reply({"content": "A", "reasoning_content": "B or A?"}, [*MUSED, SURE]),
    "beside it, newer": reply({"content": "A", "reasoning": "B or A?"}, [*MUSED, SURE]),
}


def hushed(body):
    template = body.get("chat_template_kwargs") or {}
    return body.get("reasoning_effort") == "none" or template.get("enable_thinking") is False


def by_template(body):
    return (body.get("chat_template_kwargs") or {}).get("enable_thinking") is False


def thinks_unless(quiet, style="in the text"):
    return lambda body: BARE if quiet(body) else THINKING[style]


def grouped(url, folder):
    params = {"model": "openai/m", "api_base": url, "api_key": "none"}
    path = folder / "group.yaml"
    path.write_text(
        yaml.safe_dump({"model_list": [{"model_name": "g", "litellm_params": params}] * 2})
    )
    lm = dr.models.load(path)["g"]
    aliases.forget()
    return lm.copy(**OPTIONS)


def named(engine):
    return lambda url, folder: dspy.LM(
        "hosted_vllm/m", engine=engine, api_base=url, api_key="none", **OPTIONS
    )


ENGINES = {
    "direct": lambda url, folder: dr.models.direct(url, model="m", **OPTIONS),
    "native": named("lm15"),
    "litellm": named("litellm"),
    "router": grouped,
}


def ranked(lm, evidence="logprobs", n=2):
    judge = dr.PairwiseJudge(swap=False, evidence=evidence)
    with dspy.context(lm=lm):
        ranking = dr.MergeSort(judge, concurrency=1)("q", [*"abcdefgh"[:n]]).ranking
    assert not ranking.degraded, ranking.reasons
    return ranking


@pytest.mark.parametrize("style", THINKING)
@pytest.mark.parametrize("engine", ENGINES)
def test_thinking_is_switched_off_where_tokens_are_scored(engine, style, serve, tmp_path):
    server = serve(thinks_unless(hushed, style))
    ranking = ranked(ENGINES[engine](server.url, tmp_path), n=3)
    assert [j.confidence for j in ranking.judgments] == pytest.approx(
        [0.8] * len(ranking.judgments)
    )
    asked = [hushed(call["body"]) for call in server.asked]
    assert asked == [False, True, *[True] * (len(ranking.judgments) - 1)]
    assert ranking.usage.calls == len(server.asked)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_server_that_knows_one_way_only_is_asked_that_way(engine, serve, tmp_path):
    server = serve(thinks_unless(by_template))
    lm = ENGINES[engine](server.url, tmp_path)
    if engine == "native":
        lm = lm.copy(engine="auto")
    assert ranked(lm).judgments[0].confidence == pytest.approx(0.8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_switch_that_is_refused_costs_no_ranking(engine, serve, tmp_path):
    def answer(body):
        if "reasoning_effort" in body or "chat_template_kwargs" in body:
            why = {"message": "Unrecognized request argument supplied: reasoning_effort"}
            return 400, {}, {"error": why}
        return THINKING["in the text"]

    lm = ENGINES[engine](serve(answer).url, tmp_path)
    ranking = ranked(lm, n=3)
    assert all(j.confidence == pytest.approx(0.999) for j in ranking.judgments)
    assert all("thought before it answered" in j.reason for j in ranking.judgments)
    assert capability.found(lm).loud


def test_a_model_that_cannot_stop_is_scored_after_its_thinking_and_the_judgment_says_so(serve):
    server = serve(THINKING["in the text"])
    lm = dr.models.direct(server.url, model="m", **OPTIONS)
    ranking = ranked(lm, n=3)
    assert all(j.confidence == pytest.approx(0.999) for j in ranking.judgments)
    assert all("it thinks all the same" in j.reason for j in ranking.judgments)
    tries = len(server.asked) - len(ranking.judgments)
    assert tries == len(lm.engine.thinking_off)


@pytest.mark.parametrize("style", THINKING)
def test_auto_leaves_a_model_its_thinking_and_then_claims_no_confidence(style, serve):
    server = serve(thinks_unless(hushed, style))
    ranking = ranked(dr.models.direct(server.url, model="m", **OPTIONS), evidence="auto")
    (judgment,) = ranking.judgments
    assert (judgment.best, judgment.confidence, judgment.evidence) == (0, None, "generate")
    assert "thought before it answered" in judgment.reason
    assert len(server.asked) == 1


def test_an_empty_block_of_thinking_is_none(serve):
    text = "<think>\n\n</think>\n\nA"
    words = ("<think>", "\n\n", "</think>", "\n\n")
    entries = [entry(w, {w: 0.99, "x": 0.01}) for w in words]
    answer = reply({"content": text}, [*entries, entry("A", {"A": 0.7, "B": 0.3})])
    server = serve(answer)
    (judgment,) = ranked(dr.models.direct(server.url, model="m", **OPTIONS)).judgments
    assert judgment.confidence == pytest.approx(0.7)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "message", [{"content": "<think>B or"}, {"content": None, "reasoning_content": "B or"}]
)
def test_thinking_that_fills_the_answer_is_an_unknown_that_says_so(message, serve):
    server = serve(reply(message, MUSED))
    lm = dr.models.direct(server.url, model="m", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence="generate")
    with dspy.context(lm=lm):
        ranking = dr.MergeSort(judge, retries=0)("q", ["x", "y"]).ranking
    (judgment,) = ranking.judgments
    assert (judgment.status, judgment.confidence) == ("unknown", None)
    assert "still thinking" in judgment.reason


def test_what_the_user_sends_along_is_kept(serve):
    server = serve(thinks_unless(hushed))
    own = {"extra_body": {"top_k": 3, "chat_template_kwargs": {"style": "short"}}}
    lm = dr.models.direct(server.url, model="m", metadata=own, **OPTIONS)
    ranked(lm)
    last = server.asked[-1]["body"]
    assert last["top_k"] == 3
    assert last["chat_template_kwargs"] == {"style": "short", "enable_thinking": False}


def test_questions_in_flight_together_learn_together(serve):
    server = serve(thinks_unless(by_template))
    lm = dr.models.direct(server.url, model="m", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    with dspy.context(lm=lm):
        ranking = dr.AllPairs(judge, concurrency=8)("q", [*"abcd"]).ranking
    assert [j.confidence for j in ranking.judgments] == pytest.approx(
        [0.8] * len(ranking.judgments)
    )
    pairs = list(itertools.combinations("abcd", 2))
    assert len(ranking.judgments) in (len(pairs), 2 * len(pairs))
