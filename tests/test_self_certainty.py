"""How sure a model was, from every shape in which log-probabilities come."""

import math
from types import SimpleNamespace

import dspy
import numpy as np
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.errors import EvidenceError, InputError
from dspy_rerank.testing import scripted_lm

ENTRIES = [{"token": "A", "logprob": -0.10}, {"token": ".", "logprob": -0.20}]
TOPS = [
    {"token": "A", "logprob": math.log(0.8),
     "top_logprobs": [{"token": "A", "logprob": math.log(0.8)},
                      {"token": "B", "logprob": math.log(0.2)}]},
]  # fmt: skip
MEAN = math.exp(-0.15)


def native():
    tokens = tuple(lm15.TokenLogprob(e["token"], e["logprob"]) for e in ENTRIES)
    return lm15.Response(
        id=None,
        model="m",
        message=lm15.Message.assistant([lm15.TextPart("A.")]),
        finish_reason="stop",
        usage=lm15.Usage(),
        logprobs=tokens,
    )


def litellm_response():
    from litellm.types.utils import ModelResponse

    said = {"role": "assistant", "content": "A."}
    choice = {"index": 0, "finish_reason": "stop", "message": said}
    return ModelResponse(model="m", choices=[{**choice, "logprobs": {"content": ENTRIES}}])


def responses():
    """As OpenAI's Responses API answers: log-probabilities with each part of each output."""
    said = {"type": "output_text", "text": "A.", "logprobs": ENTRIES}
    return {"output": [{"type": "reasoning", "summary": []}, {"content": [said]}]}


def text_completion():
    tops = [{"A": -0.10, "B": -3.0}, {".": -0.20}]
    parallel = {"tokens": ["A", "."], "token_logprobs": [-0.10, -0.20], "top_logprobs": tops}
    return {
        "model": "m",
        "choices": [{"text": "A.", "logprobs": {**parallel, "text_offset": [0, 1]}}],
    }


def gemini():
    chosen = [{"token": e["token"], "tokenId": 7, "logProbability": e["logprob"]} for e in ENTRIES]
    tops = [{"candidates": [each]} for each in chosen]
    return {"candidates": [{"logprobsResult": {"chosenCandidates": chosen, "topCandidates": tops}}]}


def gemini_object():
    chosen = [SimpleNamespace(token=e["token"], log_probability=e["logprob"]) for e in ENTRIES]
    result = SimpleNamespace(chosen_candidates=chosen, top_candidates=None)
    return SimpleNamespace(candidates=[SimpleNamespace(logprobs_result=result)])


SHAPES = {
    "entries": lambda: ENTRIES,
    "array": lambda: np.array([-0.10, -0.20]),
    "list of short floats": lambda: [np.float32(-0.10), np.float32(-0.20)],
    "text completion": text_completion,
    "responses": responses,
    "gemini": gemini,
    "gemini object": gemini_object,
    "gemini mean": lambda: {"candidates": [{"avgLogprobs": -0.15}]},
    "tuples of numbers": lambda: (-0.10, -0.20),
    "openai mapping": lambda: {"content": ENTRIES},
    "openai response": lambda: {"model": "m", "choices": [{"logprobs": {"content": ENTRIES}}]},
    "prediction": lambda: dspy.Prediction(answer="A.", logprobs={"content": ENTRIES}),
    "what a dspy.LM returns": lambda: [{"text": "A.", "logprobs": {"content": ENTRIES}}],
    "native response": native,
    "litellm response": litellm_response,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_confidence(shape):
    assert dr.self_certainty(SHAPES[shape]()) == pytest.approx(MEAN)


def test_a_prediction_of_a_real_call_carries_its_logprobs():
    lm = scripted_lm("A", logprobs={"A": math.log(0.7), "B": math.log(0.3)})
    with dspy.context(lm=lm, adapter=dr.adapters.COMPACT):
        prediction = dspy.Predict("question -> answer", logprobs=True, top_logprobs=2)(question="?")
    assert dr.self_certainty(prediction) == pytest.approx(0.7)


def test_logprobs_of_a_text_are_taken_from_the_argument():
    assert dr.self_certainty("A.", logprobs=ENTRIES) == pytest.approx(MEAN)


ABSENT = {
    "none": None,
    "empty list": [],
    "empty content": {"content": []},
    "no logprobs in the response": {"choices": [{"message": {"content": "A"}}]},
    "a token without a number": [{"token": "A"}],
    "a number that is no logprob": [{"token": "A", "logprob": 0.7}],
    "not a number": [{"token": "A", "logprob": "high"}],
    "nan": [{"token": "A", "logprob": math.nan}],
    "minus infinity": [{"token": "A", "logprob": -math.inf}],
    "a text for a number": [{"token": "A", "logprob": "-0.1"}],
    "truth values": [True, False],
    "a number alone": 0.5,
    "bytes": b"A",
    "an empty array": np.array([]),
    "numbers with nan": [-0.1, math.nan],
    "a null among parallel lists": {"tokens": ["A", "."], "token_logprobs": [None, -0.2]},
    "parallel lists of two lengths": {"tokens": ["A", "."], "token_logprobs": [-0.2]},
    "half of them missing": [*ENTRIES, {"token": "x", "logprob": None}],
    "prediction without": dspy.Prediction(answer="A"),
}


@pytest.mark.parametrize("shape", ABSENT)
def test_absent_or_broken_logprobs_are_an_error_and_never_a_zero(shape):
    with pytest.raises(EvidenceError, match="gave no token log-probabilities"):
        dr.self_certainty(ABSENT[shape])


def test_the_error_names_the_model_and_the_two_ways_out():
    with pytest.raises(EvidenceError) as caught:
        dr.self_certainty({"model": "big-model", "choices": []})
    for part in ("big-model", "logprobs=True", "lm="):
        assert part in str(caught.value)


def test_a_broken_entry_is_named():
    with pytest.raises(EvidenceError, match=r"entry 1 is .*nan"):
        dr.self_certainty([{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": math.nan}])


@pytest.mark.parametrize("method", ["min", "margin", "entropy", "kl"])
def test_a_mean_alone_is_enough_for_the_mean_only(method):
    with pytest.raises(EvidenceError):
        dr.self_certainty({"candidates": [{"avgLogprobs": -0.15}]}, method=method)


def test_alternatives_of_a_text_completion_are_read():
    assert dr.self_certainty(text_completion(), method="margin") == pytest.approx(
        (1 - math.exp(-2.9)) / (1 + math.exp(-2.9))
    )


def test_a_text_alone_asks_no_model():
    lm = scripted_lm("A", logprobs={"A": -0.1})
    with dspy.context(lm=lm), pytest.raises(EvidenceError):
        dr.self_certainty("A")
    assert lm.engine.prompts == []


def test_a_text_with_a_model_is_repeated_in_one_call():
    lm = scripted_lm("Paris", logprobs={"Paris": math.log(0.6)})
    assert dr.self_certainty("Paris", lm=lm) == pytest.approx(0.6)
    (prompt,) = lm.engine.prompts
    assert prompt.endswith("Paris")


def test_a_model_that_gives_none_even_when_asked_is_named():
    with pytest.raises(EvidenceError, match="scripted/model"):
        dr.self_certainty("Paris", lm=scripted_lm("Paris"))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("mean", 0.8),
        ("min", 0.8),
        ("margin", 0.6),
        ("entropy", 1 + (0.8 * math.log(0.8) + 0.2 * math.log(0.2)) / math.log(2)),
        ("kl", 1 - math.exp(-(math.log(0.5) - 0.5 * math.log(0.8) - 0.5 * math.log(0.2)))),
    ],
)
def test_methods(method, expected):
    assert dr.self_certainty(TOPS, method=method) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["margin", "entropy", "kl"])
def test_a_method_over_alternatives_says_that_it_needs_them(method):
    with pytest.raises(EvidenceError, match="top_logprobs"):
        dr.self_certainty(ENTRIES, method=method)


def test_an_unknown_method_lists_the_known():
    with pytest.raises(InputError, match="mean, min, margin, entropy, kl"):
        dr.self_certainty(ENTRIES, method="median")
