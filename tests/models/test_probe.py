"""What one tiny call tells of a model."""

import math

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank import capability
from dspy_rerank.testing import scripted_lm


def test_logprobs_and_confidence():
    lm = scripted_lm("A", logprobs={"A": math.log(0.8), "B": math.log(0.2)})
    told = dr.models.probe(lm)
    assert (told.answered, told.logprobs, told.top) == (True, True, 2)
    assert told.confidence == pytest.approx(0.8)
    assert len(lm.engine.prompts) == 1


def test_a_model_without_logprobs_says_so_and_is_remembered():
    lm = scripted_lm("A")
    told = dr.models.probe(lm)
    assert (told.answered, told.logprobs, told.confidence) == (True, False, None)
    assert "no log-probabilities" in told.problem
    assert capability.found(lm).gives is False


def test_a_failing_call_is_a_result():
    told = dr.models.probe(scripted_lm([lm15.AuthError("wrong key", status=401)]))
    assert not told.answered
    assert "wrong key" in told.problem


def test_a_thinking_model_is_seen():
    told = dr.models.probe(scripted_lm("<think>hm</think>A"))
    assert told.thinks


def test_size_and_price_are_looked_up_on_demand():
    told = dr.models.probe(scripted_lm("A"), table="gpt-4o-mini")
    assert told.context
    assert told.prompt_price


def test_an_unknown_model_has_no_price():
    told = dr.models.probe(scripted_lm("A"), table="nobody/knows")
    assert (told.context, told.prompt_price) == (None, None)


def test_a_probe_leaves_the_configured_model_alone():
    with dspy.context(lm=None):
        dr.models.probe(scripted_lm("A"))
        assert dspy.settings.lm is None


def thorough(serve, chat, body, **options):
    """A probe of a server that answers by the request."""
    server = serve(lambda asked: body(asked, chat))
    return dr.models.probe(
        dr.models.direct(server.url, model="m"), thorough=True, **options
    ), server


def by_schema(asked, chat):
    return chat('{"letter": "A"}' if "response_format" in asked else "A")


def remembering(asked, chat):
    """A provider that says how much of a prompt its cache had: all of a repeated beginning."""
    again = "second:" in asked["messages"][-1]["content"]
    answer = chat("A")
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 1024 if again else 0}
    return answer


def test_a_schema_is_tried_not_looked_up(serve, chat):
    kept, _ = thorough(serve, chat, by_schema)
    broken, _ = thorough(serve, chat, lambda asked, chat: chat("A"))
    assert (kept.json_schema, broken.json_schema) == (True, False)


def test_a_prompt_cache_shows_in_the_usage_of_a_repeated_beginning(serve, chat):
    remembers, _ = thorough(serve, chat, remembering)
    silent, server = thorough(serve, chat, by_schema)
    assert (remembers.cached_tokens, silent.cached_tokens) == (1024, None)
    first, second = (asked["body"]["messages"][-1]["content"] for asked in server.asked[-2:])
    assert first.partition("first:")[0] == second.partition("second:")[0]
    assert len(first.split()) > 1024


def test_size_and_price_are_those_of_the_configuration_first(serve, chat):
    info = {"max_input_tokens": 4096, "base_model": "gpt-4o-mini"}
    told, _ = thorough(serve, chat, by_schema, table="nobody/knows", info=info)
    assert told.context == 4096
    assert told.prompt_price == pytest.approx(0.15)


def test_a_tiny_probe_is_one_call(serve, chat):
    server = serve(chat("A", {"A": 0.9, "B": 0.1}))
    told = dr.models.probe(dr.models.direct(server.url, model="m"))
    assert len(server.asked) == 1
    assert (told.json_schema, told.cached_tokens) == (None, None)
