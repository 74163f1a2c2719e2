"""Requests and answers, translated without a model."""

import dspy
import pytest
from dspy import lm15

from dspy_rerank.models import get, likelihood_config
from dspy_rerank.models._chat import chat_body, continuation, raw_prompt, response
from dspy_rerank.models._likelihood import seam


def request(*turns: str, system: str | None = None, **config: object) -> lm15.Request:
    """Turns alternate between user and assistant."""
    roles = [lm15.Message.user, lm15.Message.assistant]
    messages = tuple(roles[i % 2](turn) for i, turn in enumerate(turns))
    return lm15.Request("local/m", messages, system=system, config=lm15.Config(**config))  # type: ignore[arg-type]


def test_the_raw_prompt_ends_where_the_answer_begins() -> None:
    asked = request("Passage: a\nQ:", "one?", "Passage: b\nQ:", system="Do it.")
    assert raw_prompt(asked) == "Do it.\n\nPassage: a\nQ: one?\n\nPassage: b\nQ:"


def test_a_prompt_of_one_turn_is_that_turn() -> None:
    assert raw_prompt(request("only")) == "only"


@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        ("Q:", "why", ("Q:", " why")),
        ("Q: ", " why ", ("Q:", " why")),
        ("Q:\n", "why", ("Q:\n", "why")),
        ("", "why", ("", "why")),
        ("Q:", "  ", ("Q:", "")),
    ],
)
def test_the_seam_is_where_the_tokenizer_cuts(
    prompt: str, text: str, expected: tuple[str, str]
) -> None:
    assert seam(prompt, text) == expected


def test_the_body_says_what_the_config_says() -> None:
    schema = {"type": "object"}
    body = chat_body(
        request(
            "hi", system="s", max_tokens=3, temperature=0.0, stop=("x",), seed=7, logprobs=0,
            response_format={"type": "json_schema", "schema": schema},
            extensions={"logit_bias": {"5": 1}},
        )
    )  # fmt: skip
    assert body == {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}],
        "max_tokens": 3, "temperature": 0.0, "stop": ["x"], "seed": 7,
        "logprobs": True, "top_logprobs": 1, "logit_bias": {"5": 1},
        "response_format": {
            "type": "json_schema", "json_schema": {"name": "answer", "schema": schema},
        },
    }  # fmt: skip


def test_an_unlimited_answer_is_limited() -> None:
    assert chat_body(request("hi"))["max_tokens"] == 512


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(lm15.UnsupportedFeatureError, match="prediction"):
        chat_body(request("hi", extensions={"prediction": "x"}))


@pytest.mark.parametrize("found", [{"likelihood": "why"}, {"metadata": {"likelihood": "why"}}])
def test_the_text_to_score_travels_in_the_extensions(found: dict[str, object]) -> None:
    assert continuation(request("hi", extensions=found)) == "why"


def test_most_requests_have_no_text_to_score() -> None:
    assert continuation(request("hi", extensions={"metadata": {"user": "me"}})) is None
    assert likelihood_config("why")["metadata"] == {"likelihood": "why"}


def test_a_text_to_score_that_is_no_text_is_refused() -> None:
    with pytest.raises(lm15.InvalidRequestError, match="str, got 3"):
        continuation(request("hi", extensions={"likelihood": 3}))


def test_the_answer_keeps_tokens_alternatives_and_usage() -> None:
    tops = [{"token": "b", "logprob": -2.0}]
    body = {
        "choices": [
            {
                "text": "a",
                "finish_reason": "stop",
                "logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": tops}]},
            }
        ],
        "usage": {
            "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
        "timings": {"cache_n": 4},
    }  # fmt: skip
    answer = response(body, "local/m")
    assert (answer.text, answer.model, answer.finish_reason) == ("a", "local/m", "stop")
    assert answer.logprobs is not None
    assert answer.logprobs[0].top[0].token == "b"
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens) == (5, 4)
    assert answer.provider_data == {"timings": {"cache_n": 4}}


def test_other_names_are_dspys() -> None:
    lm = get("openai/some-model", temperature=0.0)
    assert isinstance(lm, dspy.LM)
    assert (lm.model, lm.engine) == ("openai/some-model", "auto")
